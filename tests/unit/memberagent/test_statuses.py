"""What agents say of Works and of their clusters."""

from datetime import UTC, datetime
from typing import Any

from gardenbus.agent.domain.cluster_facts import ClusterFacts, joined_patch, left_patch
from gardenbus.agent.domain.enrolment import enrolment, seed_facts
from gardenbus.common.api.conditions import conditions_of
from gardenbus.common.api.fleet.member_clusters import MemberCluster, has_left
from gardenbus.common.api.fleet.works import Work
from gardenbus.memberagent.domain.work_status import ManifestResult, cleaned_up_status, status_includes, status_of
from tests.support.builders import a_seed, merged
from tests.support.member_agents import a_manifest, a_work, observed_conditions

NOW, LATER = "2026-11-21T12:00:00Z", "2026-11-21T12:00:09Z"
MANIFESTS = [a_manifest(), a_manifest("Job", "once")]


def the_work(**changes: Any) -> dict[str, Any]:
    return a_work(*MANIFESTS, metadata={"generation": 3, "uid": "u"}, **changes)


def outcomes(*available: bool | None, applied: bool = True) -> list[ManifestResult]:
    return [
        ManifestResult(number, MANIFESTS[number], applied=applied, available=each, message="so")
        for number, each in enumerate(available)
    ]


def reported(work: dict[str, Any], *given: ManifestResult) -> dict[str, tuple[str, str]]:
    return observed_conditions({"status": status_of(work, given, now=NOW)})


def test_a_work_is_available_when_all_its_manifests_are() -> None:
    assert reported(the_work(), *outcomes(True, True)) == {
        "Applied": ("True", "AllManifestsApplied"),
        "Available": ("True", "AllManifestsAvailable"),
    }


def test_the_message_of_an_available_work_says_how_that_is_known() -> None:
    status = status_of(the_work(), outcomes(True, True), now=NOW)
    available = next(each for each in status["conditions"] if each["type"] == "Available")
    assert available["message"] == "All manifests are available. so"
    assert status["manifestConditions"][0]["conditions"][1]["message"] == "so"


def test_a_work_that_cannot_be_tracked_reports_so() -> None:
    assert reported(the_work(), *outcomes(True, None))["Available"] == (
        "True",
        "SomeManifestsAreNotAvailabilityTrackable",
    )


def test_one_manifest_that_waits_is_enough() -> None:
    assert reported(the_work(), *outcomes(None, False))["Available"] == ("False", "SomeManifestsAreNotAvailable")


def test_one_manifest_that_fails_is_enough() -> None:
    mixed = [*outcomes(True), ManifestResult(1, MANIFESTS[1], applied=False, message="no")]
    assert reported(the_work(), *mixed)["Applied"] == ("False", "SomeManifestsAreNotApplied")


def test_conditions_speak_of_a_generation_and_keep_their_time() -> None:
    first = status_of(the_work(), outcomes(True, True), now=NOW)
    work = the_work(status=first)
    assert status_includes(work, status_of(work, outcomes(True, True), now=LATER))
    newer = merged(work, {"metadata": {"generation": 4}})
    second = status_of(newer, outcomes(True, True), now=LATER)
    assert not status_includes(newer, second)
    assert {(each["observedGeneration"], each["lastTransitionTime"]) for each in second["conditions"]} == {(4, NOW)}


def test_what_is_only_compared_reports_nothing_of_being_applied() -> None:
    work = the_work(status=status_of(the_work(), outcomes(True, True), now=NOW))
    compared = merged(work, {"spec": {"applyStrategy": {"type": "ReportDiff"}}})
    patch = status_of(compared, outcomes(True, True), now=NOW)
    assert [(each["type"], each["status"]) for each in patch["conditions"]] == [
        ("DiffReported", "True"),
        ("Applied", None),
        ("Available", None),
    ]
    assert not status_includes(compared, patch)


def test_a_work_whose_manifests_are_gone_is_cleaned_up() -> None:
    deleting = the_work()
    deleting["metadata"]["deletionTimestamp"] = NOW
    deleting["status"] = cleaned_up_status(deleting, now=NOW)
    assert Work.from_document(deleting).is_cleaned_up


def test_a_cluster_joins_with_all_its_facts() -> None:
    observed = {"metadata": {"name": "lisbon", "generation": 1}, "status": {"properties": {"old": {"value": "1"}}}}
    facts = ClusterFacts(
        properties={"nodes": "4"}, usage={"capacity": {"cpu": "8"}}, namespaces={"shop": "w"}, problem="ill"
    )
    patch = joined_patch(observed, facts, now=NOW)
    assert patch["properties"] == {"old": None, "nodes": {"value": "4", "observationTime": NOW}}
    cluster = MemberCluster.from_document({**observed, "status": {**patch, "properties": {}}})
    assert cluster.agent is not None
    assert {each.type: each.status for each in cluster.agent.conditions} == {"Joined": "True", "Healthy": "False"}
    assert cluster.status.namespaces == {"shop": "w"}


def test_a_cluster_says_when_its_agents_certificate_ends() -> None:
    observed = {"metadata": {"name": "lisbon", "generation": 1}}
    assert "clientCertificateExpirationTimestamp" not in joined_patch(observed, ClusterFacts(), now=NOW)
    patch = joined_patch(observed, ClusterFacts(certificate_expires_at=datetime(2026, 4, 1, tzinfo=UTC)), now=NOW)
    assert patch["clientCertificateExpirationTimestamp"] == "2026-04-01T00:00:00Z"


def test_a_cluster_leaves_once_it_is_being_deleted() -> None:
    observed = {"metadata": {"name": "lisbon", "deletionTimestamp": NOW}}
    observed["status"] = left_patch(observed, now=NOW)
    assert has_left(observed)
    assert not has_left({**observed, "metadata": {"name": "lisbon"}})


def test_a_seed_is_enrolled_with_where_it_is() -> None:
    seed = a_seed("aws-eu1", metadata={"labels": {"stage": "live"}}, spec={"taints": [{"key": "dedicated"}]})
    seed["spec"]["provider"]["zones"] = ["a"]
    manifest = enrolment(seed, period_seconds=30)
    labels = manifest["metadata"]["labels"]
    assert labels["stage"] == "live"
    assert labels["topology.kubernetes.io/zone"] == "a"
    assert manifest["spec"]["taints"] == [{"key": "dedicated", "value": "", "effect": "NoSchedule"}]


def test_a_seed_whose_gardenlet_is_silent_is_silent_too() -> None:
    for status, problem, silent in (("True", False, False), ("False", True, False), ("Unknown", True, True)):
        seed = a_seed("s", status={"conditions": [{"type": "GardenletReady", "status": status}]})
        assert conditions_of(seed)
        facts = seed_facts(seed, ClusterFacts())
        assert (facts.problem is not None, facts.is_silent) == (problem, silent)
