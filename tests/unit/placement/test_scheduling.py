"""Placements are scheduled: bindings as the policy says, and what the snapshot and the status tell of it."""

import contextlib
from typing import Any

import msgspec
import pytest

from gardenbus.common.api.conditions import get_condition
from gardenbus.common.api.document import section
from gardenbus.common.api.fleet.placements import PLACEMENT_CLEANUP, SCHEDULER_CLEANUP
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Requeue
from gardenbus.common.errors import Conflict, Transient, Unavailable
from gardenbus.relay.ports.outbox import EventEntry
from tests.support.placements import WEB, Bench, a_crp, a_live_cluster, a_namespace, pick_n, request_for


async def scheduled(bench: Bench) -> tuple[str, str, str]:
    status = section(await bench.get(), "status")
    condition = get_condition(status["conditions"], "ClusterResourcePlacementScheduled")
    assert condition is not None
    return condition["status"], condition["reason"], condition["message"]


async def test_a_placement_without_a_policy_goes_everywhere() -> None:
    bench = Bench()
    await bench.clusters("a", "b", "c")
    await bench.add(a_namespace(), a_crp())
    await bench.converge()
    assert await bench.states() == {"a": "Scheduled", "b": "Scheduled", "c": "Scheduled"}
    (snapshot,) = await bench.parts("policy_snapshot")
    assert [each["clusterName"] for each in snapshot["status"]["targetClusters"]] == ["a", "b", "c"]
    assert snapshot["status"]["observedCRPGeneration"] == 1
    assert (await scheduled(bench))[:2] == ("True", "SchedulingPolicyFulfilled")
    placement = await bench.get()
    assert placement["metadata"]["finalizers"] == [PLACEMENT_CLEANUP, SCHEDULER_CLEANUP]
    assert placement["status"]["observedResourceIndex"] == "0"
    assert placement["status"]["selectedResources"] == [{"version": "v1", "kind": "Namespace", "name": "web"}]
    statuses = placement["status"]["placementStatuses"]
    assert [each["clusterName"] for each in statuses] == ["a", "b", "c"]
    assert [each["type"] for each in statuses[0]["conditions"]] == ["Scheduled", "RolloutStarted"]


async def test_a_binding_says_what_it_is_for() -> None:
    bench = Bench()
    await bench.clusters("a")
    await bench.add(a_namespace(), a_crp(spec={"strategy": {"applyStrategy": {"type": "ServerSideApply"}}}))
    await bench.converge()
    (binding,) = await bench.parts("binding")
    placement = await bench.get()
    assert binding["spec"]["schedulingPolicySnapshotName"] == "web-0"
    assert binding["spec"]["resourceSnapshotName"] == ""
    assert binding["spec"]["clusterDecision"]["selected"] is True
    assert binding["spec"]["applyStrategy"] == {"type": "ServerSideApply"}
    assert binding["metadata"]["labels"] == {"kubernetes-fleet.io/parent-CRP": "web"}
    assert binding["metadata"]["ownerReferences"][0]["uid"] == placement["metadata"]["uid"]
    assert binding["metadata"]["name"].startswith("web-a-")


async def test_scaling_makes_no_snapshot_and_moves_nothing() -> None:
    bench = Bench()
    await bench.clusters("a", "b", "c", "d")
    await bench.add(a_namespace(), a_crp(policy=pick_n(2)))
    await bench.converge()
    before = set(await bench.states())
    await bench.change({"spec": {"policy": {"numberOfClusters": 3}}})
    await bench.converge()
    assert before < set(await bench.states())
    assert len(await bench.states()) == 3
    assert [each["metadata"]["name"] for each in await bench.parts("policy_snapshot")] == ["web-0"]


async def test_fewer_clusters_give_up_the_surplus_and_more_take_it_back() -> None:
    bench = Bench()
    await bench.clusters("a", "b", "c")
    await bench.add(a_namespace(), a_crp(policy=pick_n(3)))
    await bench.converge()
    await bench.change({"spec": {"policy": {"numberOfClusters": 1}}})
    await bench.converge()
    assert sorted((await bench.states()).values()) == ["Scheduled", "Unscheduled", "Unscheduled"]
    given_up = [each for each in await bench.parts("binding") if each["spec"]["state"] == "Unscheduled"]
    assert given_up[0]["metadata"]["annotations"] == {"kubernetes-fleet.io/previous-binding-state": "Scheduled"}
    await bench.change({"spec": {"policy": {"numberOfClusters": 3}}})
    await bench.converge()
    assert sorted((await bench.states()).values()) == ["Scheduled"] * 3
    assert not any(each["metadata"].get("annotations") for each in await bench.parts("binding"))


async def test_another_policy_is_another_snapshot_and_a_reverted_one_the_next() -> None:
    bench = Bench()
    await bench.add(a_live_cluster("a", bench.clock, {"region": "eu"}), a_live_cluster("b", bench.clock))
    await bench.add(a_namespace(), a_crp())
    await bench.converge()
    terms = [{"labelSelector": {"matchLabels": {"region": "eu"}}}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"clusterSelectorTerms": terms}}
    await bench.change({"spec": {"policy": {"placementType": "PickAll", "affinity": {"clusterAffinity": required}}}})
    await bench.converge()
    assert await bench.states() == {"a": "Scheduled", "b": "Unscheduled"}
    snapshots = {each["metadata"]["name"]: each["metadata"]["labels"] for each in await bench.parts("policy_snapshot")}
    latest = "kubernetes-fleet.io/is-latest-snapshot"
    assert {name: labels[latest] for name, labels in snapshots.items()} == {"web-0": "false", "web-1": "true"}
    assert (await scheduled(bench))[0] == "True"


async def test_an_unfulfilled_policy_says_why() -> None:
    bench = Bench()
    await bench.clusters("a")
    await bench.add(a_live_cluster("b", bench.clock, spec={"taints": [{"key": "k", "effect": "NoSchedule"}]}))
    await bench.add(a_namespace(), a_crp(policy=pick_n(3)))
    await bench.converge()
    assert (await scheduled(bench))[:2] == ("False", "SchedulingPolicyUnfulfilled")
    missing = [each for each in section(await bench.get(), "status")["placementStatuses"] if "clusterName" not in each]
    assert [each["conditions"][0]["reason"] for each in missing] == ["ScheduleFailed"]
    assert "taint" in missing[0]["conditions"][0]["message"]


async def test_a_policy_that_cannot_be_evaluated_is_told_and_tried_again() -> None:
    bench = Bench()
    await bench.clusters("a")
    expression = {"name": "resources.kubernetes-fleet.io/available-", "operator": "Gt", "values": ["1"]}
    terms = [{"propertySelector": {"matchExpressions": [expression]}}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"clusterSelectorTerms": terms}}
    await bench.add(a_namespace(), a_crp(policy=pick_n(1, affinity={"clusterAffinity": required})))
    await bench.cache.read(bench.store)
    await bench.snapshots.reconcile(request_for(WEB))
    for _ in range(2):
        with pytest.raises(Transient):
            await bench.scheduling.reconcile(request_for(WEB))
    await bench.status.reconcile(request_for(WEB))
    status, reason, message = await scheduled(bench)
    assert (status, reason) == ("False", "SchedulingFailed")
    assert "available-" in message
    assert len([each for each in await bench.kit.entries() if isinstance(each, EventEntry)]) == 1


async def test_a_cluster_that_leaves_loses_its_binding() -> None:
    bench = Bench()
    await bench.clusters("a", "b")
    await bench.add(a_namespace(), a_crp(policy=pick_n(1)))
    await bench.converge()
    (chosen,) = await bench.states()
    await bench.kit.store.delete(await bench.kit.now(ObjectKey("membercluster", "", chosen)))
    await bench.converge()
    other = {"a": "b", "b": "a"}[chosen]
    assert await bench.states() == {chosen: "Unscheduled", other: "Scheduled"}


async def test_a_placement_that_leaves_takes_everything_with_it() -> None:
    bench = Bench()
    await bench.clusters("a", "b")
    await bench.add(a_namespace(), a_crp())
    await bench.converge()
    await bench.kit.store.delete(await bench.kit.now(WEB))
    await bench.converge()
    assert await bench.kit.store.get(WEB) is None
    for kind in ("binding", "policy_snapshot", "resource_snapshot"):
        assert await bench.parts(kind) == []


async def test_a_placement_waits_for_bindings_that_somebody_else_holds() -> None:
    bench = Bench()
    await bench.clusters("a")
    await bench.add(a_namespace(), a_crp())
    await bench.converge()
    (binding,) = (await bench.kit.store.list_page("clusterresourcebinding")).objects
    await bench.change({"metadata": {"finalizers": [*binding.parts.finalizers, "work"]}}, binding.key)
    await bench.kit.store.delete(await bench.kit.now(WEB))
    await bench.converge()
    assert await bench.kit.store.get(WEB) is not None
    assert (await bench.kit.now(binding.key)).parts.finalizers == ("work",)
    await bench.change({"metadata": {"finalizers": []}}, binding.key)
    await bench.converge()
    assert await bench.kit.store.get(WEB) is None


async def test_a_cluster_that_is_not_announced_yet_keeps_its_binding() -> None:
    bench = Bench()
    await bench.clusters("a", "b")
    await bench.add(a_namespace(), a_crp())
    await bench.converge()
    bench.cache.changed(ObjectKey("membercluster", "", "b"), None, None)
    assert isinstance(await bench.scheduling.reconcile(request_for(WEB)), Requeue)
    assert await bench.states() == {"a": "Scheduled", "b": "Scheduled"}


async def test_no_binding_is_given_up_for_a_cluster_that_cannot_be_read_and_the_status_says_so() -> None:
    bench = Bench()
    await bench.clusters("a", "b")
    await bench.add(a_namespace(), a_crp())
    await bench.converge()
    cluster = await bench.kit.now(ObjectKey("membercluster", "", "b"))
    await bench.kit.store.update(cluster, {**cluster.document(), "spec": {"taints": "none"}})
    bench.cache.changed(ObjectKey("membercluster", "", "b"), None, None)
    with pytest.raises(Transient):
        await bench.scheduling.reconcile(request_for(WEB))
    await bench.status.reconcile(request_for(WEB))
    status, reason, message = await scheduled(bench)
    assert (status, reason) == ("False", "SchedulingFailed")
    assert "MemberCluster b cannot be read" in message
    assert "spec.taints" in message
    assert await bench.states() == {"a": "Scheduled", "b": "Scheduled"}


class Interrupted:
    """A store before which somebody else acts once, at the write of a number."""

    def __init__(self, store: Any, at: int, action: Any) -> None:
        self._store = store
        self._left = at
        self._action = action

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)
        if name not in ("create", "create_many", "update", "delete"):
            return call

        async def counted(*arguments: Any, **named: Any) -> Any:
            if self._left == 0:
                await self._action()
            self._left -= 1
            return await call(*arguments, **named)

        return counted


async def dies() -> None:
    raise Unavailable("the process died")


async def prepared(policy: Any, names: str = "abcde") -> Bench:
    """One that was scheduled by a policy, and has another one by now."""
    bench = Bench()
    await bench.clusters(*names)
    await bench.add(a_namespace(), a_crp(policy=pick_n(3)))
    await bench.converge()
    await bench.change({"spec": {"policy": policy}})
    return bench


SPREAD = [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]


@pytest.mark.parametrize(
    "policy",
    [pick_n(5), pick_n(1), pick_n(4, topologySpreadConstraints=SPREAD), {"placementType": "PickAll"}],
    ids=["more", "fewer", "another", "all"],
)
@pytest.mark.parametrize("at", range(8))
async def test_whoever_dies_between_two_writes_is_made_up_for(policy: Any, at: int) -> None:
    whole = await prepared(policy)
    await whole.converge()
    bench = await prepared(policy)
    mortal = Bench(bench.kit, Interrupted(bench.kit.store, at, dies))  # pyright: ignore[reportArgumentType]
    with contextlib.suppress(Unavailable):
        await mortal.reconcile_once()
    assert len([state for state in (await bench.states()).values() if state != "Unscheduled"]) <= 5
    await bench.converge()
    assert await bench.states() == await whole.states()
    assert await scheduled(bench) == await scheduled(whole)


@pytest.mark.parametrize("at", range(6))
async def test_of_two_that_decide_at_once_only_one_writes_with_effect(at: int) -> None:
    """The second sees another fleet, as its announcements are behind: it would take other clusters."""
    bench = Bench()
    await bench.clusters("a", "b", "c", "d")
    await bench.add(a_namespace(), a_crp(policy=pick_n(2)))
    await bench.cache.read(bench.store)
    await bench.snapshots.reconcile(request_for(WEB))
    another = Bench(bench.kit)
    await another.cache.read(bench.store)
    for name in ("c", "d"):
        key = ObjectKey("membercluster", "", name)
        cluster = await bench.kit.now(key)
        silent = msgspec.structs.replace(cluster, parts=cluster.parts._replace(status=b""))
        another.cache.changed(key, None, silent)

    async def the_other_decides() -> None:
        await another.scheduling.reconcile(request_for(WEB))

    held_up = Bench(bench.kit, Interrupted(bench.kit.store, at, the_other_decides))  # pyright: ignore[reportArgumentType]
    await held_up.cache.read(bench.store)
    try:
        await held_up.scheduling.reconcile(request_for(WEB))
    except Conflict:
        assert at < 3
    assert len(await bench.states()) == 2
    await bench.converge()
    assert len(await bench.states()) == 2


@pytest.mark.parametrize("at", range(8))
async def test_a_cluster_that_left_has_gone_before_another_takes_its_place(at: int) -> None:
    bench = Bench()
    await bench.clusters("a", "b", "c", "d", "e")
    await bench.add(a_namespace(), a_crp(policy=pick_n(3)))
    await bench.converge()
    left = min(await bench.states())
    await bench.kit.store.delete(await bench.kit.now(ObjectKey("membercluster", "", left)))
    mortal = Bench(bench.kit, Interrupted(bench.kit.store, at, dies))  # pyright: ignore[reportArgumentType]
    with contextlib.suppress(Unavailable):
        await mortal.reconcile_once()
    assert len([state for state in (await bench.states()).values() if state != "Unscheduled"]) <= 3
    await bench.converge()
    states = await bench.states()
    assert states.pop(left) == "Unscheduled"
    assert list(states.values()) == ["Scheduled"] * 3


async def grown() -> tuple[Bench, set[str]]:
    """One with two bindings that shall have three, and where the two are."""
    bench = Bench()
    await bench.clusters("a", "b", "c", "d")
    await bench.add(a_namespace(), a_crp(policy=pick_n(2)))
    await bench.converge()
    before = set(await bench.states())
    await bench.change({"spec": {"policy": {"numberOfClusters": 3}}})
    await bench.snapshots.reconcile(request_for(WEB))
    return bench, before


async def test_what_another_replica_creates_while_this_one_decides_is_not_created_again() -> None:
    whole, before = await grown()
    await whole.converge()
    (picked,) = set(await whole.states()) - before
    bench, _ = await grown()

    async def creates() -> None:
        """What a replica creates that has seen another binding leave the cluster: one of another name."""
        like = (await bench.parts("binding"))[0]
        metadata = {name: like["metadata"][name] for name in ("labels", "finalizers", "ownerReferences")}
        spec = {**like["spec"], "targetCluster": picked}
        await bench.add({**like, "metadata": {**metadata, "name": f"web-{picked}-other"}, "spec": spec, "status": {}})

    slow = Bench(bench.kit, Interrupted(bench.kit.store, 0, creates))  # pyright: ignore[reportArgumentType]
    await slow.cache.read(bench.kit.store)
    assert isinstance(await slow.scheduling.reconcile(request_for(WEB)), Requeue)
    await bench.converge()
    assert sorted(each["spec"]["targetCluster"] for each in await bench.parts("binding")) == sorted({*before, picked})
