"""Requests are carried out on the store."""

from typing import Any

import pytest

from gardenbus.apiserver.reconcilers.attempts import Contingent, Missing, StaleVersion, Written
from gardenbus.apiserver.reconcilers.placing import BindBody, Placer
from gardenbus.apiserver.reconcilers.reads import Library, Reads
from gardenbus.apiserver.reconcilers.writing import ANSWERED, Writer
from gardenbus.common.adapters.memory_store import MemoryStore
from gardenbus.common.errors import BadRequest, Conflict, Forbidden, InvalidResource
from gardenbus.common.ports.store import RequestOrigin
from gardenbus.common.resources.document import Document, StoredObject
from gardenbus.common.resources.keys import ObjectKey
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.clocks import FakeClock

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
CONFIRMED = {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}


class Desk:
    """A writer on a store in memory; every request reads anew."""

    def __init__(self, **options: Any) -> None:
        clock = FakeClock()
        self.store = MemoryStore(clock, **options)
        self.library = Library(self.store)
        self.writer = Writer(self.store, clock)
        self.placer = Placer(self.store, clock)

    def reads(self) -> Reads:
        return Reads(self.store, self.library)

    async def apply(self, document: Document, origin: RequestOrigin | None = None) -> Written:
        return await self.writer.apply(document, self.reads(), user="ann", origin=origin)

    async def patch(self, key: ObjectKey, patch: Document) -> Written:
        return await self.writer.patch(key, patch, self.reads(), user="ann")

    async def delete(self, key: ObjectKey, origin: RequestOrigin | None = None) -> Written:
        return await self.writer.delete(key, self.reads(), origin=origin)

    async def bind(self, seed: str, resource_version: str = "") -> Written:
        asked = BindBody(APOLLO.namespace, APOLLO.name, seed, resource_version)
        return await self.placer.bind(asked, self.reads(), user="ann")

    async def now(self, key: ObjectKey = APOLLO) -> StoredObject:
        stored = await self.store.get(key)
        assert stored is not None
        return stored


@pytest.fixture
async def desk() -> Desk:
    desk = Desk()
    for document in (a_project(), a_cloudprofile(), a_seed()):
        await desk.apply(document)
    return desk


async def test_a_shoot_is_created_with_its_defaults_and_its_label(desk: Desk) -> None:
    written = await desk.apply(a_shoot())

    assert written.outcome == "created"
    document = (await desk.now()).document()
    assert document["metadata"]["labels"]["shoot.gardener.cloud/status"] == "healthy"
    assert document["metadata"]["annotations"]["gardener.cloud/created-by"] == "ann"
    assert document["spec"]["networking"]["ipFamilies"] == ["IPv4"]


async def test_the_same_manifest_twice_changes_nothing(desk: Desk) -> None:
    first = await desk.apply(a_shoot())
    second = await desk.apply(a_shoot())

    assert first.stored is not None
    assert second.stored is not None
    assert (second.outcome, second.stored.version) == ("unchanged", first.stored.version)


async def test_a_field_that_is_left_out_goes_and_what_others_set_stays(desk: Desk) -> None:
    await desk.apply(a_shoot(metadata={"labels": {"mine": "1"}}))
    await desk.patch(APOLLO, {"metadata": {"labels": {"theirs": "2"}}})
    await desk.apply(a_shoot())

    assert (await desk.now()).document()["metadata"]["labels"] == {
        "theirs": "2",
        "shoot.gardener.cloud/status": "healthy",
    }


async def test_status_is_ignored_with_a_warning(desk: Desk) -> None:
    written = await desk.apply(a_shoot(status={"technicalID": "forged"}))

    assert any("status is ignored" in warning for warning in written.warnings)
    assert "status" not in (await desk.now()).document()


async def test_an_old_version_is_refused(desk: Desk) -> None:
    written = await desk.apply(a_shoot())
    assert written.stored is not None
    version = str(written.stored.version)
    await desk.apply(a_shoot(metadata={"resourceVersion": version, "labels": {"a": "1"}}))

    with pytest.raises(StaleVersion, match=r"metadata\.resourceVersion"):
        await desk.apply(a_shoot(metadata={"resourceVersion": version, "labels": {"a": "2"}}))
    with pytest.raises(StaleVersion):
        await desk.apply(a_shoot("new", metadata={"resourceVersion": version}))


async def test_a_write_that_lost_is_worked_out_again(desk: Desk) -> None:
    await desk.apply(a_shoot())
    desk.store.conflicts = 7

    assert (await desk.apply(a_shoot(metadata={"labels": {"a": "1"}}))).outcome == "configured"


async def test_an_object_that_others_change_all_the_time_is_a_conflict_in_the_end(desk: Desk) -> None:
    await desk.apply(a_shoot())
    desk.store.conflicts = 1_000

    with pytest.raises(Conflict, match="all the time"):
        await desk.apply(a_shoot(metadata={"labels": {"a": "1"}}))


async def test_a_patch_changes_what_it_names(desk: Desk) -> None:
    await desk.apply(a_shoot())
    written = await desk.patch(APOLLO, {"spec": {"purpose": "production"}, "status": {"technicalID": "x"}})

    assert written.warnings
    document = (await desk.now()).document()
    assert (document["spec"]["purpose"], document["metadata"]["generation"]) == ("production", 2)


@pytest.mark.parametrize("patch", [{"kind": "Seed"}, {"metadata": {"name": "b"}}, {"metadata": None}])
async def test_a_patch_makes_no_other_object_of_it(desk: Desk, patch: Document) -> None:
    await desk.apply(a_shoot())

    with pytest.raises(BadRequest):
        await desk.patch(APOLLO, patch)


async def test_what_is_not_there_cannot_be_patched_or_deleted(desk: Desk) -> None:
    with pytest.raises(Missing):
        await desk.patch(APOLLO, {})
    with pytest.raises(Missing):
        await desk.delete(APOLLO)


async def test_a_wrong_field_is_named(desk: Desk) -> None:
    with pytest.raises(InvalidResource) as refusal:
        await desk.apply(a_shoot(spec={"provider": {"type": 5}}))

    assert refusal.value.problems[0].field == "spec.provider.type"


async def test_a_deletion_needs_its_confirmation(desk: Desk) -> None:
    await desk.apply(a_shoot())
    with pytest.raises(Contingent) as refusal:
        await desk.delete(APOLLO)
    assert isinstance(refusal.value.error, Forbidden)

    await desk.patch(APOLLO, {"metadata": CONFIRMED})
    assert (await desk.delete(APOLLO)).outcome == "deleted"


async def test_a_profile_in_use_is_not_deleted(desk: Desk) -> None:
    await desk.apply(a_shoot())

    with pytest.raises(Contingent, match="in use"):
        await desk.delete(ObjectKey("cloudprofile", "", "aws"))


async def test_an_older_request_is_superseded(desk: Desk) -> None:
    await desk.apply(a_shoot(metadata={"labels": {"a": "new"}}), origin=RequestOrigin(1, 8))
    written = await desk.apply(a_shoot(metadata={"labels": {"a": "old"}}), origin=RequestOrigin(1, 7))

    assert written.outcome == "superseded"
    assert (await desk.now()).document()["metadata"]["labels"]["a"] == "new"


async def test_a_redelivered_apply_does_not_raise_what_was_deleted(desk: Desk) -> None:
    await desk.apply(a_shoot(metadata=CONFIRMED), origin=RequestOrigin(1, 7))
    await desk.delete(APOLLO, origin=RequestOrigin(1, 8))

    assert (await desk.apply(a_shoot(), origin=RequestOrigin(1, 7))).outcome == "superseded"
    assert await desk.store.get(APOLLO) is None


async def test_answered_requests_at_one_place_of_the_order_all_count(desk: Desk) -> None:
    origin = RequestOrigin(1, 7, ANSWERED)
    for label in ("a", "b", "c"):
        await desk.apply(a_shoot(metadata={"labels": {"l": label}}), origin=origin)
    assert (await desk.now()).document()["metadata"]["labels"]["l"] == "c"

    assert (await desk.apply(a_shoot(), origin=RequestOrigin(1, 7))).outcome == "superseded"
    assert (await desk.apply(a_shoot(), origin=RequestOrigin(1, 8))).outcome == "configured"


async def test_a_redelivered_request_is_known(desk: Desk) -> None:
    await desk.apply(a_shoot(), origin=RequestOrigin(1, 7))

    assert await desk.writer.is_superseded(APOLLO, RequestOrigin(1, 7), desk.reads())
    for _ in range(2):
        assert not await desk.writer.is_superseded(APOLLO, RequestOrigin(1, 8), desk.reads())


async def test_a_shoot_is_bound_by_name(desk: Desk) -> None:
    await desk.apply(a_shoot())
    written = await desk.bind("aws-eu1")

    assert written.stored is not None
    document = written.stored.document()
    assert document["spec"]["seedName"] == "aws-eu1"
    assert document["metadata"]["finalizers"] == ["gardener"]
    with pytest.raises(StaleVersion, match="already assigned to the same seed"):
        await desk.bind("aws-eu1")


async def test_a_binding_fills_in_what_the_seed_prescribes(desk: Desk) -> None:
    await desk.apply(a_seed("dns", spec={"dns": {"defaults": [{"domain": "gardens.example"}]}}))
    await desk.apply(a_shoot())
    written = await desk.bind("dns")

    assert written.stored is not None
    assert written.stored.document()["spec"]["dns"] == {"domain": "apollo.dev.gardens.example"}


async def test_a_binding_that_cannot_be_is_refused_with_its_reason(desk: Desk) -> None:
    await desk.apply(a_shoot())
    await desk.apply(a_seed("tainted", spec={"taints": [{"key": "special"}]}))

    with pytest.raises(Missing, match="seed nowhere"):
        await desk.bind("nowhere")
    with pytest.raises(Forbidden, match="special"):
        await desk.bind("tainted")
    with pytest.raises(StaleVersion):
        await desk.bind("aws-eu1", resource_version="1")


async def test_a_full_seed_takes_no_binding(desk: Desk) -> None:
    stored = await desk.now(ObjectKey("seed", "", "aws-eu1"))
    await desk.store.update(stored, {**stored.document(), "status": {"allocatable": {"shoots": "1"}}})
    await desk.apply(a_shoot("first", spec={"seedName": "aws-eu1"}))
    await desk.apply(a_shoot())

    with pytest.raises(Forbidden, match="maximum number of shoots"):
        await desk.bind("aws-eu1")
    with pytest.raises(Contingent, match="maximum number of shoots"):
        await desk.apply(a_shoot("third", spec={"seedName": "aws-eu1"}))


async def test_a_project_is_found_by_its_namespace_even_when_it_has_just_come(desk: Desk) -> None:
    tolerations = {"tolerations": {"defaults": [{"key": "special"}], "whitelist": [{"key": "special"}]}}
    reads = desk.reads()
    await desk.writer.apply(a_shoot("early", "garden-late"), reads, user="ann")
    await desk.writer.apply(a_project("late", spec=tolerations), reads, user="ann")
    written = await desk.writer.apply(a_shoot("apollo", "garden-late"), reads, user="ann")

    assert written.stored is not None
    assert written.stored.document()["spec"]["tolerations"] == [{"key": "special"}]


async def test_what_was_meant_for_an_object_that_is_gone_is_not_done_to_its_successor(desk: Desk) -> None:
    first = (await desk.apply(a_shoot(metadata=CONFIRMED))).stored
    assert first is not None
    await desk.delete(APOLLO)
    manifest = a_shoot(metadata={**CONFIRMED, "uid": first.uid})
    assert (await desk.apply(manifest)).outcome == "created"

    with pytest.raises(StaleVersion, match=r"metadata\.uid"):
        await desk.apply(manifest)
    with pytest.raises(StaleVersion, match=r"metadata\.uid"):
        await desk.patch(APOLLO, {"metadata": {"uid": first.uid, "labels": {"a": "b"}}})
    uid = (await desk.now()).uid
    assert (await desk.patch(APOLLO, {"metadata": {"uid": uid, "labels": {"a": "b"}}})).outcome == "configured"


async def test_nobody_takes_hold_of_what_is_being_deleted(desk: Desk) -> None:
    held = {**CONFIRMED, "finalizers": ["example.org/one", "example.org/two"]}
    await desk.apply(a_shoot(metadata=held))
    assert (await desk.delete(APOLLO)).outcome == "deleting"

    with pytest.raises(InvalidResource, match="finalizers: none can be added"):
        await desk.patch(APOLLO, {"metadata": {"finalizers": ["example.org/one", "example.org/three"]}})
    await desk.patch(APOLLO, {"metadata": {"finalizers": ["example.org/two"]}})
    assert (await desk.patch(APOLLO, {"metadata": {"finalizers": None}})).outcome == "deleted"


async def test_an_operation_raises_the_generation(desk: Desk) -> None:
    await desk.apply(a_shoot())
    stored = await desk.now()
    status = {"lastOperation": {"type": "Create", "state": "Succeeded"}}
    await desk.store.update(stored, {**stored.document(), "status": status})
    await desk.patch(APOLLO, {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}})

    stored = await desk.now()
    assert stored.generation == 2
    assert "gardener.cloud/operation" not in stored.document()["metadata"]["annotations"]
