"""Placements are rolled out: bindings are bound, brought up to date and removed, and their Works follow."""

import math
from typing import Any

import pytest

from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.document import Document, StoredObject, encode, section
from gardenbus.common.api.fleet.placement_parts import BINDING_CLEANUP, WORK_CLEANUP
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Conflict, Transient
from gardenbus.common.ports.store import Creation, Superseded
from gardenbus.fleet.cycle_result import UnexpectedState
from gardenbus.relay.ports.outbox import EventEntry
from tests.support.builders import merged
from tests.support.memory.store import MemoryStore
from tests.support.placements import WEB, a_configmap, a_crp, a_live_cluster, a_namespace, pick_n
from tests.support.rolling import RollingBench, a_request


def rolling(unavailable: int | str = 1, surge: int | str = 1) -> Document:
    update = {"maxUnavailable": unavailable, "maxSurge": surge, "unavailablePeriodSeconds": 1}
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": update}}


async def rolled_out(policy: Document | None = None, **spec: Document) -> RollingBench:
    bench = RollingBench()
    await bench.clusters("a", "b", "c")
    await bench.add(a_namespace(), a_configmap(), a_crp(policy=policy, spec={**rolling(), **spec}))
    await bench.rest()
    return bench


async def rollout_conditions(bench: RollingBench, cluster: str) -> dict[str, tuple[str, str]]:
    """The conditions of the binding on a cluster that speak of its generation: status and reason."""
    (binding,) = [
        document
        for each in await bench.bindings()
        if section(document := each.document(), "spec")["targetCluster"] == cluster
    ]
    generation = binding["metadata"]["generation"]
    return {
        each["type"]: (each["status"], each["reason"])
        for each in conditions_of(binding)
        if each["observedGeneration"] == generation
    }


ALL_IS_WELL = {
    "RolloutStarted": ("True", "RolloutStarted"),
    "Overridden": ("True", "NoOverrideSpecified"),
    "WorkSynchronized": ("True", "AllWorkSynced"),
    "Applied": ("True", "AllWorkHasBeenApplied"),
    "Available": ("True", "AllWorkAreAvailable"),
}


async def test_a_placement_reaches_its_clusters() -> None:
    bench = await rolled_out()
    assert await bench.states() == {"a": "Bound", "b": "Bound", "c": "Bound"}
    assert set((await bench.resources_of()).values()) == {"web-0-snapshot"}
    assert await bench.on_clusters() == {"a": ["web-work"], "b": ["web-work"], "c": ["web-work"]}
    assert await rollout_conditions(bench, "a") == ALL_IS_WELL
    status = (await bench.get())["status"]
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    assert conditions["ClusterResourcePlacementAvailable"] == "True"


async def test_a_work_says_what_it_is_for() -> None:
    bench = await rolled_out(strategy={**rolling()["strategy"], "applyStrategy": {"type": "ServerSideApply"}})
    work = (await bench.all_works())[0].document()
    binding = (await bench.bindings())[0]
    assert work["metadata"]["namespace"] == "fleet-member-a"
    assert work["metadata"]["finalizers"] == [WORK_CLEANUP]
    assert work["metadata"]["ownerReferences"][0]["uid"] == binding.uid
    assert work["metadata"]["labels"] == {
        "kubernetes-fleet.io/parent-resource-binding": binding.key.name,
        "kubernetes-fleet.io/parent-CRP": "web",
        "kubernetes-fleet.io/parent-resource-snapshot-index": "0",
    }
    assert [each["kind"] for each in work["spec"]["workload"]["manifests"]] == ["Namespace", "ConfigMap"]
    assert work["spec"]["applyStrategy"] == {"type": "ServerSideApply"}
    assert set(binding.parts.finalizers) == {BINDING_CLEANUP, WORK_CLEANUP}


async def test_a_scheduled_binding_gets_no_work() -> None:
    bench = RollingBench()
    await bench.clusters("a")
    await bench.add(a_namespace(), a_crp())
    await bench.converge()
    await bench.work()
    assert await bench.all_works() == []


async def test_new_resources_go_out_one_cluster_after_the_other() -> None:
    bench = await rolled_out(pick_n(3))
    await bench.change({"data": {"colour": "blue"}}, ObjectKey("configmap", "web", "settings"))
    await bench.reconcile_once()
    await bench.roll()
    assert sorted((await bench.resources_of()).values()) == ["web-0-snapshot", "web-0-snapshot", "web-1-snapshot"]
    assert (await rollout_conditions(bench, "c"))["RolloutStarted"] == ("False", "RolloutNotStartedYet")
    await bench.roll()
    assert sorted((await bench.resources_of()).values()) == ["web-0-snapshot", "web-0-snapshot", "web-1-snapshot"]
    await bench.rest()
    assert set((await bench.resources_of()).values()) == {"web-1-snapshot"}
    assert await bench.on_clusters() == {"a": ["web-work"], "b": ["web-work"], "c": ["web-work"]}
    for work in await bench.all_works():
        manifests = work.document()["spec"]["workload"]["manifests"]
        assert manifests[1]["data"] == {"colour": "blue"}


async def test_a_rollout_stops_at_a_cluster_that_fails_and_goes_on_when_it_recovers() -> None:
    bench = await rolled_out(pick_n(3))
    bench.broken.add("a")
    await bench.change({"data": {"colour": "blue"}}, ObjectKey("configmap", "web", "settings"))
    await bench.rest()
    assert list((await bench.resources_of()).values()).count("web-1-snapshot") == 1
    assert (await rollout_conditions(bench, "a"))["Applied"] == ("False", "NotAllWorkHasBeenApplied")
    (binding,) = [
        each.document() for each in await bench.bindings() if each.document()["status"].get("failedPlacements")
    ]
    assert binding["status"]["failedPlacements"][0]["name"] == "web"
    bench.broken.clear()
    await bench.rest()
    assert set((await bench.resources_of()).values()) == {"web-1-snapshot"}
    assert await rollout_conditions(bench, "a") == ALL_IS_WELL


async def test_a_failed_cluster_gets_newer_resources_at_once() -> None:
    bench = await rolled_out(pick_n(3))
    bench.broken.add("a")
    await bench.change({"data": {"colour": "blue"}}, ObjectKey("configmap", "web", "settings"))
    await bench.rest()
    await bench.change({"data": {"colour": "green"}}, ObjectKey("configmap", "web", "settings"))
    await bench.reconcile_once()
    await bench.roll()
    assert (await bench.resources_of())["a"] == "web-2-snapshot"


async def test_new_resources_reach_a_placement_that_lacks_clusters() -> None:
    bench = await rolled_out(pick_n(9))
    await bench.change({"data": {"colour": "blue"}}, ObjectKey("configmap", "web", "settings"))
    await bench.reconcile_once()
    await bench.roll()
    assert list((await bench.resources_of()).values()).count("web-1-snapshot") == 1
    await bench.rest()
    assert await bench.resources_of() == dict.fromkeys("abc", "web-1-snapshot")


async def test_new_resources_reach_a_placement_whose_policy_cannot_be_evaluated() -> None:
    """It lacks six clusters, and a property that is no number keeps the scheduler from a decision."""
    many = {"matchExpressions": [{"name": "nodes", "operator": "Gt", "values": ["1"]}]}
    terms = {"clusterSelectorTerms": [{"propertySelector": many}]}
    affinity = {"clusterAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    bench = RollingBench()
    for name in "abc":
        await bench.add(a_live_cluster(name, bench.clock, status={"properties": {"nodes": {"value": "4"}}}))
    await bench.add(a_namespace(), a_configmap(), a_crp(policy=pick_n(9, affinity=affinity), spec=rolling()))
    await bench.rest()
    await bench.add(a_live_cluster("d", bench.clock, status={"properties": {"nodes": {"value": "four"}}}))
    await bench.change({"data": {"colour": "blue"}}, ObjectKey("configmap", "web", "settings"))
    await bench.snapshots.reconcile(a_request(WEB, "placement"))
    await bench.cache.read(bench.kit.store)
    with pytest.raises(UnexpectedState):
        await bench.scheduling.reconcile(a_request(WEB, "placementscheduling"))
    for _ in range(12):
        await bench.status.reconcile(a_request(WEB, "placementstatus"))
        await bench.roll()
        await bench.work()
        await bench.agents()
    assert await bench.resources_of() == dict.fromkeys("abc", "web-1-snapshot")


async def test_who_is_given_up_is_removed_with_its_work_once_others_are_ready() -> None:
    bench = await rolled_out(pick_n(3))
    await bench.clusters("d")
    await bench.change({"spec": {"policy": {"numberOfClusters": 2}}})
    await bench.rest()
    assert len(await bench.states()) == 2
    assert set(await bench.on_clusters()) == set(await bench.states())


async def test_the_works_of_a_binding_go_before_it_does() -> None:
    bench = await rolled_out(pick_n(3))
    bench.silent.add("a")
    await bench.change({"spec": {"policy": {"numberOfClusters": 2}}})
    await bench.rest()
    assert (await bench.states())["a"] == "Unscheduled"
    (left,) = [each for each in await bench.bindings() if each.is_deleting]
    assert left.parts.finalizers == (WORK_CLEANUP,)
    bench.silent.clear()
    await bench.rest()
    assert set(await bench.states()) == {"b", "c"}
    assert set(await bench.on_clusters()) == {"b", "c"}


async def test_a_cluster_that_is_gone_holds_nothing_up() -> None:
    bench = await rolled_out(pick_n(3))
    await bench.kit.store.delete(await bench.kit.now(ObjectKey("membercluster", "", "a")))
    await bench.rest()
    assert set(await bench.states()) == {"b", "c"}
    assert set(await bench.on_clusters()) == {"b", "c"}


async def test_a_deleted_placement_leaves_nothing_behind() -> None:
    bench = await rolled_out()
    await bench.kit.store.delete(await bench.kit.now(WEB))
    await bench.rest()
    assert await bench.kit.store.get(WEB) is None
    assert await bench.bindings() == []
    assert await bench.all_works() == []


async def test_another_way_of_applying_reaches_all_works() -> None:
    bench = await rolled_out(pick_n(3))
    await bench.change({"spec": {"strategy": {"applyStrategy": {"type": "ServerSideApply"}}}})
    await bench.rest()
    works = [each.document() for each in await bench.all_works()]
    assert [each["spec"]["applyStrategy"] for each in works] == [{"type": "ServerSideApply"}] * 3
    assert set((await bench.resources_of()).values()) == {"web-0-snapshot"}
    assert await rollout_conditions(bench, "b") == ALL_IS_WELL


async def test_others_may_roll_out_what_is_theirs() -> None:
    bench = RollingBench()
    await bench.clusters("a")
    await bench.add(a_namespace(), a_crp(spec={"strategy": {"type": "External"}}))
    await bench.rest()
    assert await bench.states() == {"a": "Scheduled"}


async def test_of_two_that_spend_at_once_only_one_does() -> None:
    """The one that counted first writes nothing more once another has counted."""

    class SupersededStore(MemoryStore):
        overtake = False

        async def update(self, base: StoredObject, document: Document, **options: Any) -> StoredObject | Superseded:
            if self.overtake and base.key.kind == "clusterresourcebinding" and options.get("preconditions"):
                self.overtake = False
                master = await self.get(ObjectKey("clusterresourcesnapshot", "", "web-0-snapshot"))
                assert master is not None
                await super().update(master, merged(master.document(), {"metadata": {"annotations": {"x": "y"}}}))
            return await super().update(base, document, **options)

    bench = RollingBench()
    store = SupersededStore(bench.clock)
    bench.kit.store = store
    bench = RollingBench(bench.kit)
    await bench.clusters("a", "b")
    await bench.add(a_namespace(), a_crp(policy=pick_n(2), spec=rolling()))
    await bench.converge()
    store.overtake = True
    with pytest.raises(Conflict):
        await bench.roll()
    assert set((await bench.states()).values()) == {"Scheduled"}
    await bench.roll()
    assert set((await bench.states()).values()) == {"Bound"}


async def test_a_look_at_what_is_rolled_out_writes_nothing() -> None:
    bench = await rolled_out()
    before = await bench.version()
    await bench.roll()
    await bench.work()
    assert await bench.version() == before


async def test_a_contradiction_is_told_and_tried_again() -> None:
    bench = await rolled_out(pick_n(1))
    (binding,) = await bench.bindings()
    document = binding.document()
    double = merged({**document, "metadata": {**document["metadata"], "name": "double"}}, {})
    await bench.kit.store.create_many([Creation(double)])
    with pytest.raises(Transient, match="both of cluster"):
        await bench.roll()
    events = [each for each in await bench.kit.entries() if isinstance(each, EventEntry)]
    assert any(b"RolloutFailed" in encode(each) for each in events)


async def test_large_resources_come_in_several_works_and_go_with_them() -> None:
    bench = await rolled_out(pick_n(3))
    large = [a_configmap(f"large-{number}", data="x" * 500_000) for number in range(3)]
    await bench.add(*large)
    await bench.rest()
    assert await bench.on_clusters() == {name: ["web-0", "web-1", "web-work"] for name in "abc"}
    for each in large:
        key = ObjectKey("configmap", "web", each["metadata"]["name"])
        await bench.kit.store.delete(await bench.kit.now(key))
    await bench.rest()
    assert await bench.on_clusters() == {name: ["web-work"] for name in "abc"}
    assert await rollout_conditions(bench, "a") == ALL_IS_WELL


async def test_works_that_cannot_be_made_say_so() -> None:
    bench = await rolled_out(pick_n(1))
    (binding,) = await bench.bindings()
    document = binding.document()
    document["spec"]["resourceSnapshotName"] = "web-7-snapshot"
    await bench.kit.changed(binding, document)
    await RollingBench(bench.kit).work()
    (binding,) = await bench.bindings()
    condition = get_condition(conditions_of(binding.document()), "WorkSynchronized")
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("False", "SyncWorkFailed")


async def test_a_store_that_always_conflicts_changes_nothing() -> None:
    bench = RollingBench()
    await bench.clusters("a")
    await bench.add(a_namespace(), a_crp())
    await bench.converge()
    assert isinstance(bench.kit.store, MemoryStore)
    bench.kit.store.redis.conflicts = math.inf
    with pytest.raises(Conflict):
        await bench.roll()
    assert await bench.states() == {"a": "Scheduled"}


async def test_a_placement_of_a_namespace_is_rolled_out_under_names_of_its_own() -> None:
    bench = RollingBench()
    await bench.clusters("a")
    placement = ObjectKey("resourceplacement", "web", "web")
    document = a_crp(spec=rolling())
    selectors = [{"group": "", "version": "v1", "kind": "ConfigMap", "name": "settings"}]
    await bench.add(
        a_namespace(),
        a_configmap(),
        a_crp(),
        {
            **document,
            "kind": "ResourcePlacement",
            "metadata": {"name": "web", "namespace": "web"},
            "spec": {**document["spec"], "resourceSelectors": selectors},
        },
    )
    await bench.rest(placement)
    await bench.rest()
    assert await bench.states(placement) == {"a": "Bound"}
    assert await bench.on_clusters() == {"a": ["web-work", "web.web-work"]}
    binding = (await bench.bindings(placement))[0]
    await bench.works.reconcile(a_request(binding.key, "placementwork"))
    assert (await rollout_conditions_of(bench, placement)) == ALL_IS_WELL


async def rollout_conditions_of(bench: RollingBench, placement: ObjectKey) -> dict[str, tuple[str, str]]:
    (binding,) = await bench.bindings(placement)
    return {each["type"]: (each["status"], each["reason"]) for each in conditions_of(binding.document())}
