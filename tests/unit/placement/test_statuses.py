"""What a placement's status says of scheduling, and of how it is on each cluster."""

from typing import Any

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.placements import Placement
from gardenbus.placement.domain.placement_status import status_of
from tests.support.builders import merged
from tests.support.placements import a_crp, pick_n

NOW, LATER = "2026-01-02T03:04:05Z", "2026-01-02T04:00:00Z"
STEPS = ("RolloutStarted", "Overridden", "WorkSynchronized", "Applied", "Available")


def a_snapshot(*chosen: str, rejected: tuple[str, ...] = (), status: str = "True", observed: int = 1) -> Document:
    decisions = [{"clusterName": name, "selected": True, "reason": "picked"} for name in chosen]
    decisions += [{"clusterName": name, "selected": False, "reason": f"{name} does not fit"} for name in rejected]
    condition = {"type": "Scheduled", "status": status, "reason": "R", "message": "M", "observedGeneration": 1}
    return {
        "metadata": {"generation": 1, "annotations": {"kubernetes-fleet.io/CRP-generation": str(observed)}},
        "status": {"observedCRPGeneration": observed, "conditions": [condition], "targetClusters": decisions},
    }


def a_binding(cluster: str, *true: str, generation: int = 1, **more: Any) -> Document:
    conditions = [
        {"type": kind, "status": "True", "reason": "Ok", "message": "", "observedGeneration": generation}
        for kind in true
    ]
    spec = {"state": "Bound", "targetCluster": cluster, "resourceSnapshotName": "web-3-snapshot"}
    binding = {"metadata": {"generation": 1}, "spec": spec, "status": {"conditions": conditions}}
    return merged(binding, more)


def status(snapshot: Document | None, *bindings: Document, **more: Any) -> Document:
    document = merged(a_crp(policy=pick_n(2)), {"metadata": {"generation": 1}})
    document = merged(document, more)
    return status_of(Placement.from_document(document), document, snapshot, bindings, NOW)


def conditions(updated: Document) -> dict[str, str]:
    return {each["type"].removeprefix("ClusterResourcePlacement"): each["status"] for each in updated["conditions"]}


def test_before_a_decision_nothing_else_is_told() -> None:
    for updated in (
        status(None),
        status(a_snapshot("a"), metadata={"generation": 2}),
        status(a_snapshot("a", observed=0)),
    ):
        assert conditions(updated) == {"Scheduled": "Unknown"}
        assert updated["conditions"][0]["reason"] == "SchedulePending"
        assert updated["placementStatuses"] == []


def test_without_any_cluster_only_scheduling_is_told() -> None:
    assert conditions(status(a_snapshot(status="False"))) == {"Scheduled": "False"}


def test_all_true_on_all_clusters_is_true_of_the_whole() -> None:
    updated = status(a_snapshot("a", "b"), a_binding("a", *STEPS), a_binding("b", *STEPS))
    assert conditions(updated) == dict.fromkeys(("Scheduled", *STEPS), "True")
    assert [each["observedResourceIndex"] for each in updated["placementStatuses"]] == ["3", "3"]


def test_the_first_that_is_not_true_ends_the_list() -> None:
    updated = status(a_snapshot("a", "b"), a_binding("a", *STEPS), a_binding("b", *STEPS[:2]))
    assert conditions(updated) == {
        "Scheduled": "True",
        "RolloutStarted": "True",
        "Overridden": "True",
        "WorkSynchronized": "Unknown",
    }
    assert "1 of 2" in updated["conditions"][-1]["message"]


def test_unknown_anywhere_outweighs_false_elsewhere() -> None:
    failed = a_binding("a", *STEPS[:3])
    failed["status"]["conditions"].append(
        {"type": "Applied", "status": "False", "reason": "No", "message": "broken", "observedGeneration": 1}
    )
    assert conditions(status(a_snapshot("a", "b"), failed, a_binding("b", *STEPS)))["Applied"] == "False"
    assert conditions(status(a_snapshot("a", "b"), failed, a_binding("b", *STEPS[:3])))["Applied"] == "Unknown"


def test_conditions_of_another_generation_say_nothing() -> None:
    updated = status(a_snapshot("a"), a_binding("a", *STEPS, metadata={"generation": 2}))
    assert conditions(updated) == {"Scheduled": "True", "RolloutStarted": "Unknown"}


def test_bindings_given_up_or_leaving_do_not_count() -> None:
    for binding in (
        a_binding("a", *STEPS, spec={"state": "Unscheduled"}),
        a_binding("a", *STEPS, metadata={"deletionTimestamp": NOW}),
    ):
        assert conditions(status(a_snapshot("a"), binding))["RolloutStarted"] == "Unknown"


def test_what_is_missing_is_shown_without_a_name() -> None:
    updated = status(a_snapshot("a", rejected=("b", "c"), status="False"), a_binding("a", *STEPS))
    assert len(updated["placementStatuses"]) == 2
    missing = updated["placementStatuses"][1]
    assert "clusterName" not in missing
    assert missing["conditions"][0]["message"] == "b does not fit"


def test_differences_are_reported_in_place_of_applying() -> None:
    strategy = {"strategy": {"applyStrategy": {"type": "ReportDiff"}}}
    updated = status(a_snapshot("a"), a_binding("a", *STEPS[:3], "DiffReported"), spec=strategy)
    assert list(conditions(updated)) == ["Scheduled", *STEPS[:3], "DiffReported"]


def test_failures_of_resources_are_handed_on() -> None:
    failed = [{"kind": "ConfigMap", "name": "c"}]
    updated = status(a_snapshot("a"), a_binding("a", *STEPS, status={"failedPlacements": failed}))
    assert updated["placementStatuses"][0]["failedPlacements"] == failed


def test_times_move_with_what_is_said() -> None:
    snapshot = a_snapshot("a", rejected=("b",), status="False")
    document = merged(a_crp(policy=pick_n(2)), {"metadata": {"generation": 1}})
    first = status_of(Placement.from_document(document), document, snapshot, [a_binding("a")], NOW)
    document["status"] = first
    placement = Placement.from_document(document)
    assert status_of(placement, document, snapshot, [a_binding("a")], LATER) == first
    moved = status_of(placement, document, snapshot, [a_binding("a", *STEPS)], LATER)
    since = {
        each["type"].removeprefix("ClusterResourcePlacement"): each["lastTransitionTime"]
        for each in moved["conditions"]
    }
    assert since["Scheduled"] == NOW
    assert since["RolloutStarted"] == LATER
