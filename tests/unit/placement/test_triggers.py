"""Which placements a change of a cluster touches."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.fleet.cycle_result import FULFILLED, UNFULFILLED
from gardenbus.placement.domain.triggers import ClusterChange, binding_may_change
from tests.support.fleets import AVAILABLE, NOW, a_binding, a_member, a_placement, a_snapshot, an_agent, at, leaving

PROD = {"labelSelector": {"matchLabels": {"env": "prod"}}}


def _affinity(kind: str) -> Document:
    return {"clusterAffinity": {f"requiredDuringScheduling{kind}DuringExecution": {"clusterSelectorTerms": [PROD]}}}


ALL: Document = {"placementType": "PickAll", "affinity": _affinity("Ignored")}
ALL_ALWAYS: Document = {"placementType": "PickAll", "affinity": _affinity("Required")}
SOME: Document = {"placementType": "PickN", "numberOfClusters": 3, "affinity": _affinity("Ignored")}
SOME_ALWAYS: Document = {"placementType": "PickN", "numberOfClusters": 3, "affinity": _affinity("Required")}
SPREAD: Document = {**SOME, "topologySpreadConstraints": [{"topologyKey": "region"}]}
FIXED: Document = {"placementType": "PickFixed", "clusterNames": ["a"]}
ELSEWHERE: Document = {"placementType": "PickFixed", "clusterNames": ["z"]}

PLAIN = a_member("a", {"env": "prod"})
DEV = a_member("a", {"env": "dev"})
MORE_LABELS = a_member("a", {"env": "prod", "x": "y"})
OTHER_REGION = a_member("a", {"env": "prod", "region": "eu"})
TAINTED = a_member("a", {"env": "prod"}, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
SICK = a_member("a", {"env": "prod"}, agent=an_agent(joined="False"))
SEEN = a_member("a", {"env": "prod"}, agent=an_agent(heartbeat=60))
MEASURED = a_member("a", {"env": "prod"}, properties={"p": "1"})
GONE = leaving(PLAIN)

YES, NO = True, False


@pytest.mark.parametrize(
    ("old", "new", "policy", "expected"),
    [
        # policy is a pair: what it asks for; how it stands
        pytest.param(DEV, PLAIN, (ALL, "all"), YES, id="PickAll: began to match"),
        pytest.param(None, PLAIN, (ALL, "all"), YES, id="PickAll: came"),
        pytest.param(None, DEV, (ALL, "all"), YES, id="PickAll: came, and is refused for another reason"),
        pytest.param(SICK, PLAIN, (ALL, "all"), YES, id="PickAll: became eligible"),
        pytest.param(TAINTED, PLAIN, (ALL, "all"), YES, id="PickAll: lost its taint"),
        pytest.param(PLAIN, MORE_LABELS, (ALL, "selected"), NO, id="PickAll: a label that nobody asks for"),
        pytest.param(
            DEV, a_member("a", {"env": "test"}), (ALL, "all"), NO, id="PickAll: matched neither before nor now"
        ),
        pytest.param(PLAIN, DEV, (ALL, "selected"), NO, id="PickAll: stopped matching where it is"),
        pytest.param(PLAIN, DEV, (ALL_ALWAYS, "selected"), YES, id="PickAll, always: stopped matching where it is"),
        pytest.param(PLAIN, TAINTED, (ALL, "selected"), NO, id="PickAll: tainted where it is"),
        pytest.param(PLAIN, GONE, (ALL, "selected"), YES, id="PickAll: leaves where it is"),
        pytest.param(GONE, None, (ALL, "selected"), NO, id="PickAll: left after it was known to leave"),
        pytest.param(PLAIN, None, (ALL, "selected"), YES, id="PickAll: left at once"),
        pytest.param(PLAIN, SEEN, (ALL, "all"), NO, id="PickAll: a heartbeat"),
        pytest.param(DEV, PLAIN, (SOME, "fulfilled"), NO, id="PickN fulfilled: began to match"),
        pytest.param(PLAIN, DEV, (SOME, "selected"), NO, id="PickN fulfilled: stopped matching where it is"),
        pytest.param(PLAIN, DEV, (SOME_ALWAYS, "selected"), YES, id="PickN, always: stopped matching where it is"),
        pytest.param(DEV, PLAIN, (SOME_ALWAYS, "selected"), YES, id="PickN, always: matches again where it is"),
        pytest.param(PLAIN, MORE_LABELS, (SOME_ALWAYS, "selected"), NO, id="PickN, always: still matches"),
        pytest.param(PLAIN, GONE, (SOME, "selected"), YES, id="PickN fulfilled: leaves where it is"),
        pytest.param(PLAIN, GONE, (SOME, "fulfilled"), NO, id="PickN fulfilled: leaves elsewhere"),
        pytest.param(DEV, PLAIN, (SOME, "lacking"), YES, id="PickN lacking: began to match"),
        pytest.param(PLAIN, SICK, (SOME, "lacking"), YES, id="PickN lacking: turned ineligible"),
        pytest.param(PLAIN, TAINTED, (SOME, "lacking"), YES, id="PickN lacking: tainted"),
        pytest.param(PLAIN, MORE_LABELS, (SOME, "lacking"), NO, id="PickN lacking: a label that nobody asks for"),
        pytest.param(PLAIN, MEASURED, (SOME, "lacking"), NO, id="PickN lacking: a property that nobody asks for"),
        pytest.param(PLAIN, OTHER_REGION, (SOME, "lacking"), NO, id="PickN lacking: moved, without spread"),
        pytest.param(PLAIN, OTHER_REGION, (SPREAD, "lacking"), YES, id="PickN lacking: moved to another domain"),
        pytest.param(OTHER_REGION, None, (SPREAD, "lacking"), YES, id="PickN lacking: a domain went"),
        pytest.param(PLAIN, OTHER_REGION, (SPREAD, "fulfilled"), NO, id="PickN fulfilled: moved to another domain"),
        pytest.param(SICK, PLAIN, (FIXED, "lacking"), YES, id="PickFixed: became eligible"),
        pytest.param(PLAIN, SICK, (FIXED, "selected"), YES, id="PickFixed: turned ineligible"),
        pytest.param(None, PLAIN, (FIXED, "lacking"), YES, id="PickFixed: came"),
        pytest.param(PLAIN, DEV, (FIXED, "selected"), NO, id="PickFixed: labels"),
        pytest.param(PLAIN, GONE, (ELSEWHERE, "fulfilled"), NO, id="PickFixed: another cluster"),
        pytest.param(PLAIN, MORE_LABELS, (SOME, "unknown"), YES, id="not decided yet: anything"),
        pytest.param(PLAIN, SEEN, (SOME, "unknown"), NO, id="not decided yet: a heartbeat is nothing"),
        pytest.param(PLAIN, MEASURED, (SOME, "failed"), YES, id="could not be decided: anything"),
        pytest.param(PLAIN, MEASURED, (SOME, "old"), YES, id="decided for an earlier generation: anything"),
    ],
)
def test_only_those_are_touched_whose_decision_may_change(
    old: MemberCluster | None, new: MemberCluster | None, policy: tuple[Document, str], expected: bool
) -> None:
    stated, policy_state = policy
    snapshot = a_snapshot(stated, status=_status(policy_state))
    assert ClusterChange(old, new, was=NOW, now=NOW).affects(a_placement(stated), snapshot) is expected


def test_a_heartbeat_that_goes_stale_touches_those_that_lack_clusters_and_those_that_name_it() -> None:
    change = ClusterChange(PLAIN, PLAIN, was=NOW, now=NOW + 301)
    assert change.is_relevant
    assert change.affects(a_placement(SOME), a_snapshot(SOME, status=_status("lacking")))
    assert change.affects(a_placement(FIXED), a_snapshot(FIXED, status=_status("selected")))
    assert not change.affects(a_placement(SOME), a_snapshot(SOME, status=_status("selected")))
    assert not ClusterChange(PLAIN, PLAIN, was=NOW, now=NOW + 100).is_relevant


def test_a_namespace_touches_the_placements_in_it() -> None:
    collected = [{"type": "NamespaceCollectionSucceeded", "status": "True"}]
    before, after = (
        a_member("a", conditions=collected, namespaces=names) for names in ({"x": ""}, {"x": "", "shop": ""})
    )
    change = ClusterChange(before, after, was=NOW, now=NOW)
    for namespace, expected in (("shop", True), ("bank", False)):
        placement = a_placement(kind="ResourcePlacement", metadata={"namespace": namespace})
        assert change.affects(placement, a_snapshot(status=_status("all"))) is expected


def test_where_not_all_selected_are_told_a_leaving_cluster_touches_the_placement() -> None:
    targets = [{"clusterName": f"c{place}", "selected": True} for place in range(1000)]
    snapshot = a_snapshot(status={**_status("all"), "targetClusters": targets})
    assert ClusterChange(PLAIN, GONE, was=NOW, now=NOW).affects(a_placement(), snapshot)


@pytest.mark.parametrize(
    ("old", "new", "always", "expected"),
    [
        (a_binding("a"), a_binding("a", deletionTimestamp=at()), False, True),
        (a_binding("a", deletionTimestamp=at()), None, False, False),
        (a_binding("a"), None, False, True),
        (None, a_binding("a"), False, False),
        (a_binding("a", "Scheduled"), a_binding("a"), False, False),
        (a_binding("a", "Scheduled"), a_binding("a"), True, True),
        (a_binding("a"), a_binding("a", conditions=[AVAILABLE]), True, True),
        (a_binding("a"), a_binding("a", conditions=[AVAILABLE]), False, False),
        (a_binding("a"), a_binding("a", conditions=[{"type": "Applied", "status": "True"}]), True, False),
    ],
)
def test_a_binding_calls_for_another_cycle_when_it_goes_or_may_replace_another(
    old: Any, new: Any, always: bool, expected: bool
) -> None:
    assert binding_may_change(a_snapshot(SOME_ALWAYS if always else SOME), old, new) is expected


def _status(policy_state: str) -> Document:
    if policy_state == "unknown":
        return {}
    lacking = policy_state in ("lacking", "failed")
    reason = {"failed": "UnexpectedState", "lacking": UNFULFILLED}.get(policy_state, FULFILLED)
    return {
        "observedCRPGeneration": 0 if policy_state == "old" else 1,
        "conditions": [{"type": "Scheduled", "status": "False" if lacking else "True", "reason": reason}],
        "targetClusters": [{"clusterName": "a", "selected": policy_state == "selected"}],
    }
