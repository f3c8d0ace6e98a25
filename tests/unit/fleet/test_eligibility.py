"""Who can be placed on at all: agents and their heartbeats, taints, namespaces."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.member_clusters import ClusterTaint, MemberCluster
from gardenbus.common.api.fleet.placement_parts import ClusterDecision
from gardenbus.common.api.fleet.placements import ClusterToleration
from gardenbus.fleet.cycle import decide
from gardenbus.fleet.eligibility import ineligibility_reason
from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.taint_toleration import tolerates, untolerated
from tests.support.fleets import NOW, a_member, a_placement, a_snapshot, an_agent, leaving


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        pytest.param(a_member("a"), None, id="well"),
        pytest.param(a_member("a", agent=an_agent(heartbeat=-300)), None, id="heard exactly 5 minutes ago"),
        pytest.param(a_member("a", agent=an_agent(heartbeat=-360)), "heartbeat", id="heard 6 minutes ago"),
        pytest.param(a_member("a", agent=an_agent(healthy="False", since=-3)), None, id="unhealthy for 3 seconds"),
        pytest.param(a_member("a", agent=an_agent(healthy="False", since=-360)), "unhealthy", id="for 6 minutes"),
        pytest.param(a_member("a", agent=an_agent(healthy="Unknown", since=-360)), "unhealthy", id="unknown health"),
        pytest.param(a_member("a", agent=an_agent(healthy=None)), "health", id="health missing"),
        pytest.param(a_member("a", agent=an_agent(joined="False")), "joined", id="not joined"),
        pytest.param(a_member("a", agent={"type": "Other"}), "not reported", id="another agent"),
        pytest.param(a_member("a", agent={"type": "MemberAgent"}), "heartbeat", id="never heard"),
        pytest.param(leaving(a_member("a")), "leaving", id="leaving"),
        pytest.param(leaving(a_member("a", agent={"type": "Other"})), "leaving", id="leaving comes first"),
        pytest.param(a_member("a", agent=an_agent(heartbeat=-360, joined="False")), "heartbeat", id="heartbeat first"),
    ],
)
def test_the_first_check_that_fails_is_the_reason(cluster: MemberCluster, expected: str | None) -> None:
    reason = ineligibility_reason(cluster, NOW)
    assert (reason is None) if expected is None else (expected in (reason or ""))
    assert Fleet.of([cluster], NOW).ineligibility("a") == reason


def test_a_fleet_follows_time_where_time_makes_a_difference() -> None:
    fleet = Fleet.of([a_member("a", agent=an_agent(heartbeat=-10)), a_member("b", agent=an_agent(heartbeat=-100))], NOW)
    assert fleet.at(NOW + 200) is fleet
    later = fleet.at(NOW + 201)
    assert later is not fleet
    assert (later.ineligibility("a"), later.ineligibility("b") is None) == (None, False)
    assert later.at(NOW).ineligibility("b") is None


def test_a_decision_looks_at_its_own_time_whatever_the_fleets() -> None:
    fleet = Fleet.of([a_member("a")], NOW)
    assert len(decide(a_placement(), a_snapshot(), fleet, [], NOW).creations) == 1
    assert not decide(a_placement(), a_snapshot(), fleet, [], NOW + 301).creations


def test_what_a_fleet_takes_over_from_an_earlier_one_is_what_did_not_change() -> None:
    before = Fleet.of([a_member("a", {"x": "1"}), a_member("b", {"x": "1"}, properties={"p": "1"})], NOW)
    received = Fleet.of([before.members[0], a_member("b", {"x": "1"}, properties={"p": "1"})], NOW + 1, before)
    assert received.labels is before.labels
    assert received.properties is before.properties
    assert received.taints is before.taints
    changed = Fleet.of(
        [a_member("a", {"x": "2"}, taints=[{"key": "k"}]), a_member("b", properties={"p": "2"})], NOW, received
    )
    assert changed.labels.domains("x") == {"2": 1}
    assert list(changed.properties.column("p").by_value) == [2]
    assert list(changed.taints) == [(ClusterTaint("k"),)]
    assert list(Fleet.of([a_member("c", {"x": "3"})], NOW, changed).labels.domains("x")) == ["3"]


K1 = ClusterTaint("k1", "v1", "NoSchedule")
K2 = ClusterTaint("k2", "v2", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (ClusterToleration(operator="Exists"), True),
        (ClusterToleration("k1", "Exists"), True),
        (ClusterToleration("k2", "Exists"), False),
        (ClusterToleration("k1", "Equal", "v1"), True),
        (ClusterToleration("k1", "Equal", "v2"), False),
        (ClusterToleration("k1", "Equal", "v1", "NoSchedule"), True),
        (ClusterToleration("k1", "Equal", "v1", "NoExecute"), False),
        (ClusterToleration("k1", "Exists", effect="NoExecute"), False),
        (ClusterToleration("k1", "", "v1"), False),
        (ClusterToleration("k1", "Like", "v1"), False),
    ],
)
def test_a_toleration_covers_a_taint(toleration: ClusterToleration, expected: bool) -> None:
    assert tolerates(toleration, K1) is expected


def test_the_first_taint_that_nothing_tolerates_is_the_reason() -> None:
    assert untolerated((K1, K2), (ClusterToleration("k1", "Equal", "v1"),)) == K2
    assert untolerated((K1, K2), (ClusterToleration(operator="Exists"),)) is None
    assert untolerated((), ()) is None
    decision = _decision(a_member("a", taints=[{"key": "k1", "value": "v1", "effect": "NoSchedule"}]), {})
    assert not decision.selected
    assert "k1=v1:NoSchedule" in decision.reason


def test_a_placement_that_tolerates_every_taint_is_placed() -> None:
    policy = {"placementType": "PickAll", "tolerations": [{"operator": "Exists"}]}
    assert _decision(a_member("a", taints=[{"key": "k1", "effect": "NoSchedule"}]), policy).selected


COLLECTED = [{"type": "NamespaceCollectionSucceeded", "status": "True"}]
DEGRADED = [{"type": "NamespaceCollectionSucceeded", "status": "False"}]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, True, id="tells nothing"),
        pytest.param({"namespaces": {"other": ""}}, True, id="does not collect"),
        pytest.param({"conditions": COLLECTED}, False, id="collects, has told of none"),
        pytest.param({"conditions": COLLECTED, "namespaces": {"other": ""}}, False, id="has others"),
        pytest.param({"conditions": COLLECTED, "namespaces": {"shop": ""}}, True, id="has it"),
        pytest.param({"conditions": DEGRADED, "namespaces": {"shop": ""}}, True, id="degraded, has it"),
        pytest.param({"conditions": DEGRADED, "namespaces": {"other": ""}}, False, id="degraded, has others"),
    ],
)
def test_a_resource_placement_goes_where_its_namespace_is(status: Document, expected: bool) -> None:
    cluster = a_member("a", **status)
    namespaced: dict[str, Any] = {"kind": "ResourcePlacement", "metadata": {"namespace": "shop"}}
    cycle = decide(a_placement(**namespaced), a_snapshot(), Fleet.of([cluster], NOW), [], NOW)
    assert bool(cycle.creations) is expected
    assert decide(a_placement(), a_snapshot(), Fleet.of([cluster], NOW), [], NOW).creations


def _decision(cluster: MemberCluster, policy: Document) -> ClusterDecision:
    [decision] = decide(a_placement(policy), a_snapshot(policy), Fleet.of([cluster], NOW), [], NOW).decisions
    return decision
