"""Deletion: finalizers, owners, references, claims and guards."""

import pytest

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Conflict, Forbidden
from gardenbus.common.ports.store import WritePrecondition
from tests.support.builders import a_cloudprofile, a_namespaced_cloudprofile, a_project, a_seed, a_shoot, merged
from tests.support.stores import StoreUnderTest, stored

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")


def owned_by(owner: StoredObject | str, name: str = "child") -> Document:
    uid = owner if isinstance(owner, str) else owner.uid
    owners = [{"apiVersion": "v1", "kind": "Namespace", "name": "owner", "uid": uid}]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "garden", "ownerReferences": owners},
    }


async def test_an_object_without_finalizers_goes_at_once(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed())
    assert await kit.store.delete(seed) is None
    assert await kit.store.get(seed.key) is None
    assert not (await kit.store.list_page("seed")).objects
    assert not await kit.store.exists_uid(seed.uid)


async def test_a_finalizer_holds_it_until_the_last_one_is_gone(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot(metadata={"finalizers": ["one", "two"]}))
    kit.clock.advance(60)
    marked = stored(await kit.store.delete(shoot))
    assert marked.deleting_at == "2026-01-02T03:05:05Z"
    assert marked.generation == 2
    assert marked.version > shoot.version
    assert await kit.now(APOLLO) == marked
    fewer = await kit.changed(marked, merged(marked.document(), {"metadata": {"finalizers": ["two"]}}))
    assert fewer.deleting_at == marked.deleting_at
    await kit.fresh_entries()
    last = await kit.changed(fewer, merged(fewer.document(), {"metadata": {"finalizers": []}}))
    assert await kit.store.get(APOLLO) is None
    assert [(entry.verb, entry.version) for entry in await kit.changes()] == [("deleted", last.version)]


async def test_a_second_deletion_changes_nothing(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot(metadata={"finalizers": ["one"]}))
    marked = stored(await kit.store.delete(shoot))
    await kit.fresh_entries()
    kit.clock.advance(60)
    assert await kit.store.delete(marked) == marked
    assert not await kit.entries()


async def test_a_deletion_of_an_older_version_is_a_conflict(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed())
    changed = await kit.changed(seed, merged(seed.document(), {"metadata": {"labels": {"a": "b"}}}))
    with pytest.raises(Conflict):
        await kit.store.delete(seed)
    assert await kit.now(seed.key) == changed


async def test_a_deleting_shoot_is_no_longer_pending_nor_queued(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot(metadata={"finalizers": ["mine"]}))
    assert (await kit.store.census())["shoots.pending"] == 1
    assert (await kit.store.pending("default-scheduler"), await kit.store.pending("mine")) == (1, 0)
    marked = stored(await kit.store.delete(shoot))
    await kit.fresh_entries()
    await kit.changed(marked, merged(marked.document(), {"spec": {"purpose": "testing"}}))
    assert not await kit.work()
    assert (await kit.store.census())["shoots.pending"] == 0


async def test_dependents_are_found_by_their_owners_uid(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed())
    child = await kit.created(owned_by(seed))
    assert await kit.store.exists_uid(seed.uid)
    assert await kit.store.dependents(seed.uid) == [child.key]
    await kit.changed(child, merged(child.document(), {"metadata": {"ownerReferences": []}}))
    assert not await kit.store.dependents(seed.uid)


async def test_the_removal_of_an_owner_queues_its_garbage(kit: StoreUnderTest) -> None:
    seed, lonely = await kit.created(a_seed()), await kit.created(a_seed("lonely"))
    child = await kit.created(owned_by(seed))
    await kit.fresh_entries()
    await kit.store.delete(lonely)
    assert not await kit.work()
    await kit.store.delete(seed)
    assert await kit.work() == [f"garbage._.{seed.uid}"]
    assert await kit.store.dependents(seed.uid) == [child.key], "the garbage collector removes them, one by one"


async def test_who_is_born_to_an_owner_that_is_gone_is_queued_as_garbage(kit: StoreUnderTest) -> None:
    await kit.created(owned_by("long-gone"))
    assert await kit.work() == ["garbage._.long-gone"]


async def test_a_claim_can_be_held_by_one_object_only(kit: StoreUnderTest) -> None:
    first = await kit.created(a_project("dev", "garden-dev"))
    with pytest.raises(Forbidden, match="garden-dev"):
        await kit.store.create(a_project("other", "garden-dev"))
    assert await kit.store.get(ObjectKey("project", "", "other")) is None
    other = await kit.created(a_project("other", "garden-other"))
    with pytest.raises(Forbidden):
        await kit.store.update(other, merged(other.document(), {"spec": {"namespace": "garden-dev"}}))
    await kit.store.delete(first)
    await kit.changed(other, merged(other.document(), {"spec": {"namespace": "garden-dev"}}))
    assert stored(await kit.store.create(a_project("third", "garden-other")))


async def test_a_guard_holds_a_seed_that_is_in_use(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed())
    shoot = await kit.created(a_shoot(spec={"seedName": "aws-eu1"}))
    guard = WritePrecondition("usage", "aws-eu1", "the seed is in use by shoots")
    with pytest.raises(Forbidden, match=r"the seed is in use by shoots \(1, for example garden-dev/apollo\)"):
        await kit.store.delete(seed, preconditions=[guard])
    marked = stored(await kit.store.delete(shoot))
    with pytest.raises(Forbidden):
        await kit.store.delete(seed, preconditions=[guard])
    await kit.changed(marked, merged(marked.document(), {"metadata": {"finalizers": []}}))
    assert await kit.store.delete(seed, preconditions=[guard]) is None


async def test_a_guard_holds_what_others_refer_to(kit: StoreUnderTest) -> None:
    profile = await kit.created(a_cloudprofile())
    shoot = await kit.created(a_shoot())
    guard = WritePrecondition("references", profile.key.stored, "the profile is in use")
    with pytest.raises(Forbidden, match=r"the profile is in use \(1, for example shoot garden-dev/apollo\)"):
        await kit.store.delete(profile, preconditions=[guard])
    await kit.changed(shoot, merged(shoot.document(), {"spec": {"cloudProfile": {"name": "gcp"}}}))
    own = await kit.created(a_namespaced_cloudprofile())
    with pytest.raises(Forbidden, match="namespacedcloudprofile garden-dev/own"):
        await kit.store.delete(profile, preconditions=[guard])
    await kit.store.delete(own)
    assert await kit.store.delete(profile, preconditions=[guard]) is None


PART = "cloudprofile:_:aws#machineTypes/m5.large"


async def test_a_part_of_a_profile_is_used_until_its_shoots_are_deleted_or_changed(kit: StoreUnderTest) -> None:
    profile = await kit.created(a_cloudprofile())
    shoots = [await kit.created(a_shoot(name, metadata={"finalizers": ["held"]})) for name in ("a", "b", "c", "d")]
    fewer = merged(profile.document(), {"spec": {"machineTypes": []}})
    guard = WritePrecondition("references", PART, "m5.large is in use")

    with pytest.raises(Forbidden, match=r"m5\.large is in use \(4, for example (shoot garden-dev/[a-d](, )?){3}\)"):
        await kit.store.update(profile, fewer, preconditions=[guard])
    for shoot in shoots[:2]:
        await kit.store.delete(shoot)
    changed = merged(shoots[2].document(), {"spec": {"provider": {"workers": []}}})
    await kit.changed(shoots[2], changed)
    with pytest.raises(Forbidden, match=r"\(1, for example shoot garden-dev/d\)"):
        await kit.store.update(profile, fewer, preconditions=[guard])
    deleting = stored(await kit.store.delete(shoots[3]))
    await kit.changed(deleting, merged(deleting.document(), {"status": {"lastOperation": {"type": "Delete"}}}))
    profile = stored(await kit.store.update(profile, fewer, preconditions=[guard]))
    with pytest.raises(Forbidden, match=r"in use \(4"):
        await kit.store.delete(
            profile, preconditions=[WritePrecondition("references", profile.key.stored, "it is in use")]
        )


async def test_a_claim_holds_others_until_its_holder_is_being_deleted(kit: StoreUnderTest) -> None:
    namespace = await kit.created({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden-dev"}})
    project = await kit.created(a_project(metadata={"finalizers": ["gardener"]}))
    guard = WritePrecondition("claim", "namespace/garden-dev", "it is a project's")
    with pytest.raises(Forbidden, match="it is a project's: delete project dev first, with gardenbus delete project"):
        await kit.store.delete(namespace, preconditions=[guard])
    await kit.store.delete(project)
    assert await kit.store.delete(namespace, preconditions=[guard]) is None


async def test_the_first_guard_that_holds_is_named(kit: StoreUnderTest) -> None:
    profile = await kit.created(a_cloudprofile())
    await kit.created(a_shoot())
    preconditions = [
        WritePrecondition("usage", "nowhere", "not this one"),
        WritePrecondition("references", profile.key.stored, "but this one"),
        WritePrecondition("references", "namespace:_:garden-dev", "nor that one"),
    ]
    with pytest.raises(Forbidden, match="but this one"):
        await kit.store.delete(profile, preconditions=preconditions)
    assert await kit.now(profile.key) == profile
