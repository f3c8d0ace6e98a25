"""`explain placement`: decisions as they stand, what each binding waits for, and what would make it look again."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gardenbus.cli.commands import options
from gardenbus.cli.main import app
from gardenbus.common.api.document import Document
from tests.support.builders import merged
from tests.support.fake_api import FakeApi
from tests.support.fleets import a_member_document, a_placement_document

API = "placement.kubernetes-fleet.io/v1beta1"
PARENT = "kubernetes-fleet.io/parent-CRP"
LATEST = "kubernetes-fleet.io/is-latest-snapshot"
POLICY = {"placementType": "PickN", "numberOfClusters": 3}
GENERATION = "kubernetes-fleet.io/CRP-generation"


def a_part(kind: str, name: str, **changes: Any) -> Document:
    head: Document = {"name": name, "generation": 1, "labels": {PARENT: "web"}}
    return merged({"apiVersion": API, "kind": kind, "metadata": head}, changes)


def a_decision(cluster: str, reason: str = "chosen", *, score: int | None = None) -> Document:
    decision: Document = {"clusterName": cluster, "selected": reason == "chosen", "reason": reason}
    return decision | ({} if score is None else {"clusterScore": {"affinityScore": score, "priorityScore": -1}})


def a_snapshot(*decisions: Document, status: str = "True", reason: str = "SchedulingPolicyFulfilled") -> Document:
    condition = {"type": "Scheduled", "status": status, "reason": reason, "message": "as was found"}
    return a_part(
        "ClusterSchedulingPolicySnapshot",
        "web-0",
        metadata={"labels": {LATEST: "true"}, "annotations": {GENERATION: "1"}},
        spec={"policy": POLICY},
        status={"observedCRPGeneration": 1, "conditions": [condition], "targetClusters": list(decisions)},
    )


def a_binding(cluster: str, state: str, resources: str = "", *conditions: Document, **metadata: Any) -> Document:
    spec = {
        "state": state,
        "targetCluster": cluster,
        "schedulingPolicySnapshotName": "web-0",
        "resourceSnapshotName": resources,
    }
    return a_part(
        "ClusterResourceBinding",
        f"web-{cluster}",
        metadata=metadata,
        spec=spec,
        status={"conditions": list(conditions)},
    )


def reported(kind: str, status: str = "True", reason: str = "") -> Document:
    return {"type": kind, "status": status, "reason": reason, "observedGeneration": 1, "message": f"{kind} {status}"}


RESOURCES = a_part("ClusterResourceSnapshot", "web-1-snapshot", metadata={"labels": {LATEST: "true"}})
SERVING = (reported("WorkSynchronized"), reported("Applied"), reported("Available"))


def web(**changes: Any) -> Document:
    status = {"conditions": [reported("ClusterResourcePlacementScheduled")]}
    return a_placement_document(POLICY, status=status, **changes)


@pytest.fixture
def explained(monkeypatch: pytest.MonkeyPatch) -> Any:
    def call(*documents: Document, words: str = "placement web") -> Result:
        clusters = [a_member_document(f"c{number}") for number in range(5)]
        monkeypatch.setattr(options, "connected", FakeApi(*clusters, *documents).connected)
        return CliRunner().invoke(app, ["explain", *words.split(), "--nats-url", "nats://nowhere:1"])

    return call


def waits(response: Result) -> dict[str, str]:
    return {each["cluster"]: each["waitsFor"] for each in json.loads(response.stdout)["bindings"]}


def test_a_placement_is_explained_from_its_policy_to_what_would_make_it_look_again(explained: Any):
    decisions = [a_decision("c1", score=40), a_decision("c2", score=0), a_decision("c3", "gpu is not tolerated")]

    text = explained(web(), a_snapshot(*decisions), RESOURCES, a_binding("c1", "Bound", "web-1-snapshot", *SERVING))

    assert text.exit_code == 0, text.output
    lines = text.stdout.splitlines()
    assert lines[0] == "ClusterResourcePlacement web: PickN, 3 clusters"
    assert lines[1] == "  fulfilled: as was found"
    assert any(line.split()[:4] == ["c1", "yes", "40", "-1"] for line in lines)
    assert any(line.startswith("c3 ") and "gpu is not tolerated" in line for line in lines)
    assert "and 2 clusters more that the status does not list" in text.stdout
    assert "ClusterResourcePlacementScheduled" in text.stdout
    assert "an eviction takes it off one" in text.stdout


def test_the_answer_as_json_has_the_decisions_as_simulate_gives_them(explained: Any):
    response = explained(web(), a_snapshot(a_decision("c1", score=40)), words="crp web -o json")

    (decision,) = json.loads(response.stdout)["decisions"]
    assert decision == {
        "cluster": "c1",
        "selected": True,
        "affinityScore": 40,
        "topologySpreadScore": -1,
        "reason": "chosen",
    }


def test_each_binding_says_what_it_waits_for(explained: Any):
    bindings = [
        a_binding("c0", "Bound", "web-1-snapshot", *SERVING),
        a_binding(
            "c1", "Bound", "web-1-snapshot", reported("WorkSynchronized"), reported("Applied", "False", "ApplyPending")
        ),
        a_binding("c2", "Bound", "web-0-snapshot", *SERVING),
        a_binding("c3", "Unscheduled", "web-1-snapshot", *SERVING, annotations={
            "kubernetes-fleet.io/previous-binding-state": "Bound"}),
        a_binding("c4", "Bound", "", deletionTimestamp="2026-11-21T12:00:00Z",
                  finalizers=["kubernetes-fleet.io/work-cleanup"]),
    ]  # fmt: skip

    response = explained(
        web(spec={"strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}}}),
        a_snapshot(a_decision("c0")),
        RESOURCES,
        *bindings,
        words="placement web -o json",
    )

    assert waits(response) == {
        "c0": "",
        "c1": "Applied: Applied False",
        "c2": "its turn to get web-1-snapshot (maxUnavailable 0)",
        "c3": "others that serve in its place (maxUnavailable 0)",
        "c4": "its Works to be taken off the cluster",
    }


def test_scheduled_bindings_wait_for_resources_then_for_room(explained: Any):
    bindings = [a_binding("c0", "Scheduled"), a_binding("c1", "Scheduled")]
    placed = [a_binding(cluster, "Bound", "web-1-snapshot", *SERVING) for cluster in ("c2", "c3")]
    narrow = web(spec={"strategy": {"rollingUpdate": {"maxSurge": 0}}})

    without = explained(web(), a_snapshot(), *bindings, words="crp/web -o json")
    with_room_for_one = explained(narrow, a_snapshot(), RESOURCES, *bindings, *placed, words="crp/web -o json")

    assert waits(without) == dict.fromkeys(("c0", "c1"), "there are no resources yet")
    assert waits(with_room_for_one) == {
        "c0": "nothing: it is handed to its cluster next",
        "c1": "room for one more (maxSurge 0)",
        "c2": "",
        "c3": "",
    }


def test_a_failed_decision_is_said_with_when_it_is_tried_again(explained: Any):
    response = explained(web(), a_snapshot(status="False", reason="SchedulingFailed"))

    assert "NOT fulfilled: as was found" in response.stdout
    assert "the last reconcile failed" in response.stdout


def test_a_placement_that_cannot_be_read_is_explained_by_what_is_wrong_and_how_to_mend_it(explained: Any):
    response = explained(web(spec={"policy": {"numberOfClusters": "many"}}), a_binding("c0", "Bound", "web-0-snapshot"))

    assert response.exit_code == 0, response.output
    assert "NOT fulfilled: spec.policy.numberOfClusters: Expected `int" in response.stdout
    assert "correct spec.policy.numberOfClusters, and apply the placement again" in response.stdout
    assert "the placement to be mended" in response.stdout


def test_selectors_that_cannot_be_evaluated_are_said_beside_what_was_decided(explained: Any):
    rejected = reported("ClusterResourcePlacementScheduled", "False", "InvalidResourceSelectors")
    placement = a_placement_document(POLICY, status={"conditions": [rejected]}, metadata={"generation": 1})

    response = explained(placement, a_snapshot(a_decision("c1")), a_binding("c1", "Scheduled"))

    assert "NOT fulfilled: ClusterResourcePlacementScheduled False" in response.stdout
    assert "the last reconcile failed" in response.stdout
    assert any(line.split()[:2] == ["c1", "Scheduled"] for line in response.stdout.splitlines())


def test_what_lacks_clusters_is_explained_by_the_budget_of_those_found(explained: Any):
    lacking = reported("ClusterResourcePlacementScheduled", "False", "SchedulingPolicyUnfulfilled")
    many = {"placementType": "PickN", "numberOfClusters": 9}
    placement = a_placement_document(many, status={"conditions": [lacking]}, metadata={"generation": 1})
    bindings = [a_binding(name, "Bound", "web-0-snapshot", *SERVING) for name in ("c1", "c2")]

    response = explained(placement, a_snapshot(status="False"), RESOURCES, *bindings, words="crp web -o json")

    assert waits(response)["c1"] != waits(response)["c2"]
    assert waits(response)["c2"] == "its turn to get web-1-snapshot (maxUnavailable 25%)"


def test_a_placement_that_was_not_decided_yet_waits(explained: Any):
    response = explained(web())

    assert "waits: it has not been decided yet" in response.stdout
    assert "its policy has no snapshot yet" in response.stdout


def test_a_namespaced_placement_is_found_by_its_namespace_or_alone(explained: Any):
    changes: Document = {"kind": "ResourcePlacement", "metadata": {"namespace": "shop"}}
    placement = a_placement_document(POLICY, **changes)

    for words in ("placement web", "rp web", "rp shop/web", "placement web -n shop"):
        assert explained(placement, words=words).stdout.startswith("ResourcePlacement shop/web:"), words


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        ("placement web api", 2, "one placement is explained"),
        ("crp shop/web", 2, "has no namespace"),
        ("placement nobody", 1, "placement nobody not found"),
        ("crp nobody", 1, "not found"),
    ],
)
def test_what_is_not_there_or_cannot_be_meant_is_said(explained: Any, words: str, code: int, problem: str):
    response = explained(web(), words=words)

    assert response.exit_code == code
    assert problem in response.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("status", "is_reported"),
    [
        ({}, False),
        ({"observedResourceIndex": "0"}, True),
        ({"observedResourceIndex": "0", "selectedResources": [{"kind": "Namespace", "name": "web"}]}, False),
    ],
)
def test_a_placement_that_selects_nothing_is_told_so(explained: Any, status: Document, *, is_reported: bool) -> None:
    result = explained(merged(web(), {"status": status}), a_snapshot())

    assert ("it takes NOTHING along" in result.stdout) is is_reported
