"""Which changes make an autoscaler look at once."""

from collections.abc import Mapping
from typing import Any

import pytest

from gardenbus.autoscaler.reconcilers.watching import Watch
from gardenbus.common.adapters.memory_store import MemoryStore
from gardenbus.common.resources.document import Document, StoredObject
from gardenbus.common.resources.keys import ObjectKey
from tests.support.autoscaling import API, an_autoscaler
from tests.support.builders import NOW, a_condition, a_seed, merged
from tests.support.clocks import FakeClock

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


class Seen:
    """Objects as an informer shows them, straight from a store in memory."""

    def __init__(self) -> None:
        self.store = MemoryStore(FakeClock(), reporter="test")
        self.known: dict[str, dict[ObjectKey, StoredObject]] = {}
        self.nudged: list[ObjectKey] = []
        self.watch = Watch(self, self.nudged.append)

    def objects(self, kind: str) -> Mapping[ObjectKey, StoredObject]:
        return self.known.get(kind, {})

    async def comes(self, document: Document) -> StoredObject:
        stored = await self.store.create(document)
        assert isinstance(stored, StoredObject)
        self.known.setdefault(stored.key.kind, {})[stored.key] = stored
        self.watch.changed(stored.key, None, stored)
        return stored

    async def changes(self, old: StoredObject, changes: Document) -> StoredObject:
        new = await self.store.update(old, merged(old.document(), changes))
        assert isinstance(new, StoredObject)
        self.known[new.key.kind][new.key] = new
        self.nudged.clear()
        self.watch.changed(new.key, old, new)
        return new

    def goes(self, old: StoredObject) -> None:
        self.nudged.clear()
        self.watch.changed(old.key, old, None)


@pytest.fixture
async def seen() -> Seen:
    seen = Seen()
    await seen.comes(an_autoscaler())
    await seen.comes(an_autoscaler("other"))
    return seen


async def test_an_autoscaler_that_comes_or_asks_for_something_else(seen: Seen) -> None:
    assert AUTOSCALER in seen.nudged
    stored = seen.known["seedautoscaler"][AUTOSCALER]
    changed = await seen.changes(stored, {"spec": {"minReplicas": 2}})
    assert seen.nudged == [AUTOSCALER]
    await seen.changes(changed, {"status": {"desiredReplicas": 2}})
    assert seen.nudged == [], "what a look writes makes no other look"
    seen.goes(stored)
    assert seen.nudged == []


@pytest.mark.parametrize(
    ("changes", "is_told"),
    [
        ({"spec": {"replicas": 2}}, True),
        ({"status": {"pendingReplica": {"name": "grove-1"}}}, True),
        ({"status": {"conditions": [a_condition("ReplicaUnschedulable")]}}, True),
        ({"status": {"conditions": [a_condition("ReplicaUnschedulable", "False")], "observedGeneration": 1}}, True),
        ({"status": {"readyReplicas": 1}}, False),
        ({"metadata": {"labels": {"a": "b"}}}, False),
    ],
)
async def test_its_set(seen: Seen, changes: Document, is_told: bool) -> None:
    managed_seed_set = await seen.comes(SET)
    await seen.changes(managed_seed_set, changes)
    assert seen.nudged == ([AUTOSCALER] if is_told else [])


@pytest.mark.parametrize(
    ("changes", "is_told"),
    [
        ({"status": {"allocatable": {"shoots": "7"}}}, True),
        ({"status": {"usage": {"cpu": "7"}}}, True),
        ({"status": {"conditions": [a_condition("GardenletReady", "Unknown")]}}, True),
        ({"metadata": {"annotations": {"seedmanagement.gardener.cloud/marked-for-removal": "garden/grove"}}}, True),
        ({"status": {"lastOperation": {"lastUpdateTime": f"{NOW[:-1]}9Z"}}}, False),
    ],
)
async def test_the_seeds_of_its_set(seen: Seen, changes: Document, is_told: bool) -> None:
    await seen.comes(MANAGED_SEED)
    seed = await seen.comes(a_seed("grove-0"))
    assert seen.nudged[-1] == AUTOSCALER
    await seen.changes(seed, changes)
    assert seen.nudged == ([AUTOSCALER] if is_told else [])
    seen.goes(seed)
    assert seen.nudged == [AUTOSCALER]


@pytest.mark.parametrize("owners", [[], [{**OWNER, "name": "unknown"}], [{**OWNER, "controller": False}]])
async def test_other_peoples_seeds_do_not_matter(seen: Seen, owners: list[dict[str, Any]]) -> None:
    managed_seed = await seen.comes(merged(MANAGED_SEED, {"metadata": {"ownerReferences": owners}}))
    seed = await seen.comes(a_seed("grove-0"))
    await seen.changes(seed, {"status": {"usage": {"cpu": "7"}}})
    assert seen.nudged == []
    seen.goes(managed_seed)
    assert seen.nudged == []
