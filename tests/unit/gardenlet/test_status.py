"""What is reported of shoots and seeds, in Gardener's words."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardenbus.agent.domain.allocatable import allocatable
from gardenbus.common.api.configuration.failure_injection import parse_step_failures
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.error_codes import NON_RETRYABLE
from gardenbus.common.api.garden.shoots import SPEC_REVERTED
from gardenbus.gardenlet.domain.failures import StepFailure
from gardenbus.gardenlet.domain.flows import OperationType
from gardenbus.gardenlet.domain.operation_events import failure_event, reverted_event, start_event, success_event
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.seed_status import (
    SeedFindings,
    gardener_identity,
    readiness,
    seed_status_patch,
)
from gardenbus.gardenlet.domain.shoot_record import Run, ShootRecord, with_status
from gardenbus.gardenlet.domain.shoot_status import (
    CheckError,
    awaiting_dependency,
    care_patch,
    failed,
    handed_over,
    progressed,
    seed_not_ready,
    started,
    succeeded,
    technical_id,
)
from tests.support.builders import NOW, a_condition, a_seed, a_shoot, merged
from tests.support.gardenlets import a_configuration, configured

INSTANT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = INSTANT + timedelta(hours=1)
IDENTITY = gardener_identity("aws-eu1", "1.2.3")
RUN = Run(operation="Create", generation=2, number=1, done=("namespace", "secrets"))
RETRYABLE = StepFailure("etcd", "Waiting for etcd", "no volume", ("ERR_INFRA_RESOURCES_DEPLETED",))


def a_record(**status: Any) -> ShootRecord:
    return ShootRecord(namespace="garden-dev", name="apollo", uid="u1", run=RUN, status=status)


def observed(**status: Any) -> ObservedShoot:
    return ObservedShoot.of(a_shoot(metadata={"generation": 2}, status=status), uid="u1", version=1, role="run")


def a_start(record: ShootRecord, run: Run = RUN, shoot: ObservedShoot | None = None) -> Document:
    return started(shoot or observed(), record, run, seed_name="aws-eu1", gardener=IDENTITY, now=LATER)


def test_a_project_prefix_is_left_out_of_the_technical_id() -> None:
    assert technical_id("garden-dev", "apollo") == "shoot--dev--apollo"
    assert technical_id("elsewhere", "apollo") == "shoot--elsewhere--apollo"


def test_a_start_reports_what_will_be_done_by_whom() -> None:
    patch = a_start(a_record())

    assert patch["lastOperation"] == {
        "type": "Create",
        "state": "Processing",
        "progress": 16,
        "description": "Reconciliation of Shoot cluster initialized.",
        "lastUpdateTime": "2026-01-02T04:04:05Z",
    }
    assert patch["technicalID"] == "shoot--dev--apollo"
    assert (patch["uid"], patch["seedName"], patch["observedGeneration"]) == ("u1", "aws-eu1", 2)
    assert patch["gardener"] == IDENTITY


def test_a_technical_id_is_given_once() -> None:
    assert a_start(a_record(), shoot=observed(technicalID="shoot-old"))["technicalID"] == "shoot-old"
    assert a_start(a_record(technicalID="shoot-kept"))["technicalID"] == "shoot-kept"


def test_a_retry_cycle_begins_with_a_generation_a_version_or_a_deletion() -> None:
    same = {"retryCycleStartTime": NOW, "observedGeneration": 2}
    deletion = Run(operation="Delete", generation=2, number=2)

    assert a_start(a_record(**same))["retryCycleStartTime"] == NOW
    assert a_start(a_record(**same | {"observedGeneration": 1}))["retryCycleStartTime"] == "2026-01-02T04:04:05Z"
    assert a_start(a_record(**same, gardener=IDENTITY))["retryCycleStartTime"] == NOW
    older = IDENTITY | {"version": "1.2.2"}
    assert a_start(a_record(**same, gardener=older))["retryCycleStartTime"] == "2026-01-02T04:04:05Z"
    assert a_start(a_record(**same), deletion)["retryCycleStartTime"] == "2026-01-02T04:04:05Z"


def test_progress_names_what_is_in_work() -> None:
    patch = progressed(a_record(), ["Deploying this", "Waiting for that"], now=INSTANT)

    assert patch["lastOperation"]["description"] == "Deploying this, Waiting for that"
    assert patch["lastOperation"]["progress"] == 16


def test_success_takes_errors_and_the_retry_cycle_away() -> None:
    record = with_status(a_record(lastErrors=[{}], retryCycleStartTime=NOW), succeeded("Create", now=INSTANT))

    assert record.status.keys() == {"lastOperation"}
    assert record.was_created


def test_a_passing_failure_will_be_retried() -> None:
    patch = failed(a_record(retryCycleStartTime=NOW), [RETRYABLE], retry_duration=timedelta(hours=12), now=LATER)

    assert patch["lastOperation"]["state"] == "Error"
    assert patch["lastOperation"]["description"] == (
        'Flow "Shoot cluster creation" encountered task errors: [task "Waiting for etcd" failed: no volume]'
        " Operation will be retried."
    )
    assert patch["lastErrors"] == [
        {
            "taskID": "Waiting for etcd",
            "description": 'task "Waiting for etcd" failed: no volume',
            "codes": ["ERR_INFRA_RESOURCES_DEPLETED"],
            "lastUpdateTime": "2026-01-02T04:04:05Z",
        }
    ]


@pytest.mark.parametrize("code", sorted(NON_RETRYABLE))
def test_some_codes_end_the_trying(code: str) -> None:
    failures = [RETRYABLE, RETRYABLE._replace(codes=(code,))]
    patch = failed(a_record(retryCycleStartTime=NOW), failures, retry_duration=timedelta(hours=12), now=LATER)

    assert patch["lastOperation"]["state"] == "Failed"
    assert not patch["lastOperation"]["description"].endswith("retried.")
    assert patch["retryCycleStartTime"] is None


def test_the_retry_duration_ends_the_trying() -> None:
    record = a_record(retryCycleStartTime=NOW)

    assert (
        failed(record, [RETRYABLE], retry_duration=timedelta(hours=1), now=LATER)["lastOperation"]["state"] == "Error"
    )
    assert (
        failed(record, [RETRYABLE], retry_duration=timedelta(minutes=59), now=LATER)["lastOperation"]["state"]
        == "Failed"
    )


def test_an_unfit_seed_is_reported_once() -> None:
    patch = seed_not_ready("Create", {}, "it is not ready.", now=INSTANT)
    assert patch is not None
    assert patch["lastOperation"]["state"] == "Error"

    assert seed_not_ready("Create", patch["lastOperation"], "it is not ready.", now=LATER) is None
    assert seed_not_ready("Create", patch["lastOperation"], "it is deaf.", now=LATER) is not None


def test_a_migration_that_waits_has_no_progress_and_is_reported_once() -> None:
    reconciled = {"type": "Reconcile", "state": "Succeeded", "progress": 100}
    patch = awaiting_dependency("Migrate", reconciled, "seed b is not ready.", now=INSTANT)
    assert patch is not None
    operation = patch["lastOperation"]
    assert (operation["type"], operation["state"], operation["progress"]) == ("Migrate", "Error", 0)
    assert operation["description"].endswith("seed b is not ready. Operation will be retried.")

    assert awaiting_dependency("Migrate", operation, "seed b is not ready.", now=LATER) is None
    assert awaiting_dependency("Restore", operation, "seed b is not ready.", now=LATER) is not None


def test_a_shoot_is_handed_over_in_one_report() -> None:
    last = succeeded("Migrate", now=INSTANT)["lastOperation"]

    assert handed_over(last, seed_name="b", generation=7) == {
        "lastOperation": last,
        "lastErrors": None,
        "retryCycleStartTime": None,
        "seedName": "b",
        "observedGeneration": 7,
    }


def test_care_reports_what_changed_and_keeps_the_time_of_what_did_not() -> None:
    status = care_patch({}, {}, has_workers=True, now=INSTANT)
    assert care_patch(status, {}, has_workers=True, now=LATER) == {}

    patch = care_patch(status, {"EveryNodeReady": "Node 3 is silent."}, has_workers=True, now=LATER)
    nodes = next(each for each in patch["conditions"] if each["type"] == "EveryNodeReady")
    others = [each for each in patch["conditions"] if each["type"] != "EveryNodeReady"]
    assert (nodes["status"], nodes["message"]) == ("False", "Node 3 is silent.")
    assert nodes["lastTransitionTime"] == "2026-01-02T04:04:05Z"
    assert {each["lastTransitionTime"] for each in others} == {NOW}
    assert "constraints" not in patch


def node_status(
    status: Document, problem: str | None, *, at: timedelta, minutes: int | None = 1
) -> tuple[Document, str]:
    """Care once more, with this threshold; returns the whole status, and that of EveryNodeReady."""
    thresholds = {} if minutes is None else {"EveryNodeReady": timedelta(minutes=minutes)}
    problems = {} if problem is None else {"EveryNodeReady": problem, "HibernationPossible": problem}
    patch = care_patch(status, problems, has_workers=True, now=INSTANT + at, thresholds=thresholds)
    after = status | patch
    return after, next(each["status"] for each in after["conditions"] if each["type"] == "EveryNodeReady")


def test_a_condition_is_progressing_for_its_threshold_before_it_is_false() -> None:
    minute = timedelta(minutes=1)
    status, first = node_status({}, None, at=timedelta())
    assert first == "True"
    _, at_once = node_status(status, "Node 3.", at=minute, minutes=None)
    assert at_once == "False"
    status, failing = node_status(status, "Node 3.", at=minute)
    assert failing == "Progressing"
    assert {each["status"] for each in status["constraints"]} == {"True", "False"}  # these have no thresholds
    status, still = node_status(status, "Node 4.", at=2 * minute)
    assert still == "Progressing"
    operation = {"state": "Succeeded", "lastUpdateTime": "2026-01-02T03:06:30Z"}
    _, reconciled_since = node_status(status | {"lastOperation": operation}, "Node 4.", at=2.2 * minute)
    assert reconciled_since == "Progressing"
    status, over = node_status(status, "Node 4.", at=2.2 * minute)
    assert over == "False"
    _, again = node_status(status | {"lastOperation": operation}, "Node 4.", at=3 * minute)
    assert again == "Progressing"
    _, well = node_status(status, None, at=3 * minute)
    assert well == "True"


def test_a_condition_that_nobody_could_check_is_unknown() -> None:
    status = care_patch({}, {"EveryNodeReady": CheckError("No answer.")}, has_workers=True, now=INSTANT)
    nodes = next(each for each in status["conditions"] if each["type"] == "EveryNodeReady")
    assert (nodes["status"], nodes["reason"], nodes["message"]) == ("Unknown", "ConditionCheckError", "No answer.")


@pytest.mark.parametrize(
    ("operation", "reasons"),
    [
        ("Create", ["Reconciling", "Reconciled", "ReconcileError"]),
        ("Restore", ["Reconciling", "Reconciled", "ReconcileError"]),
        ("Delete", ["Deleting", "Deleted", "DeleteError"]),
        ("Migrate", ["PrepareMigration", "MigrationPrepared", "MigrationPreparationFailed"]),
    ],
)
def test_the_events_of_an_operation_are_gardeners(operation: OperationType, reasons: list[str]) -> None:
    last = {"type": operation, "description": "Flow: no."}
    events = [start_event(operation), success_event(operation), failure_event(last)]
    assert [each.reason for each in events] == reasons
    assert [each.type for each in events] == ["Normal", "Normal", "Warning"]
    assert events[2].message == "Flow: no."


@pytest.mark.parametrize(
    ("generation", "before", "operation", "is_reverted"),
    [(2, 5, "Reconcile", True), (5, 5, "Reconcile", False), (6, 5, "Reconcile", False), (2, 5, "Delete", False)],
)
def test_an_earlier_generation_than_the_one_that_ran_is_of_a_restored_store(
    generation: int, before: int, operation: OperationType, is_reverted: bool
) -> None:
    run = Run(operation=operation, generation=generation, number=2)
    event = reverted_event(run, Run(operation="Reconcile", generation=before, number=1))
    assert (event is not None) == is_reverted
    if event is not None:
        assert (event.type, event.reason) == ("Warning", SPEC_REVERTED)
        assert "generation 2 of the Shoot, but generation 5 ran here" in event.message
    assert reverted_event(run, None) is None


def test_a_backend_that_has_not_looked_claims_nothing() -> None:
    status = care_patch({}, {"EveryNodeReady": "Node 3."}, has_workers=True, now=INSTANT, healthy_message="Simulated.")
    messages = {each["type"]: each["message"] for each in [*status["conditions"], *status["constraints"]]}
    assert messages.pop("EveryNodeReady") == "Node 3."
    assert set(messages.values()) == {"Simulated."}
    backed_up = seen_seed(spec={"backup": {"provider": "aws"}})
    patch = patch_of(backed_up, SeedFindings(healthy_message="Simulated."))
    assert {each["type"]: each["message"] for each in patch["conditions"]} == {
        "GardenletReady": "Gardenlet is posting ready status.",
        "SeedSystemComponentsHealthy": "Simulated.",
        "BackupBucketsReady": "Simulated.",
    }


# ---------------------------------------------------------------------------------------------- seeds


def seen_seed(**changes: Any) -> Document:
    return merged(a_seed(ready=False, metadata={"generation": 1}), changes)


def patch_of(
    seed: Document, findings: SeedFindings | None = None, *, now: datetime = INSTANT, **configuration: Any
) -> Document:
    return seed_status_patch(
        seed, configured(a_configuration(**configuration)), findings or SeedFindings(), identity=IDENTITY, now=now
    )


def test_a_seeds_condition_has_a_threshold_of_its_own() -> None:
    care = {"conditionThresholds": [{"type": "SeedSystemComponentsHealthy", "duration": "1m"}]}

    def reported(seed: Document, minutes: float) -> list[str]:
        now = INSTANT + timedelta(minutes=minutes)
        return [
            each["status"]
            for each in patch_of(
                seed, SeedFindings(system_problem="No disk."), now=now, controllers={"seedCare": care}
            ).get("conditions", [])
        ]

    assert reported(reconciled_seed(), 1) == ["Progressing"]
    conditions = [a_condition("SeedSystemComponentsHealthy", "Progressing")]
    assert reported(reconciled_seed(status={"conditions": conditions}), 1e6) == ["True", "False"]


def reconciled_seed(**changes: Any) -> Document:
    seed = seen_seed()
    return merged(merged(seed, {"status": patch_of(seed)}), changes)


def test_a_reconciled_seed_needs_no_report() -> None:
    assert patch_of(reconciled_seed(), now=LATER) == {}


@pytest.mark.parametrize("kind", ["GardenletReady", "SeedSystemComponentsHealthy"])
def test_a_condition_turned_unknown_is_put_right(kind: str) -> None:
    seed = reconciled_seed()
    conditions = [
        condition | ({"status": "Unknown"} if condition["type"] == kind else {})
        for condition in seed["status"]["conditions"]
    ]
    (put_right,) = patch_of(merged(seed, {"status": {"conditions": conditions}}))["conditions"]

    assert (put_right["type"], put_right["status"]) == (kind, "True")


def test_a_new_generation_is_observed_without_a_flicker() -> None:
    patch = patch_of(reconciled_seed(metadata={"generation": 2}), now=LATER)

    assert patch["observedGeneration"] == 2
    assert patch["lastOperation"]["state"] == "Succeeded"
    assert "conditions" not in patch


def test_resources_that_the_configuration_does_not_name_stay() -> None:
    assert "capacity" not in patch_of(seen_seed(), resources=None)


def test_a_bucket_that_is_gone_is_unknown_in_the_condition_of_its_seed() -> None:
    patch = patch_of(seen_seed(spec={"backup": {"provider": "aws"}}), SeedFindings(bucket_is_gone=True))
    bucket = next(each for each in patch["conditions"] if each["type"] == "BackupBucketsReady")
    expected = ("Unknown", "BackupBucketsGone", "Backup Buckets are gone.")
    assert (bucket["status"], bucket["reason"], bucket["message"]) == expected


def test_buckets_matter_to_seeds_with_backup_only() -> None:
    findings = SeedFindings(bucket_problem="No credentials.")

    assert {each["type"] for each in patch_of(seen_seed(), findings)["conditions"]} == {
        "GardenletReady",
        "SeedSystemComponentsHealthy",
    }
    patch = patch_of(seen_seed(spec={"backup": {"provider": "aws"}}), findings)
    assert patch["lastOperation"]["state"] == "Error"
    bucket = next(each for each in patch["conditions"] if each["type"] == "BackupBucketsReady")
    assert (bucket["status"], bucket["reason"]) == ("False", "BackupBucketsError")


@pytest.mark.parametrize(
    ("capacity", "reserved", "expected"),
    [
        ("250", "10", "240"),
        (250, 10, 240),
        (250, "10", 240),
        ("10Gi", "1Gi", "9Gi"),
        ("10Gi", "512Mi", "10200547328"),
        ("2", "500m", "1500m"),
        ("5", "5", "0"),
        ("1k", "1", "999"),
        ("1e3", "1", "999"),
        (2, "500m", 1.5),
        ("1", "1u", "999999u"),
    ],
)
def test_what_is_reserved_is_subtracted(capacity: str | int, reserved: str | int, expected: str | float) -> None:
    assert allocatable({"x": capacity, "y": "7"}, {"x": reserved}) == {"x": expected, "y": "7"}


def test_a_seed_is_fit_when_it_is_up_to_date_ready_and_healthy() -> None:
    assert readiness(reconciled_seed(), IDENTITY).problem is None
    assert readiness(None, IDENTITY).problem is not None
    assert readiness(reconciled_seed(metadata={"generation": 2}), IDENTITY).problem == "observed generation outdated."
    other = gardener_identity("aws-eu1", "2.0.0")
    assert readiness(reconciled_seed(), other).problem == "observed Gardener version not up to date."
    for kind in ("GardenletReady", "SeedSystemComponentsHealthy"):
        conditions = [
            a_condition(each, "False" if each == kind else "True")
            for each in ("GardenletReady", "SeedSystemComponentsHealthy")
        ]
        unready = reconciled_seed(status={"conditions": conditions})
        assert readiness(unready, IDENTITY).problem == f"condition {kind} is not True."
        assert readiness(merged(unready, {"metadata": {"deletionTimestamp": NOW}}), IDENTITY).problem is None


def test_only_the_exact_word_stops_a_seed() -> None:
    stop = "shoot.gardener.cloud/emergency-stop-reconciliations"

    assert readiness(reconciled_seed(metadata={"annotations": {stop: "true"}}), IDENTITY).is_stopped
    assert not readiness(reconciled_seed(metadata={"annotations": {stop: "True"}}), IDENTITY).is_stopped


# ---------------------------------------------------------------------------------------------- failures


def test_requested_failures_are_read() -> None:
    one, two = parse_step_failures("etcd=ERR_INFRA_DEPENDENCIES,times=2; machines=ERR_INFRA_QUOTA_EXCEEDED")

    assert (one.step, one.argument, one.times) == ("etcd", "ERR_INFRA_DEPENDENCIES", 2)
    assert two.times is None
    assert parse_step_failures("") == ()


@pytest.mark.parametrize("text", ["etcd", "etcd=", "etcd=ERR", "etcd=ERR_INFRA_DEPENDENCIES,times=x", "=ERR"])
def test_what_is_no_request_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        parse_step_failures(text)


def test_the_end_of_the_client_certificate_is_reported_where_there_is_one() -> None:
    findings = SeedFindings(certificate_expires_at=INSTANT + timedelta(hours=1))

    assert patch_of(seen_seed(), findings)["clientCertificateExpirationTimestamp"] == "2026-01-02T04:04:05Z"
    assert "clientCertificateExpirationTimestamp" not in patch_of(seen_seed())


def test_conditions_of_a_shoot_that_sleeps_are_not_checked() -> None:
    patch = care_patch({}, {}, has_workers=True, now=INSTANT, is_hibernated=True)
    assert {each["reason"] for each in patch["conditions"]} == {"ConditionNotChecked"}
    assert {each["message"] for each in patch["conditions"]} == {"Shoot cluster has been hibernated."}
    assert {each["status"] for each in patch["conditions"]} == {"True"}
    assert {each["reason"] for each in patch["constraints"]} == {"NoProblematicWebhooks"}
