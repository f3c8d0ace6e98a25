"""Placements decided on paper."""

from typing import Any

from gardenbus.cli.simulate.placements import simulate
from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.placements import PARENT_LABEL
from tests.support.fleets import NOW, a_member_document, a_placement_document, an_agent

N2: Document = {"placementType": "PickN", "numberOfClusters": 2}


def _binding(cluster: str, snapshot: str, state: str = "Bound", **metadata: Any) -> Document:
    return {
        "kind": "ClusterResourceBinding",
        "metadata": {"name": f"web-{cluster}", "labels": {PARENT_LABEL: "web"}, **metadata},
        "spec": {
            "state": state,
            "targetCluster": cluster,
            "schedulingPolicySnapshotName": snapshot,
            "clusterDecision": {"clusterName": cluster, "selected": True},
        },
    }


def _snapshot(policy: Document, name: str, latest: str = "true") -> Document:
    labels = {PARENT_LABEL: "web", "kubernetes-fleet.io/is-latest-snapshot": latest}
    return {
        "kind": "ClusterSchedulingPolicySnapshot",
        "metadata": {"name": name, "labels": labels},
        "spec": {"policy": policy},
    }


def _selected(results: list[dict[str, Any]]) -> list[str]:
    [result] = results
    return [one["cluster"] for one in result["decisions"] if one["selected"]]


CLUSTERS = [a_member_document(name) for name in "abc"]


def test_it_tells_who_is_chosen_in_order_with_both_scores_and_why_others_are_not() -> None:
    sick = a_member_document("sick", status={"agentStatus": [an_agent(joined="False")]})
    [result] = simulate([*CLUSTERS, sick, a_placement_document(N2)])
    assert (result["placement"], result["fulfilled"]) == ("web", True)
    decisions = result["decisions"]
    assert [(one["cluster"], one["selected"]) for one in decisions] == [
        ("c", True),
        ("b", True),
        ("a", False),
        ("sick", False),
    ]
    assert [(one["affinityScore"], one["topologySpreadScore"]) for one in decisions] == [(0, 0)] * 3 + [(None, None)]
    assert all(one["reason"] for one in decisions)


def test_the_others_are_told_however_many_they_are() -> None:
    clusters = [a_member_document(f"c{place:04}") for place in range(1100)]
    [few] = simulate([*clusters, a_placement_document(N2)])
    [everyone] = simulate([*clusters, a_placement_document()])
    assert len(few["decisions"]) == len(everyone["decisions"]) == 1100


def test_lists_are_opened_and_placements_are_told_in_the_order_of_the_manifests() -> None:
    namespaced = a_placement_document(name="own", kind="ResourcePlacement", metadata={"namespace": "shop"})
    placements = {"kind": "List", "items": [a_placement_document(name="z"), namespaced]}
    results = simulate([placements, {"kind": "MemberClusterList", "items": CLUSTERS}, {"kind": "Shoot"}, {}])
    assert [result["placement"] for result in results] == ["z", "shop/own"]
    assert [len(result["decisions"]) for result in results] == [3, 3]


def test_clusters_are_judged_at_the_newest_heartbeat_unless_told_when() -> None:
    old = a_member_document("old", status={"agentStatus": [an_agent(heartbeat=-400)]})
    assert _selected(simulate([*CLUSTERS, old, a_placement_document()])) == ["a", "b", "c"]
    assert _selected(simulate([old, a_placement_document()])) == ["old"]
    assert _selected(simulate([old, a_placement_document()], now=NOW)) == []
    assert _selected(simulate([{"kind": "MemberCluster", "metadata": {"name": "new"}}, a_placement_document()])) == []


def test_bindings_that_stand_are_kept() -> None:
    assert _selected(simulate([*CLUSTERS, _binding("a", "web-0"), a_placement_document(N2)])) == ["c", "a"]


def test_bindings_of_an_earlier_policy_are_known_by_the_snapshots() -> None:
    bindings = [_binding("a", "web-3"), _binding("b", "web-12")]
    assert _selected(simulate([*CLUSTERS, *bindings, a_placement_document(N2)])) == ["a", "b"]
    one: Document = {**N2, "numberOfClusters": 1}
    assert _selected(simulate([*CLUSTERS, *bindings, a_placement_document(one)])) == ["b"]
    snapshots = [_snapshot(one, "web-3"), _snapshot(N2, "web-12", "false")]
    assert _selected(simulate([*CLUSTERS, *bindings, *snapshots, a_placement_document(one)])) == ["a"]
    changed = [_snapshot({**one, "tolerations": [{"operator": "Exists"}]}, "web-12")]
    assert _selected(simulate([*CLUSTERS, *bindings, *changed, a_placement_document(one)])) == ["b"]


def test_bindings_of_others_are_no_concern() -> None:
    foreign = _binding("a", "web-0")
    foreign["metadata"]["labels"] = {PARENT_LABEL: "other"}
    elsewhere = _binding("a", "web-0", namespace="shop")
    assert _selected(simulate([*CLUSTERS, foreign, elsewhere, a_placement_document(N2)])) == ["c", "b"]


def test_what_cannot_be_decided_says_why() -> None:
    broken = a_placement_document({"placementType": "PickN"}, name="broken")
    unreadable = a_placement_document({"placementType": "PickSome"}, name="unreadable")
    results = simulate([*CLUSTERS, {"kind": "MemberCluster", "metadata": {"name": 7}}, broken, unreadable])
    assert [(result["placement"], result["fulfilled"], result["decisions"]) for result in results] == [
        ("broken", False, []),
        ("unreadable", False, []),
    ]
    assert all(result["error"] for result in results)
