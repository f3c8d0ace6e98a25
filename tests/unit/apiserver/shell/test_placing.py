"""Shoots are bound on the store, placed ones too."""

from typing import Any

import pytest

from gardenbus.apiserver.reconcilers.attempts import StaleVersion, Written
from gardenbus.apiserver.reconcilers.placing import BindBody, Placer
from gardenbus.apiserver.reconcilers.preconditions import Condition
from gardenbus.apiserver.reconcilers.reads import Library, Reads
from gardenbus.apiserver.reconcilers.writing import Writer
from gardenbus.common.adapters.memory_store import MemoryStore
from gardenbus.common.errors import Conflict, Forbidden, Unavailable
from gardenbus.common.ports.store import EventRecord, Guard, RequestOrigin, Superseded
from gardenbus.common.resources.document import Document, StoredObject, section
from gardenbus.common.resources.keys import ObjectKey
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged
from tests.support.clocks import FakeClock

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")


class RestlessStore(MemoryStore):
    """A store in which somebody touches a seed right before the next updates of shoots, and Events may get lost."""

    touches = 0
    loses_events = False

    async def update(self, base: StoredObject, document: Document, **options: Any) -> StoredObject | Superseded:
        if self.touches and base.key.kind == "shoot":
            self.touches -= 1
            seed = await self.get(ObjectKey("seed", "", str(section(document, "spec")["seedName"])))
            assert seed is not None
            relabelled = merged(seed.document(), {"metadata": {"labels": {"touched": str(self.touches)}}})
            await super().update(seed, relabelled)
        return await super().update(base, document, **options)

    async def record_event(self, event: EventRecord) -> None:
        if self.loses_events:
            raise Unavailable("the outbox is full")
        await super().record_event(event)


class Desk:
    """A placer on a store in memory."""

    def __init__(self) -> None:
        clock = FakeClock()
        self.store = RestlessStore(clock)
        self.library = Library(self.store)
        self.writer = Writer(self.store, clock)
        self.placer = Placer(self.store, clock)

    async def apply(self, document: Document) -> None:
        await self.writer.apply(document, Reads(self.store, self.library), user="ann")

    async def bind(self, seed: str, condition: Condition | None = None, **asked: Any) -> Written:
        body = BindBody(APOLLO.namespace, asked.pop("name", APOLLO.name), seed, **asked)
        return await self.placer.bind(body, Reads(self.store, self.library), user="ann", condition=condition)

    async def now(self, key: ObjectKey = APOLLO) -> StoredObject:
        stored = await self.store.get(key)
        assert stored is not None
        return stored


@pytest.fixture
async def desk() -> Desk:
    desk = Desk()
    for document in (a_project(), a_cloudprofile(), a_project("garden", "garden")):
        await desk.apply(document)
    for name in ("here", "there"):
        await desk.apply(a_seed(name, spec={"backup": {"provider": "aws"}}))
    await desk.apply(a_shoot(spec={"seedName": "here"}))
    return desk


async def test_a_move_that_lost_is_decided_again(desk: Desk) -> None:
    desk.store.conflicts = 7
    assert (await desk.bind("there")).outcome == "configured"


async def test_a_seed_that_changes_under_the_move_is_looked_at_again(desk: Desk) -> None:
    desk.store.touches = 3
    await desk.bind("there")
    assert (await desk.now()).parts.seed_name == "there"
    desk.store.touches = 1_000
    with pytest.raises(Conflict, match="all the time"):
        await desk.bind("here")


async def test_a_move_is_done_even_if_its_event_is_lost(desk: Desk) -> None:
    desk.store.loses_events = True
    assert (await desk.bind("there")).outcome == "configured"


async def test_the_version_that_was_seen_counts(desk: Desk) -> None:
    version = str((await desk.now()).version)
    with pytest.raises(StaleVersion):
        await desk.bind("there", resource_version="1")
    await desk.bind("there", resource_version=version)
    with pytest.raises(StaleVersion):
        await desk.bind("here", resource_version=version)


async def test_a_condition_is_held_by_the_store_too(desk: Desk) -> None:
    basis = await desk.now(ObjectKey("project", "", "dev"))
    outdated = Guard("version", basis.key.stored, "the basis", version=basis.version + 1)
    with pytest.raises(Conflict, match="the basis"):
        await desk.store.update(await desk.now(), (await desk.now()).document() | {"x": 1}, guards=[outdated])
    with pytest.raises(StaleVersion, match="depends on"):
        await desk.bind("there", Condition(basis.key, basis.version + 1))
    await desk.bind("there", Condition(basis.key, basis.version))


async def test_a_shoot_moves_to_no_seed_that_it_hosts(desk: Desk) -> None:
    shoot = ObjectKey("shoot", "garden", "child")
    await desk.apply(a_shoot("child", "garden", spec={"seedName": "here", "dns": {"domain": "child.example"}}))
    managed_seed: Document = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {"name": "child", "namespace": "garden"},
        "spec": {"shoot": {"name": "child"}, "gardenlet": {}},
    }
    await desk.apply(managed_seed)
    await desk.apply(a_seed("child", spec={"backup": {"provider": "aws"}}))
    asked = BindBody("garden", "child", "child")

    with pytest.raises(Forbidden, match="hosted by this shoot"):
        await desk.placer.bind(asked, Reads(desk.store, desk.library), user="ann")
    assert (await desk.now(shoot)).parts.seed_name == "here"


async def test_a_durable_request_from_before_the_move_does_not_bring_it_back(desk: Desk) -> None:
    await desk.bind("there")
    reads = Reads(desk.store, desk.library)
    old = a_shoot(metadata={"labels": {"a": "b"}})
    await desk.writer.apply(old, reads, user="ann", origin=RequestOrigin(1, 1))

    assert (await desk.now()).parts.seed_name == "there"
