"""Evictions are judged once, take one binding at most, and are told."""

import contextlib
from typing import Any

import pytest

from gardenbus.common.api.conditions import conditions_of
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Conflict, Unavailable
from gardenbus.common.ports.store import Superseded
from tests.support.memory.store import MemoryStore
from tests.support.placements import a_crp, a_namespace, pick_n
from tests.support.rolling import RollingBench, a_budget, an_eviction


async def rolled_out(policy: Document | None = None) -> RollingBench:
    bench = RollingBench()
    await bench.clusters("a", "b", "c")
    await bench.add(a_namespace(), a_crp(policy=policy or pick_n(2)))
    await bench.rest()
    return bench


def recorded_conditions(eviction: Document) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in conditions_of(eviction)}


CLUSTER_C = ObjectKey("membercluster", "", "c")
EXECUTED = {
    "Valid": ("True", "ClusterResourcePlacementEvictionValid"),
    "Executed": ("True", "ClusterResourcePlacementEvictionExecuted"),
}
NOT_EXECUTED = {**EXECUTED, "Executed": ("False", "ClusterResourcePlacementEvictionNotExecuted")}


async def test_an_eviction_takes_a_binding_off_and_the_scheduler_refills() -> None:
    bench = await rolled_out()
    assert set(await bench.states()) == {"b", "c"}
    await bench.change({"spec": {"taints": [{"key": "drain", "effect": "NoSchedule"}]}}, CLUSTER_C)
    await bench.add(an_eviction("e", "c"))
    assert recorded_conditions(await bench.evict("e")) == EXECUTED
    await bench.rest()
    assert await bench.states() == {"a": "Bound", "b": "Bound"}
    assert set(await bench.on_clusters()) == {"a", "b"}


async def test_an_eviction_of_nothing_is_invalid_for_good() -> None:
    bench = await rolled_out()
    await bench.add(an_eviction("e", "nowhere"), an_eviction("f", "b", placement="other"))
    assert recorded_conditions(await bench.evict("e")) == {
        "Valid": ("False", "ClusterResourcePlacementEvictionInvalid")
    }
    assert recorded_conditions(await bench.evict("f")) == {
        "Valid": ("False", "ClusterResourcePlacementEvictionInvalid")
    }


async def test_a_budget_holds_for_evictions_one_after_the_other() -> None:
    bench = await rolled_out()
    await bench.add(a_budget(minAvailable=1), an_eviction("e", "b"), an_eviction("f", "c"))
    assert recorded_conditions(await bench.evict("e")) == EXECUTED
    assert recorded_conditions(await bench.evict("f")) == NOT_EXECUTED
    assert sum(each.is_deleting for each in await bench.bindings()) == 1
    version = await bench.version()
    await bench.evict("f")
    assert await bench.version() == version


async def test_a_budget_that_comes_meanwhile_is_seen() -> None:
    class Late(MemoryStore):
        late = False

        async def delete(self, base: StoredObject, **options: Any) -> StoredObject | Superseded | None:
            if self.late:
                self.late = False
                await self.create(a_budget(minAvailable=2))
            return await super().delete(base, **options)

    kit = (await rolled_out()).kit
    store = Late(kit.clock)
    kit.store = store
    bench = RollingBench(kit)
    await bench.clusters("a", "b")
    await bench.add(a_namespace(), a_crp(policy=pick_n(2)))
    await bench.rest()
    store.late = True
    await bench.add(an_eviction("e", "b"))
    assert recorded_conditions(await bench.evict("e")) == NOT_EXECUTED
    assert not any(each.is_deleting for each in await bench.bindings())


@pytest.mark.parametrize("dies_at", range(5))
async def test_whoever_dies_in_between_evicts_once(dies_at: int) -> None:
    class Mortal(MemoryStore):
        writes_left = -1

        def _count(self) -> None:
            if self.writes_left == 0:
                raise Unavailable("it died")
            self.writes_left -= 1

        async def update(self, base: StoredObject, document: Document, **options: Any) -> StoredObject | Superseded:
            self._count()
            return await super().update(base, document, **options)

        async def delete(self, base: StoredObject, **options: Any) -> StoredObject | Superseded | None:
            self._count()
            return await super().delete(base, **options)

    kit = RollingBench().kit
    store = Mortal(kit.clock)
    kit.store = store
    bench = RollingBench(kit)
    await bench.clusters("a", "b")
    await bench.add(a_namespace(), a_crp(policy=pick_n(2)))
    await bench.rest()
    await bench.add(an_eviction("e", "b"))
    uids = {each.uid for each in await bench.bindings()}
    store.writes_left = dies_at
    with contextlib.suppress(Unavailable, Conflict):
        await bench.evict("e")
    store.writes_left = -1
    await bench.rest()  # the binding goes, and another one comes to the same cluster
    assert recorded_conditions(await bench.evict("e")) == EXECUTED
    await bench.rest()
    assert len(uids & {each.uid for each in await bench.bindings()}) == 1
    assert await bench.states() == {"a": "Bound", "b": "Bound"}
    version = await bench.version()
    await bench.evict("e")
    assert await bench.version() == version
