"""What holds of every scheduling cycle, whatever the fleet, the policy and the bindings."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.fleet.placement_parts import BindingStatus, PartCondition, ResourceBinding
from gardenbus.fleet.cycle import decide
from gardenbus.fleet.cycle_result import FULFILLED, UNFULFILLED, CycleResult
from gardenbus.fleet.eligibility import ineligibility_reason
from gardenbus.fleet.fleet import Fleet
from gardenbus.placement.domain.triggers import ClusterChange
from tests.support.fleets import CURRENT, NOW, a_placement, a_snapshot, applied, writes_bindings
from tests.support.generated_fleets import NAMES, existing_bindings, fleets, members, policies
from tests.support.naive_fleet import NaiveBinding, schedule

TARGET = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is no failure."""


def _decide(policy: Document, clusters: Sequence[MemberCluster], bindings: Sequence[ResourceBinding]) -> CycleResult:
    return decide(a_placement(policy), a_snapshot(policy), Fleet.of(clusters, NOW), bindings, NOW)


@TARGET
@given(policies(), fleets(), existing_bindings(), st.randoms(use_true_random=False))
def test_the_same_state_has_the_same_decisions(
    policy: Document, clusters: list[MemberCluster], bindings: list[ResourceBinding], chance: Any
) -> None:
    cycle = _decide(policy, clusters, bindings)
    assert _decide(policy, clusters, bindings) == cycle
    chance.shuffle(clusters)
    chance.shuffle(bindings)
    assert _decide(policy, clusters, bindings) == cycle


@TARGET
@given(policies(), fleets(), existing_bindings())
def test_it_comes_to_what_plain_cycles_one_after_the_other_come_to(
    policy: Document, clusters: list[MemberCluster], bindings: list[ResourceBinding]
) -> None:
    after = applied(bindings, _decide(policy, clusters, bindings))
    assert schedule(policy, clusters, bindings, lambda one: ineligibility_reason(one, NOW) is None) == _remaining(after)


@TARGET
@given(policies(), fleets(), existing_bindings())
def test_deciding_again_after_the_writes_writes_nothing(
    policy: Document, clusters: list[MemberCluster], bindings: list[ResourceBinding]
) -> None:
    after = applied(bindings, _decide(policy, clusters, bindings))
    assert not writes_bindings(_decide(policy, clusters, after))


@TARGET
@given(policies(("PickN",)), fleets(), existing_bindings(), st.integers(1, 4))
def test_nothing_moves_when_more_are_wanted(
    policy: Document, clusters: list[MemberCluster], bindings: list[ResourceBinding], more: int
) -> None:
    settled = applied(bindings, _decide(policy, clusters, bindings))
    wanted = {**policy, "numberOfClusters": policy["numberOfClusters"] + more}
    cycle = _decide(wanted, clusters, settled)
    assert not cycle.unscheduled
    placed = _placed(settled)
    assert placed <= _placed(applied(settled, cycle))
    taken_over = {change.binding for change in cycle.changes}
    assert all(one.spec.state == "Unscheduled" for one in settled if one.name in taken_over)


@TARGET
@given(policies(("PickN",)), fleets(), existing_bindings())
def test_no_binding_that_a_cycle_adds_breaks_a_hard_max_skew(
    policy: Document, clusters: list[MemberCluster], bindings: list[ResourceBinding]
) -> None:
    after = applied(bindings, _decide(policy, clusters, bindings))
    added = _placed(after) - _placed(bindings)
    for constraint in policy["topologySpreadConstraints"]:
        key = constraint["topologyKey"]
        domains = {one.name: one.metadata.labels[key] for one in clusters if key in one.metadata.labels}
        if constraint["whenUnsatisfiable"] == "DoNotSchedule" and added & domains.keys():
            counts = Counter(dict.fromkeys(domains.values(), 0))
            counts.update(domains[cluster] for cluster in _placed(after) & domains.keys())
            assert max(counts.values()) - min(counts.values()) <= constraint["maxSkew"]


@TARGET
@given(policies(("PickN",)), fleets(), existing_bindings())
def test_pick_n_never_has_more_than_it_wants_and_is_fulfilled_when_it_has_them(
    policy: Document, clusters: list[MemberCluster], bindings: list[ResourceBinding]
) -> None:
    cycle = _decide(policy, clusters, bindings)
    placed = len(_placed(applied(bindings, cycle)))
    assert placed <= policy["numberOfClusters"]
    assert cycle.fulfilled == (placed == policy["numberOfClusters"])


@TARGET
@given(policies(), fleets(), existing_bindings())
def test_nobody_is_added_who_is_not_eligible(
    policy: Document, clusters: list[MemberCluster], bindings: list[ResourceBinding]
) -> None:
    well = {cluster.name for cluster in clusters if ineligibility_reason(cluster, NOW) is None}
    cycle = _decide(policy, clusters, bindings)
    assert {pick.cluster for pick in cycle.creations} <= well
    by_name = {one.name: one.spec.target_cluster for one in bindings}
    assert {by_name[change.binding] for change in cycle.changes} <= well


@TARGET
@given(policies(("PickN", "PickAll")), fleets(), existing_bindings(), st.sets(st.sampled_from(NAMES)))
def test_who_serves_goes_only_when_as_many_as_wanted_serve_without_it(
    policy: Document, clusters: list[MemberCluster], bindings: list[ResourceBinding], serving: set[str]
) -> None:
    policy = _always(policy)
    bindings = [_serving(one) if one.spec.target_cluster in serving else one for one in bindings]
    cycle = _decide(policy, clusters, bindings)
    after = applied(bindings, cycle)
    assert not writes_bindings(_decide(policy, clusters, after))
    there = {cluster.name for cluster in clusters if not cluster.is_deleting}
    lost = [one for one in bindings if one.name in cycle.unscheduled and one.spec.target_cluster in there & serving]
    if policy["placementType"] == "PickN" and cycle.creations and _serve(lost):
        assert len(_serve(after) & serving) >= policy["numberOfClusters"]


@TARGET
@given(policies(), fleets(), existing_bindings(), st.sampled_from(NAMES), st.data())
def test_a_change_that_touches_nobody_changes_no_bindings(
    policy: Document, clusters: list[MemberCluster], bindings: list[ResourceBinding], name: str, data: st.DataObject
) -> None:
    # What a policy names does not change, so nothing of this policy is elsewhere.
    assume(_placed(bindings) <= set(policy.get("clusterNames", NAMES)))
    cycle = _decide(policy, clusters, bindings)
    settled = applied(bindings, cycle)
    announced = {
        "observedCRPGeneration": 1,
        "conditions": [
            {
                "type": "Scheduled",
                "status": "True" if cycle.fulfilled else "False",
                "reason": FULFILLED if cycle.fulfilled else UNFULFILLED,
            }
        ],
        "targetClusters": [{"clusterName": one.cluster_name, "selected": one.selected} for one in cycle.decisions],
    }
    old = next((one for one in clusters if one.name == name), None)
    new = data.draw(st.one_of(st.none(), members(name)))
    change = ClusterChange(old, new, was=NOW, now=NOW)
    if not change.affects(a_placement(policy), a_snapshot(policy, status=announced)):
        changed = [one for one in clusters if one.name != name] + ([new] if new else [])
        assert not writes_bindings(_decide(policy, changed, settled))


def _always(policy: Document) -> Document:
    """The policy with what it requires required always."""
    affinity = dict(policy["affinity"]["clusterAffinity"])
    if terms := affinity.pop("requiredDuringSchedulingIgnoredDuringExecution", None):
        affinity["requiredDuringSchedulingRequiredDuringExecution"] = terms
    return {**policy, "affinity": {"clusterAffinity": affinity}}


def _serving(binding: ResourceBinding) -> ResourceBinding:
    available = PartCondition("Available", "True", "AllWorkAreAvailable")
    return msgspec.structs.replace(binding, status=BindingStatus((available,)))


def _serve(bindings: Sequence[ResourceBinding]) -> set[str]:
    """The clusters that have a Bound binding of the current policy."""
    return _placed([one for one in bindings if one.spec.state == "Bound"])


def _placed(bindings: Sequence[ResourceBinding]) -> set[str]:
    """The clusters that have a binding of the current policy."""
    return {
        one.spec.target_cluster
        for one in bindings
        if one.spec.state != "Unscheduled"
        and one.spec.scheduling_policy_snapshot_name == CURRENT
        and not one.is_deleting
    }


def _remaining(bindings: Sequence[ResourceBinding]) -> dict[str, list[tuple[str, str, tuple[int, int] | None]]]:
    targets: dict[str, list[tuple[str, str, tuple[int, int] | None]]] = {}
    for one in map(NaiveBinding.of, (binding for binding in bindings if not binding.is_deleting)):
        targets.setdefault(one.cluster, []).append((one.state, one.snapshot, one.score))
    return {cluster: sorted(each, key=str) for cluster, each in targets.items()}
