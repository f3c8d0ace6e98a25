"""Shoots are bound on the store, placed ones too."""

from typing import Any

import pytest

from gardenbus.apiserver.registry.preconditions import Precondition
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import StaleVersion, WriteResult
from gardenbus.apiserver.registry.seed_binder import SeedBinder
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.request_bodies import BindRequest
from gardenbus.common.errors import Conflict, Forbidden, Unavailable
from gardenbus.common.ports.store import EventRecord, RequestOrigin, Superseded, WritePrecondition
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore

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


class Registry:
    """A placer on a store in memory."""

    def __init__(self) -> None:
        clock = FakeClock()
        self.store = RestlessStore(clock)
        self.manifests = ManifestCache(self.store)
        self.writer = Writer(self.store, clock)
        self.seed_binder = SeedBinder(self.store, clock)

    async def apply(self, document: Document) -> None:
        await self.writer.apply(document, ReadCache(self.store, self.manifests), user="ann")

    async def bind(self, seed: str, condition: Precondition | None = None, **requested: Any) -> WriteResult:
        body = BindRequest(APOLLO.namespace, requested.pop("name", APOLLO.name), seed, **requested)
        return await self.seed_binder.bind(body, ReadCache(self.store, self.manifests), user="ann", condition=condition)

    async def now(self, key: ObjectKey = APOLLO) -> StoredObject:
        stored = await self.store.get(key)
        assert stored is not None
        return stored


@pytest.fixture
async def registry() -> Registry:
    registry = Registry()
    for document in (a_project(), a_cloudprofile(), a_project("garden", "garden")):
        await registry.apply(document)
    for name in ("here", "there"):
        await registry.apply(a_seed(name, spec={"backup": {"provider": "aws"}}))
    await registry.apply(a_shoot(spec={"seedName": "here"}))
    return registry


async def test_a_shoot_is_not_moved_while_somebody_may_be_inside(registry: Registry) -> None:
    for name, shoot in (("door", "apollo"), ("other", "artemis")):
        await registry.store.create(
            {
                "apiVersion": "operations.gardener.cloud/v1alpha1",
                "kind": "Bastion",
                "metadata": {"name": name, "namespace": "garden-dev"},
                "spec": {"shootRef": {"name": shoot}},
            }
        )
    await registry.store.update(
        await registry.now(), merged((await registry.now()).document(), {"status": {"seedName": "here"}})
    )
    with pytest.raises(Forbidden, match=r"has a bastion \(door\)"):
        await registry.bind("there")
    await registry.store.delete(await registry.now(ObjectKey("bastion", "garden-dev", "door")))
    assert (await registry.bind("there")).outcome == "configured"


async def test_a_move_that_lost_is_decided_again(registry: Registry) -> None:
    registry.store.redis.conflicts = 7
    assert (await registry.bind("there")).outcome == "configured"


async def test_a_seed_that_changes_under_the_move_is_looked_at_again(registry: Registry) -> None:
    registry.store.touches = 3
    await registry.bind("there")
    assert (await registry.now()).parts.seed_name == "there"
    registry.store.touches = 1_000
    with pytest.raises(Conflict, match="keeps changing"):
        await registry.bind("here")


async def test_a_move_is_done_even_if_its_event_is_lost(registry: Registry) -> None:
    registry.store.loses_events = True
    assert (await registry.bind("there")).outcome == "configured"


async def test_the_version_that_was_seen_counts(registry: Registry) -> None:
    version = str((await registry.now()).version)
    with pytest.raises(StaleVersion):
        await registry.bind("there", resource_version="1")
    await registry.bind("there", resource_version=version)
    with pytest.raises(StaleVersion):
        await registry.bind("here", resource_version=version)


async def test_a_condition_is_held_by_the_store_too(registry: Registry) -> None:
    basis = await registry.now(ObjectKey("project", "", "dev"))
    outdated = WritePrecondition("version", basis.key.stored, "the basis", version=basis.version + 1)
    with pytest.raises(Conflict, match="the basis"):
        await registry.store.update(
            await registry.now(), (await registry.now()).document() | {"x": 1}, preconditions=[outdated]
        )
    with pytest.raises(StaleVersion, match="depends on"):
        await registry.bind("there", Precondition(basis.key, basis.version + 1))
    await registry.bind("there", Precondition(basis.key, basis.version))


async def test_a_shoot_moves_to_no_seed_that_it_hosts(registry: Registry) -> None:
    shoot = ObjectKey("shoot", "garden", "child")
    await registry.apply(a_shoot("child", "garden", spec={"seedName": "here", "dns": {"domain": "child.example"}}))
    managed_seed: Document = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {"name": "child", "namespace": "garden"},
        "spec": {"shoot": {"name": "child"}, "gardenlet": {}},
    }
    await registry.apply(managed_seed)
    await registry.apply(a_seed("child", spec={"backup": {"provider": "aws"}}))
    requested = BindRequest("garden", "child", "child")

    with pytest.raises(Forbidden, match="hosted by this shoot"):
        await registry.seed_binder.bind(requested, ReadCache(registry.store, registry.manifests), user="ann")
    assert (await registry.now(shoot)).parts.seed_name == "here"


async def test_a_durable_request_from_before_the_move_does_not_bring_it_back(registry: Registry) -> None:
    await registry.bind("there")
    reads = ReadCache(registry.store, registry.manifests)
    old = a_shoot(metadata={"labels": {"a": "b"}})
    await registry.writer.apply(old, reads, user="ann", origin=RequestOrigin(1, 1))

    assert (await registry.now()).parts.seed_name == "there"
