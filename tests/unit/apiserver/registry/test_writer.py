"""Requests are carried out on the store."""

from typing import Any

import pytest

from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import Missing, StaleVersion, UnmetDependency, WriteResult
from gardenbus.apiserver.registry.seed_binder import SeedBinder
from gardenbus.apiserver.registry.writer import REQUEST_REPLY, Writer
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.request_bodies import BindRequest
from gardenbus.common.errors import BadRequest, Conflict, Forbidden, InvalidResource, Unavailable
from gardenbus.common.ports.store import RequestOrigin
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
CONFIRMED = {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}


class Registry:
    """A writer on a store in memory; every request reads anew."""

    def __init__(self, **options: Any) -> None:
        clock = FakeClock()
        self.store = MemoryStore(clock, **options)
        self.manifests = ManifestCache(self.store)
        self.writer = Writer(self.store, clock)
        self.seed_binder = SeedBinder(self.store, clock)

    def reads(self) -> ReadCache:
        return ReadCache(self.store, self.manifests)

    async def apply(self, document: Document, origin: RequestOrigin | None = None) -> WriteResult:
        return await self.writer.apply(document, self.reads(), user="ann", origin=origin)

    async def patch(self, key: ObjectKey, patch: Document) -> WriteResult:
        return await self.writer.patch(key, patch, self.reads(), user="ann")

    async def delete(self, key: ObjectKey, origin: RequestOrigin | None = None) -> WriteResult:
        return await self.writer.delete(key, self.reads(), origin=origin)

    async def bind(self, seed: str, resource_version: str = "") -> WriteResult:
        requested = BindRequest(APOLLO.namespace, APOLLO.name, seed, resource_version)
        return await self.seed_binder.bind(requested, self.reads(), user="ann")

    async def now(self, key: ObjectKey = APOLLO) -> StoredObject:
        stored = await self.store.get(key)
        assert stored is not None
        return stored


@pytest.fixture
async def registry() -> Registry:
    registry = Registry()
    for document in (a_project(), a_cloudprofile(), a_seed()):
        await registry.apply(document)
    return registry


async def test_a_shoot_is_created_with_its_defaults_and_its_label(registry: Registry) -> None:
    written = await registry.apply(a_shoot())

    assert written.outcome == "created"
    document = (await registry.now()).document()
    assert document["metadata"]["labels"]["shoot.gardener.cloud/status"] == "healthy"
    assert document["metadata"]["annotations"]["gardener.cloud/created-by"] == "ann"
    assert document["spec"]["networking"]["ipFamilies"] == ["IPv4"]


async def test_the_same_manifest_twice_changes_nothing(registry: Registry) -> None:
    first = await registry.apply(a_shoot())
    second = await registry.apply(a_shoot())

    assert first.stored is not None
    assert second.stored is not None
    assert (second.outcome, second.stored.version) == ("unchanged", first.stored.version)


async def test_a_field_that_is_left_out_goes_and_what_others_set_stays(registry: Registry) -> None:
    await registry.apply(a_shoot(metadata={"labels": {"mine": "1"}}))
    await registry.patch(APOLLO, {"metadata": {"labels": {"theirs": "2"}}})
    await registry.apply(a_shoot())

    assert (await registry.now()).document()["metadata"]["labels"] == {
        "theirs": "2",
        "shoot.gardener.cloud/status": "healthy",
        "networking.extensions.gardener.cloud/calico": "true",
        "provider.extensions.gardener.cloud/aws": "true",
    }


async def test_status_is_ignored_with_a_warning(registry: Registry) -> None:
    written = await registry.apply(a_shoot(status={"technicalID": "forged"}))

    assert any("status is ignored" in warning for warning in written.warnings)
    assert "status" not in (await registry.now()).document()


async def test_an_old_version_is_refused(registry: Registry) -> None:
    written = await registry.apply(a_shoot())
    assert written.stored is not None
    version = str(written.stored.version)
    await registry.apply(a_shoot(metadata={"resourceVersion": version, "labels": {"a": "1"}}))

    with pytest.raises(StaleVersion, match=r"metadata\.resourceVersion"):
        await registry.apply(a_shoot(metadata={"resourceVersion": version, "labels": {"a": "2"}}))
    with pytest.raises(StaleVersion):
        await registry.apply(a_shoot("new", metadata={"resourceVersion": version}))


async def test_a_write_that_lost_is_worked_out_again(registry: Registry) -> None:
    await registry.apply(a_shoot())
    registry.store.redis.conflicts = 7

    assert (await registry.apply(a_shoot(metadata={"labels": {"a": "1"}}))).outcome == "configured"


async def test_an_object_that_others_change_all_the_time_is_a_conflict_in_the_end(registry: Registry) -> None:
    await registry.apply(a_shoot())
    registry.store.redis.conflicts = 1_000

    with pytest.raises(Conflict, match="keeps changing"):
        await registry.apply(a_shoot(metadata={"labels": {"a": "1"}}))


async def test_a_patch_changes_what_it_names(registry: Registry) -> None:
    await registry.apply(a_shoot())
    written = await registry.patch(APOLLO, {"spec": {"purpose": "production"}, "status": {"technicalID": "x"}})

    assert written.warnings
    document = (await registry.now()).document()
    assert (document["spec"]["purpose"], document["metadata"]["generation"]) == ("production", 2)


@pytest.mark.parametrize("patch", [{"kind": "Seed"}, {"metadata": {"name": "b"}}, {"metadata": None}])
async def test_a_patch_makes_no_other_object_of_it(registry: Registry, patch: Document) -> None:
    await registry.apply(a_shoot())

    with pytest.raises(BadRequest):
        await registry.patch(APOLLO, patch)


async def test_what_is_not_there_cannot_be_patched_or_deleted(registry: Registry) -> None:
    with pytest.raises(Missing):
        await registry.patch(APOLLO, {})
    with pytest.raises(Missing):
        await registry.delete(APOLLO)


async def test_a_wrong_field_is_named(registry: Registry) -> None:
    with pytest.raises(InvalidResource) as rejection:
        await registry.apply(a_shoot(spec={"provider": {"type": 5}}))

    assert rejection.value.problems[0].field == "spec.provider.type"


async def test_a_deletion_needs_its_confirmation(registry: Registry) -> None:
    await registry.apply(a_shoot())
    with pytest.raises(UnmetDependency) as rejection:
        await registry.delete(APOLLO)
    assert isinstance(rejection.value.error, Forbidden)

    await registry.patch(APOLLO, {"metadata": CONFIRMED})
    assert (await registry.delete(APOLLO)).outcome == "deleted"


async def test_one_subject_does_not_relabel_confirm_and_delete_what_takes_two(registry: Registry) -> None:
    rule = {"resource": "shoots", "selector": {"matchLabels": {"env": "prod"}}}
    await registry.apply(a_project(spec={"dualApprovalForDeletion": [rule]}))
    await registry.apply(a_shoot(metadata={"labels": {"env": "prod"}}))
    relabelled = {"metadata": {"labels": {"env": None}}}
    with pytest.raises(UnmetDependency, match=r"metadata\.labels: spec\.dualApprovalForDeletion") as rejection:
        await registry.patch(APOLLO, relabelled)
    assert isinstance(rejection.value.error, Forbidden)
    with pytest.raises(UnmetDependency):
        await registry.apply(a_shoot())
    await registry.patch(APOLLO, {"metadata": CONFIRMED})
    with pytest.raises(UnmetDependency, match="another subject"):
        await registry.writer.delete(APOLLO, registry.reads(), user="ann")

    await registry.apply(a_project())
    await registry.patch(APOLLO, relabelled)
    assert (await registry.writer.delete(APOLLO, registry.reads(), user="ann")).outcome == "deleted"


async def test_a_profile_in_use_is_not_deleted(registry: Registry) -> None:
    await registry.apply(a_shoot())

    with pytest.raises(UnmetDependency, match="in use"):
        await registry.delete(ObjectKey("cloudprofile", "", "aws"))


async def test_an_older_request_is_superseded(registry: Registry) -> None:
    await registry.apply(a_shoot(metadata={"labels": {"a": "new"}}), origin=RequestOrigin(1, 8))
    written = await registry.apply(a_shoot(metadata={"labels": {"a": "old"}}), origin=RequestOrigin(1, 7))

    assert written.outcome == "superseded"
    assert (await registry.now()).document()["metadata"]["labels"]["a"] == "new"


async def test_a_redelivered_apply_does_not_raise_what_was_deleted(registry: Registry) -> None:
    await registry.apply(a_shoot(metadata=CONFIRMED), origin=RequestOrigin(1, 7))
    await registry.delete(APOLLO, origin=RequestOrigin(1, 8))

    assert (await registry.apply(a_shoot(), origin=RequestOrigin(1, 7))).outcome == "superseded"
    assert await registry.store.get(APOLLO) is None


async def test_answered_requests_at_one_place_of_the_order_all_count(registry: Registry) -> None:
    origin = RequestOrigin(1, 7, REQUEST_REPLY)
    for label in ("a", "b", "c"):
        await registry.apply(a_shoot(metadata={"labels": {"l": label}}), origin=origin)
    assert (await registry.now()).document()["metadata"]["labels"]["l"] == "c"

    assert (await registry.apply(a_shoot(), origin=RequestOrigin(1, 7))).outcome == "superseded"
    assert (await registry.apply(a_shoot(), origin=RequestOrigin(1, 8))).outcome == "configured"


async def test_a_redelivered_request_is_known(registry: Registry) -> None:
    await registry.apply(a_shoot(), origin=RequestOrigin(1, 7))

    assert await registry.writer.is_superseded(APOLLO, RequestOrigin(1, 7), registry.reads())
    for _ in range(2):
        assert not await registry.writer.is_superseded(APOLLO, RequestOrigin(1, 8), registry.reads())


async def test_a_shoot_is_bound_by_name(registry: Registry) -> None:
    await registry.apply(a_shoot())
    written = await registry.bind("aws-eu1")

    assert written.stored is not None
    document = written.stored.document()
    assert document["spec"]["seedName"] == "aws-eu1"
    assert document["metadata"]["finalizers"] == ["gardener"]
    with pytest.raises(StaleVersion, match="already assigned to the same seed"):
        await registry.bind("aws-eu1")


async def test_a_binding_fills_in_what_the_seed_prescribes(registry: Registry) -> None:
    await registry.apply(a_seed("dns", spec={"dns": {"defaults": [{"domain": "gardens.example"}]}}))
    await registry.apply(a_shoot())
    written = await registry.bind("dns")

    assert written.stored is not None
    assert written.stored.document()["spec"]["dns"] == {"domain": "apollo.dev.gardens.example"}


async def test_a_binding_that_cannot_be_is_refused_with_its_reason(registry: Registry) -> None:
    await registry.apply(a_shoot())
    await registry.apply(a_seed("tainted", spec={"taints": [{"key": "special"}]}))

    with pytest.raises(Missing, match="seed nowhere"):
        await registry.bind("nowhere")
    with pytest.raises(Forbidden, match="special"):
        await registry.bind("tainted")
    with pytest.raises(StaleVersion):
        await registry.bind("aws-eu1", resource_version="1")


async def test_a_full_seed_takes_no_binding(registry: Registry) -> None:
    stored = await registry.now(ObjectKey("seed", "", "aws-eu1"))
    await registry.store.update(stored, {**stored.document(), "status": {"allocatable": {"shoots": "1"}}})
    await registry.apply(a_shoot("first", spec={"seedName": "aws-eu1"}))
    await registry.apply(a_shoot())

    with pytest.raises(Forbidden, match="maximum number of shoots"):
        await registry.bind("aws-eu1")
    with pytest.raises(UnmetDependency, match="maximum number of shoots"):
        await registry.apply(a_shoot("third", spec={"seedName": "aws-eu1"}))


async def test_a_project_is_found_by_its_namespace_even_when_it_has_just_come(registry: Registry) -> None:
    tolerations = {"tolerations": {"defaults": [{"key": "special"}], "whitelist": [{"key": "special"}]}}
    reads = registry.reads()
    await registry.writer.apply(a_shoot("early", "garden-late"), reads, user="ann")
    await registry.writer.apply(a_project("late", spec=tolerations), reads, user="ann")
    written = await registry.writer.apply(a_shoot("apollo", "garden-late"), reads, user="ann")

    assert written.stored is not None
    assert written.stored.document()["spec"]["tolerations"] == [{"key": "special"}]


async def test_what_was_meant_for_an_object_that_is_gone_is_not_done_to_its_successor(registry: Registry) -> None:
    first = (await registry.apply(a_shoot(metadata=CONFIRMED))).stored
    assert first is not None
    await registry.delete(APOLLO)
    manifest = a_shoot(metadata={**CONFIRMED, "uid": first.uid})
    assert (await registry.apply(manifest)).outcome == "created"

    with pytest.raises(StaleVersion, match=r"metadata\.uid"):
        await registry.apply(manifest)
    with pytest.raises(StaleVersion, match=r"metadata\.uid"):
        await registry.patch(APOLLO, {"metadata": {"uid": first.uid, "labels": {"a": "b"}}})
    uid = (await registry.now()).uid
    assert (await registry.patch(APOLLO, {"metadata": {"uid": uid, "labels": {"a": "b"}}})).outcome == "configured"


async def test_nobody_takes_hold_of_what_is_being_deleted(registry: Registry) -> None:
    held = {**CONFIRMED, "finalizers": ["example.org/one", "example.org/two"]}
    await registry.apply(a_shoot(metadata=held))
    assert (await registry.delete(APOLLO)).outcome == "deleting"

    with pytest.raises(InvalidResource, match="finalizers: none can be added"):
        await registry.patch(APOLLO, {"metadata": {"finalizers": ["example.org/one", "example.org/three"]}})
    await registry.patch(APOLLO, {"metadata": {"finalizers": ["example.org/two"]}})
    assert (await registry.patch(APOLLO, {"metadata": {"finalizers": None}})).outcome == "deleted"


async def test_an_operation_raises_the_generation(registry: Registry) -> None:
    await registry.apply(a_shoot())
    stored = await registry.now()
    status = {"lastOperation": {"type": "Create", "state": "Succeeded"}}
    await registry.store.update(stored, {**stored.document(), "status": status})
    await registry.patch(APOLLO, {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}})

    stored = await registry.now()
    assert stored.generation == 2
    assert "gardener.cloud/operation" not in stored.document()["metadata"]["annotations"]


async def test_a_second_primary_registration_of_an_extension_is_refused_until_the_first_gives_way(
    registry: Registry,
) -> None:
    def named(name: str, **resource: Any) -> Document:
        resources = [{"kind": "Infrastructure", "type": "aws", **resource}]
        header = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "ControllerRegistration"}
        return {**header, "metadata": {"name": name}, "spec": {"resources": resources}}

    await registry.apply(named("one"))
    with pytest.raises(UnmetDependency, match="the ControllerRegistration one is primary for Infrastructure"):
        await registry.apply(named("two"))
    with pytest.raises(InvalidResource, match=r"primary: stays true: seeds go by it; take the resource off first"):
        await registry.apply(named("one", primary=False))
    await registry.patch(ObjectKey("controllerregistration", "", "one"), {"spec": {"resources": []}})
    assert (await registry.apply(named("two"))).outcome == "created"
    with pytest.raises(UnmetDependency, match="the ControllerRegistration two is primary"):
        await registry.apply(named("one"))


async def test_the_spec_of_a_shoot_that_is_being_deleted_stays(registry: Registry) -> None:
    shoot = a_shoot(metadata={**CONFIRMED, "finalizers": ["example.org/hold"]})
    await registry.apply(shoot)
    await registry.delete(APOLLO)

    with pytest.raises(UnmetDependency, match=r"^spec\.purpose: cannot be changed while the shoot is being deleted"):
        await registry.patch(APOLLO, {"spec": {"purpose": "testing"}})

    assert (await registry.apply(shoot)).outcome == "unchanged"
    assert (await registry.patch(APOLLO, {"metadata": {"labels": {"team": "moon"}}})).outcome == "configured"
    assert (await registry.patch(APOLLO, {"metadata": {"finalizers": None}})).outcome == "deleted"


async def test_what_is_missing_in_reads_that_do_not_count_yet_is_not_said_to_be_gone(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def confirm_reads() -> None:
        raise Unavailable("0 of 1 Redis replicas have it")

    monkeypatch.setattr(registry.store, "confirm_reads", confirm_reads)
    with pytest.raises(Unavailable):
        await registry.delete(APOLLO)
