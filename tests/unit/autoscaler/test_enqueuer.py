"""Changes that enqueue an autoscaler."""

from collections.abc import Mapping
from typing import Any

import pytest

from gardenbus.autoscaler.watch.enqueuer import seed_autoscaler_enqueuer
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from tests.support.autoscaling import API, an_autoscaler
from tests.support.builders import NOW, a_condition, a_seed, merged
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore

AUTOSCALER = ObjectKey("seedautoscaler", "garden", "grove")
OWNER = {"apiVersion": API, "kind": "ManagedSeedSet", "name": "grove", "uid": "7", "controller": True}
SET: Document = {
    "apiVersion": API,
    "kind": "ManagedSeedSet",
    "metadata": {"name": "grove", "namespace": "garden"},
    "spec": {"replicas": 1},
}
MANAGED_SEED: Document = {
    "apiVersion": API,
    "kind": "ManagedSeed",
    "metadata": {"name": "grove-0", "namespace": "garden", "ownerReferences": [OWNER]},
    "spec": {"shoot": {"name": "grove-0"}},
}


class FakeLister:
    """Lists objects as an informer does, straight from a store in memory."""

    def __init__(self) -> None:
        self.store = MemoryStore(FakeClock(), reporter="test")
        self.cached: dict[str, dict[ObjectKey, StoredObject]] = {}
        self.enqueued: list[ObjectKey] = []
        self.enqueuer = seed_autoscaler_enqueuer(self, self.enqueued.append)

    def objects(self, kind: str) -> Mapping[ObjectKey, StoredObject]:
        return self.cached.get(kind, {})

    async def comes(self, document: Document) -> StoredObject:
        stored = await self.store.create(document)
        assert isinstance(stored, StoredObject)
        self.cached.setdefault(stored.key.kind, {})[stored.key] = stored
        self.enqueuer.changed(stored.key, None, stored)
        return stored

    async def changes(self, old: StoredObject, changes: Document) -> StoredObject:
        new = await self.store.update(old, merged(old.document(), changes))
        assert isinstance(new, StoredObject)
        self.cached[new.key.kind][new.key] = new
        self.enqueued.clear()
        self.enqueuer.changed(new.key, old, new)
        return new

    def goes(self, old: StoredObject) -> None:
        self.enqueued.clear()
        self.enqueuer.changed(old.key, old, None)


@pytest.fixture
async def lister() -> FakeLister:
    lister = FakeLister()
    await lister.comes(an_autoscaler())
    await lister.comes(an_autoscaler("other"))
    return lister


async def test_an_autoscaler_that_comes_or_asks_for_something_else(lister: FakeLister) -> None:
    assert AUTOSCALER in lister.enqueued
    stored = lister.cached["seedautoscaler"][AUTOSCALER]
    changed = await lister.changes(stored, {"spec": {"minReplicas": 2}})
    assert lister.enqueued == [AUTOSCALER]
    await lister.changes(changed, {"status": {"desiredReplicas": 2}})
    assert lister.enqueued == [], "a reconciliation's own write causes no other"
    lister.goes(stored)
    assert lister.enqueued == []


@pytest.mark.parametrize(
    ("changes", "is_enqueued"),
    [
        ({"spec": {"replicas": 2}}, True),
        ({"status": {"pendingReplica": {"name": "grove-1"}}}, True),
        ({"status": {"conditions": [a_condition("ReplicaUnschedulable")]}}, True),
        ({"status": {"conditions": [a_condition("ReplicaUnschedulable", "False")], "observedGeneration": 1}}, True),
        ({"status": {"readyReplicas": 1}}, False),
        ({"metadata": {"labels": {"a": "b"}}}, False),
    ],
)
async def test_its_set(lister: FakeLister, changes: Document, is_enqueued: bool) -> None:
    managed_seed_set = await lister.comes(SET)
    await lister.changes(managed_seed_set, changes)
    assert lister.enqueued == ([AUTOSCALER] if is_enqueued else [])


@pytest.mark.parametrize(
    ("changes", "is_enqueued"),
    [
        ({"status": {"allocatable": {"shoots": "7"}}}, True),
        ({"status": {"usage": {"cpu": "7"}}}, True),
        ({"status": {"conditions": [a_condition("GardenletReady", "Unknown")]}}, True),
        ({"metadata": {"annotations": {"seedmanagement.gardener.cloud/marked-for-removal": "garden/grove"}}}, True),
        ({"status": {"lastOperation": {"lastUpdateTime": f"{NOW[:-1]}9Z"}}}, False),
    ],
)
async def test_the_seeds_of_its_set(lister: FakeLister, changes: Document, is_enqueued: bool) -> None:
    await lister.comes(MANAGED_SEED)
    seed = await lister.comes(a_seed("grove-0"))
    assert lister.enqueued[-1] == AUTOSCALER
    await lister.changes(seed, changes)
    assert lister.enqueued == ([AUTOSCALER] if is_enqueued else [])
    lister.goes(seed)
    assert lister.enqueued == [AUTOSCALER]


@pytest.mark.parametrize("owners", [[], [{**OWNER, "name": "unknown"}], [{**OWNER, "controller": False}]])
async def test_other_peoples_seeds_do_not_matter(lister: FakeLister, owners: list[dict[str, Any]]) -> None:
    managed_seed = await lister.comes(merged(MANAGED_SEED, {"metadata": {"ownerReferences": owners}}))
    seed = await lister.comes(a_seed("grove-0"))
    await lister.changes(seed, {"status": {"usage": {"cpu": "7"}}})
    assert lister.enqueued == []
    lister.goes(managed_seed)
    assert lister.enqueued == []
