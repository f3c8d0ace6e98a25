"""A placement of which nothing can be made says so itself, with what to do; mended, it goes on."""

from typing import Any

from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.document import Document
from gardenbus.common.errors import FieldProblem, InvalidResource, Terminal, Transient
from gardenbus.fleet.rejection import INVALID, INVALID_SELECTORS, recorded_rejection, rejection_of, with_rejection
from tests.support.placements import WEB, Bench, a_configmap, a_crp, a_namespace, pick_n, request_for

NOW, LATER = "2026-01-02T03:04:05Z", "2026-01-02T04:00:00Z"

NONSENSE: Document = {
    "group": "",
    "version": "v1",
    "kind": "Namespace",
    "labelSelector": {"matchExpressions": [{"key": "team", "operator": "Nearly"}]},
}
"""A selector that cannot be evaluated; the apiserver would refuse it."""


async def a_bench(*documents: Document) -> Bench:
    bench = Bench()
    await bench.clusters("a", "b")
    await bench.add(a_namespace(), a_configmap(), *documents)
    return bench


async def reconcile_all(bench: Bench) -> list[str]:
    """Each sort of look three times; answers what they complained of."""
    complaints: list[str] = []
    for _ in range(3):
        await bench.cache.read(bench.kit.store)
        for each in (bench.snapshots, bench.scheduling, bench.status):
            try:
                await each.reconcile(request_for(WEB))
            except Transient as error:
                complaints.append(error.message)
    return complaints


async def scheduled(bench: Bench) -> Any:
    return get_condition(conditions_of(await bench.get()), "ClusterResourcePlacementScheduled")


async def unreadable() -> Bench:
    """A placement that the apiserver would not have let in."""
    return await a_bench(a_crp(policy=pick_n(1), spec={"policy": {"numberOfClusters": "many"}}))


async def test_a_placement_that_cannot_be_read_says_which_field_and_what_to_do() -> None:
    bench = await unreadable()
    assert await reconcile_all(bench)
    condition = await scheduled(bench)
    assert (condition["status"], condition["reason"]) == ("False", INVALID)
    assert "spec.policy.numberOfClusters" in condition["message"]
    assert "apply the placement again" in condition["message"]


async def test_it_is_said_once() -> None:
    bench = await unreadable()
    await reconcile_all(bench)
    before, condition = await bench.version(), await scheduled(bench)
    bench.clock.advance(60)
    await reconcile_all(bench)
    assert await bench.version() == before
    assert await scheduled(bench) == condition


async def test_a_placement_that_was_mended_goes_on() -> None:
    bench = await unreadable()
    await reconcile_all(bench)
    await bench.change({"spec": {"policy": {"numberOfClusters": 1}}})
    await bench.converge()
    condition = await scheduled(bench)
    assert (condition["status"], condition["reason"]) == ("True", "SchedulingPolicyFulfilled")


async def test_selectors_that_cannot_be_evaluated_are_told_and_clusters_are_chosen_all_the_same() -> None:
    bench = await a_bench(a_crp(policy=pick_n(1), spec={"resourceSelectors": [NONSENSE]}))
    complaints = await reconcile_all(bench)
    condition = await scheduled(bench)
    assert (condition["status"], condition["reason"]) == ("False", INVALID_SELECTORS)
    assert "spec.resourceSelectors" in condition["message"]
    assert complaints
    assert await bench.states() == {"b": "Scheduled"}
    assert [each["clusterName"] for each in (await bench.get())["status"]["placementStatuses"]] == ["b"]


async def test_what_was_refused_and_is_no_more_is_told_without_a_change_of_the_placement() -> None:
    """Whoever refused it (here: a status that tells of it) may think better of it."""
    bench = await a_bench(a_crp(policy=pick_n(1)))
    await bench.converge()
    before = await bench.get()
    rejected = with_rejection(before, rejection_of(Terminal("the store has no room")), NOW)
    await bench.kit.changed(await bench.kit.now(WEB), rejected)
    await bench.status.reconcile(request_for(WEB))
    assert (await scheduled(bench))["reason"] == INVALID
    await bench.snapshots.reconcile(request_for(WEB))
    assert (await scheduled(bench))["reason"] == "SchedulingPolicyFulfilled"


def test_the_field_that_is_wrong_is_named_where_it_is_known() -> None:
    cache = rejection_of(InvalidResource("spec.x: no", (FieldProblem("spec.x", "no"),)))
    assert cache.reason == INVALID
    assert "correct spec.x, and apply the placement again" in cache.message
    assert "change the placement" in rejection_of(Terminal("no.")).message


def test_a_refusal_keeps_the_time_at_which_it_began_and_counts_for_its_generation_alone() -> None:
    placement = {"kind": "ClusterResourcePlacement", "metadata": {"generation": 2}, "status": {"more": 1}}
    updated = with_rejection(placement, rejection_of(Terminal("one")), NOW)
    again = with_rejection(updated, rejection_of(Terminal("two")), LATER)
    assert again["status"]["conditions"][0]["lastTransitionTime"] == NOW
    assert again["status"]["more"] == 1
    assert recorded_rejection(again) == rejection_of(Terminal("two"))
    assert recorded_rejection({**again, "metadata": {"generation": 3}}) is None
