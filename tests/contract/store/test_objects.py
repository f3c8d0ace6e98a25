"""Creation and change of one object: versions, generations, the parts of a manifest, conflicts."""

import msgspec
import pytest

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import AlreadyExists, Conflict, NotFound
from tests.support.builders import a_cloudprofile, a_seed, a_shoot, merged
from tests.support.stores import StoreUnderTest, stored

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")


async def test_a_new_object_gets_a_uid_a_version_generation_one_and_its_time(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    assert shoot.uid
    assert shoot.version > 0
    assert shoot.generation == 1
    assert shoot.created_at == "2026-01-02T03:04:05Z"
    assert not shoot.is_deleting
    assert await kit.store.get(APOLLO) == shoot


async def test_the_manifest_comes_back_with_what_the_store_adds_and_with_fields_nobody_knows(
    kit: StoreUnderTest,
) -> None:
    manifest = a_shoot(metadata={"annotations": {"a": "b"}, "labels": {"c": "d"}}, extra={"x": [1, {"y": None}]})
    manifest["spec"]["unheardOf"] = {"deep": ["ä", 1.5, True]}
    shoot = await kit.created(manifest)
    expected = merged(
        manifest,
        {
            "metadata": {
                "uid": shoot.uid,
                "resourceVersion": str(shoot.version),
                "generation": 1,
                "creationTimestamp": "2026-01-02T03:04:05Z",
            }
        },
    )
    assert (await kit.now(APOLLO)).document() == expected


async def test_what_the_writer_claims_to_be_the_system_metadata_is_not_taken(kit: StoreUnderTest) -> None:
    shoot = await kit.created(
        a_shoot(metadata={"uid": "mine", "resourceVersion": "7", "generation": 9, "creationTimestamp": "long ago"})
    )
    metadata = shoot.document()["metadata"]
    assert metadata["uid"] == shoot.uid != "mine"
    assert metadata["generation"] == 1
    assert metadata["creationTimestamp"] == "2026-01-02T03:04:05Z"


async def test_a_second_creation_is_told_that_the_object_exists(kit: StoreUnderTest) -> None:
    await kit.created(a_shoot())
    with pytest.raises(AlreadyExists):
        await kit.store.create(a_shoot())


async def test_several_objects_are_read_in_order_with_none_for_what_is_missing(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed())
    missing = ObjectKey("seed", "", "nowhere")
    assert await kit.store.get_many([missing, seed.key, seed.key]) == [None, seed, seed]
    assert await kit.store.get_many([]) == []


async def test_a_glance_at_several_objects_leaves_out_what_only_writers_need(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed())
    shoot = await kit.store.create(a_shoot(), last_applied=b'{"kind":"Shoot"}')
    assert isinstance(shoot, StoredObject)
    missing = ObjectKey("seed", "", "nowhere")
    seen = await kit.store.get_many_partial([missing, shoot.key, seed.key])
    assert seen == [None, msgspec.structs.replace(shoot, last_applied=b""), seed]
    assert await kit.store.get_many_partial([]) == []


async def test_a_spec_change_raises_version_and_generation(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    changed = await kit.changed(shoot, merged(shoot.document(), {"spec": {"purpose": "production"}}))
    assert changed.generation == 2
    assert changed.version > shoot.version
    assert changed.uid == shoot.uid
    assert await kit.now(APOLLO) == changed


@pytest.mark.parametrize(
    "change",
    [
        {"status": {"technicalID": "shoot--dev--apollo"}},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"annotations": {"a": "b"}}},
        {"metadata": {"finalizers": ["mine"]}},
    ],
    ids=["status", "labels", "annotations", "finalizers"],
)
async def test_a_change_beside_the_spec_raises_the_version_alone(
    kit: StoreUnderTest, change: dict[str, object]
) -> None:
    shoot = await kit.created(a_shoot())
    changed = await kit.changed(shoot, merged(shoot.document(), change))
    assert changed.generation == 1
    assert changed.version > shoot.version
    assert await kit.now(APOLLO) == changed


async def test_the_generation_can_be_raised_without_a_change(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    changed = await kit.changed(shoot, shoot.document(), bump_generation=True)
    assert changed.generation == 2
    assert changed.version > shoot.version


async def test_the_generation_can_be_kept_through_a_change(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    changed = await kit.changed(shoot, merged(shoot.document(), {"spec": {"purpose": "testing"}}), keep_generation=True)
    assert (changed.generation, changed.document()["spec"]["purpose"]) == (1, "testing")
    assert changed.version > shoot.version
    assert await kit.now(APOLLO) == changed
    both = merged(changed.document(), {"spec": {"purpose": "production"}})
    assert (await kit.changed(changed, both, keep_generation=True, bump_generation=True)).generation == 2


async def test_an_update_that_changes_nothing_writes_and_announces_nothing(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    await kit.fresh_entries()
    assert await kit.store.update(shoot, shoot.document()) == shoot
    assert await kit.now(APOLLO) == shoot
    assert not await kit.entries()


async def test_another_order_of_keys_is_no_change(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    document = shoot.document()
    document["spec"] = dict(reversed(document["spec"].items()))
    assert await kit.store.update(shoot, document) == shoot


async def test_fields_can_go_away(kit: StoreUnderTest) -> None:
    shoot = await kit.created(
        a_shoot(metadata={"labels": {"a": "b"}, "annotations": {"a": "b"}}, status={"x": 1}, extra={"y": 2})
    )
    bare = merged(shoot.document(), {"metadata": {"labels": None, "annotations": None}, "status": None, "extra": None})
    await kit.changed(shoot, bare)
    document = (await kit.now(APOLLO)).document()
    assert document.keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert document["metadata"].keys().isdisjoint({"labels", "annotations"})


async def test_an_update_of_an_older_version_is_a_conflict_and_leaves_the_object(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    changed = await kit.changed(shoot, merged(shoot.document(), {"spec": {"purpose": "production"}}))
    await kit.fresh_entries()
    with pytest.raises(Conflict, match=str(changed.version)):
        await kit.store.update(shoot, merged(shoot.document(), {"spec": {"purpose": "testing"}}))
    assert await kit.now(APOLLO) == changed
    assert not await kit.entries()


async def test_an_update_of_what_is_gone_says_so(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    assert await kit.store.delete(shoot) is None
    with pytest.raises(NotFound):
        await kit.store.update(shoot, merged(shoot.document(), {"spec": {"purpose": "testing"}}))
    with pytest.raises(NotFound):
        await kit.store.delete(shoot)


async def test_versions_grow_over_all_objects_and_are_never_used_twice(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed())
    shoot = await kit.created(a_shoot())
    assert seed.version < shoot.version
    await kit.store.delete(shoot)
    again = await kit.created(a_shoot())
    assert again.uid != shoot.uid
    assert again.version > shoot.version + 1, "the removal has a version of its own"


async def test_what_only_the_apiserver_reads_is_kept_without_a_new_version(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot(), last_applied=b'{"a":1}', owner_setters=b"u1 ann")
    await kit.fresh_entries()
    assert await kit.now(APOLLO) == shoot
    assert (shoot.last_applied, shoot.owner_setters) == (b'{"a":1}', b"u1 ann")
    changed = await kit.changed(shoot, shoot.document(), last_applied=b'{"b":2}', report_stamps=b"[3]")
    assert (changed.version, changed.last_applied, changed.report_stamps) == (shoot.version, b'{"b":2}', b"[3]")
    assert await kit.now(APOLLO) == changed
    assert changed.owner_setters == b"u1 ann"
    changed = await kit.changed(changed, shoot.document(), owner_setters=b"u2 bob")
    assert (await kit.now(APOLLO)).owner_setters == b"u2 bob"
    assert not await kit.entries()
    written = await kit.changed(changed, merged(changed.document(), {"spec": {"purpose": "testing"}}))
    assert (await kit.now(APOLLO)).last_applied == b'{"b":2}'
    assert written == await kit.now(APOLLO)
    assert written.owner_setters == b"u2 bob"
    assert (await kit.changed(written, written.document(), owner_setters=b"")).owner_setters == b""
    assert (await kit.now(APOLLO)).owner_setters == b""


async def test_each_write_is_announced_once_with_its_verb_and_version(kit: StoreUnderTest) -> None:
    profile = await kit.created(a_cloudprofile())
    changed = await kit.changed(profile, merged(profile.document(), {"spec": {"type": "gcp"}}))
    await kit.store.delete(changed)
    entries = await kit.changes()
    assert [(entry.verb, entry.uid) for entry in entries] == [
        ("added", profile.uid),
        ("modified", profile.uid),
        ("deleted", profile.uid),
    ]
    assert [entry.version for entry in entries][:2] == [profile.version, changed.version]
    assert entries[2].version > changed.version


async def test_a_status_write_of_a_shoot_is_not_announced_to_its_gardenlets(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    with_status = await kit.changed(shoot, merged(shoot.document(), {"status": {"a": 1}}))
    await kit.changed(with_status, merged(with_status.document(), {"metadata": {"labels": {"a": "b"}}}))
    assert [entry.with_binding for entry in await kit.changes()] == [True, False, True]


async def test_a_raised_generation_is_announced_to_the_gardenlets_though_the_manifest_is_the_same(
    kit: StoreUnderTest,
) -> None:
    shoot = await kit.created(a_shoot())
    raised = await kit.changed(shoot, shoot.document(), bump_generation=True)
    await kit.changed(raised, merged(raised.document(), {"status": {"a": 1}}), bump_generation=True)
    assert [entry.with_binding for entry in await kit.changes()] == [True, True, True]


async def test_an_object_without_spec_has_no_generation(kit: StoreUnderTest) -> None:
    configmap = await kit.created(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a.b", "namespace": "garden"},
            "data": {"a": "b"},
        }
    )
    assert configmap.key == ObjectKey("configmap", "garden", "a.b")
    document = (await kit.now(configmap.key)).document()
    assert "generation" not in document["metadata"]
    assert "spec" not in document
    assert document["data"] == {"a": "b"}


async def test_a_generation_that_was_shown_stays_when_the_spec_goes_away(kit: StoreUnderTest) -> None:
    thing: Document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "garden-dev", "finalizers": ["example.org/kept"]},
    }
    made = await kit.created({**thing, "spec": {"replicas": 1}})
    assert made.document()["metadata"]["generation"] == 1
    bare = await kit.changed(made, thing)
    assert bare.document()["metadata"]["generation"] == 2
    labelled = await kit.changed(bare, merged(thing, {"metadata": {"labels": {"a": "b"}}}))
    assert labelled.document()["metadata"]["generation"] == 2
    deleting = stored(await kit.store.delete(labelled))
    assert deleting.document()["metadata"]["generation"] == 3


async def test_the_stores_own_labels_say_which_seeds_a_shoot_concerns(kit: StoreUnderTest) -> None:
    for name in ("old", "new"):
        await kit.created(a_seed(name))
    shoot = await kit.created(a_shoot(spec={"seedName": "old"}, metadata={"labels": {"a": "b"}}))
    labels = (await kit.now(APOLLO)).document()["metadata"]["labels"]
    assert labels == {"a": "b", "name.seed.gardener.cloud/old": "true"}
    claimed = await kit.changed(shoot, merged(shoot.document(), {"status": {"seedName": "old"}}))
    moved = await kit.changed(claimed, merged(claimed.document(), {"spec": {"seedName": "new"}}))
    labels = moved.document()["metadata"]["labels"]
    assert labels == {"a": "b", "name.seed.gardener.cloud/new": "true", "name.seed.gardener.cloud/old": "true"}
