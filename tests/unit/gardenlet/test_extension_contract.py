"""Extension objects: when one is ready, when the next request is told apart, and what their flows promise."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardenbus.common.api.configuration.gardenlet import EXTENSION_KINDS
from gardenbus.common.api.document import Document, section
from gardenbus.gardenlet.domain.extension_objects.contract import (
    last_error,
    migration_problem,
    ready_problem,
    request_time,
    requested,
    seconds_until_next_request,
)
from gardenbus.gardenlet.domain.extension_objects.health import heartbeats_by_kind, reported_problems, reporting
from gardenbus.gardenlet.domain.extension_objects.kinds import PLURALS, WAITS, ExtensionObject
from gardenbus.gardenlet.domain.extension_objects.specs import ShootFacts, moment_of, operating_system_configs
from gardenbus.gardenlet.domain.flows import DESTROYS, EXTENSION_STEPS, FLOWS, FLOWS_WITH_EXTENSIONS, shoot_flow
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_state import shoot_state, state_in
from gardenbus.gardenlet.domain.shoot_status import care_patch
from tests.support.builders import a_shoot, merged

NOW = datetime(2026, 11, 30, 8, 0, 0, 500_000, tzinfo=UTC)
REQUESTED_AT = "2026-11-30T08:00:00.500000Z"
LATE = "extension is not reconciled yet - reconciliation"
WORKER = "Worker extension (ns/apollo)"
READY: Document = {
    "metadata": {"generation": 2, "annotations": {"gardener.cloud/timestamp": REQUESTED_AT}},
    "status": {
        "observedGeneration": 2,
        "lastError": None,
        "lastOperation": {"type": "Reconcile", "state": "Succeeded", "lastUpdateTime": "2026-11-30T08:00:00Z"},
    },
}


def changed(**changes: Any) -> Document:
    return merged(READY, changes)


def test_an_object_that_fulfils_each_line_is_ready() -> None:
    assert ready_problem(READY, REQUESTED_AT) is None


@pytest.mark.parametrize(
    ("live", "problem"),
    [
        (changed(status={"lastError": {"description": "No."}}), "error during reconciliation: No."),
        (changed(status={"observedGeneration": 1}), "observed generation outdated (1/2)"),
        (
            changed(metadata={"annotations": {"gardener.cloud/operation": "wait-for-state"}}),
            'gardener operation "wait-for-state" is not yet picked up by controller',
        ),
        ({**READY, "status": {"observedGeneration": 2}}, "extension did not record a last operation yet"),
        (
            changed(status={"lastOperation": {"state": "Processing"}}),
            "extension state is not succeeded but Processing",
        ),
        (
            changed(status={"lastOperation": {"lastUpdateTime": "2026-11-30T07:59:59Z"}}),
            f"{LATE} requested at 2026-11-30T08:00:00.500000Z, last update time is: 2026-11-30T07:59:59Z",
        ),
    ],
)
def test_each_line_alone_keeps_an_object_from_being_ready(live: Document, problem: str) -> None:
    assert ready_problem(live, REQUESTED_AT) == problem


def test_an_older_version_of_an_object_is_not_ready_for_a_newer_request() -> None:
    assert ready_problem(READY, request_time(NOW + timedelta(seconds=9))) is not None


def test_a_request_is_a_second_after_what_was_requested_or_done_before() -> None:
    assert seconds_until_next_request(None, NOW) == 0
    assert seconds_until_next_request(READY, NOW) == pytest.approx(0.5)
    assert seconds_until_next_request(READY, NOW + timedelta(seconds=1)) == 0
    ahead = changed(status={"lastOperation": {"lastUpdateTime": "2026-11-30T09:00:00Z"}})
    assert seconds_until_next_request(ahead, NOW) == 2, "another clock does not hold a shoot up"


def test_a_request_leaves_what_others_have_written() -> None:
    live = changed(metadata={"labels": {"own": "x"}, "finalizers": ["f"], "resourceVersion": "7"})
    wanted = ExtensionObject("Network", "shoot--dev--apollo", "apollo", {"type": "calico"}, {"more": "y"})

    manifest = requested(live, wanted, "reconcile", REQUESTED_AT)

    metadata = section(manifest, "metadata")
    assert metadata["labels"] == {"own": "x", "more": "y"}
    assert metadata["finalizers"] == ["f"]
    assert metadata["resourceVersion"] == "7"
    assert metadata["annotations"]["gardener.cloud/operation"] == "reconcile"
    assert manifest["spec"] == {"type": "calico"}


def test_only_gardeners_codes_are_passed_on() -> None:
    error = {"description": "No.", "codes": ["ERR_INFRA_QUOTA_EXCEEDED", "ERR_MINE", 7]}
    found = last_error(changed(status={"lastError": error}))
    assert found is not None
    assert found.codes == ("ERR_INFRA_QUOTA_EXCEEDED",)


def test_an_object_is_migrated_when_its_last_operation_says_so() -> None:
    assert migration_problem(changed(status={"lastOperation": {"type": "Migrate"}})) is None
    assert migration_problem(READY) == "last operation is not Migrate, Succeeded but Reconcile, Succeeded"


def test_the_settings_know_each_kind_that_is_written() -> None:
    assert PLURALS.keys() == WAITS.keys() | {"BackupBucket", "BackupEntry", "Bastion"} == EXTENSION_KINDS


@pytest.mark.parametrize(("operation", "has_workers"), FLOWS_WITH_EXTENSIONS)
def test_a_flow_with_extensions_has_all_steps_of_the_flow_without(operation: Any, has_workers: bool) -> None:
    plain, full = FLOWS[operation, has_workers], FLOWS_WITH_EXTENSIONS[operation, has_workers]
    assert full.name == plain.name
    assert full.steps.keys() - plain.steps.keys() <= EXTENSION_STEPS
    assert plain.steps.keys() <= full.steps.keys()
    assert not EXTENSION_STEPS & plain.steps.keys()


@pytest.mark.parametrize("operation", ["Delete", "Migrate", "Leave"])
def test_what_is_built_with_extensions_is_removed_with_them(operation: Any) -> None:
    built = set(shoot_flow("Create", has_workers=True, has_extensions=True).steps)
    steps = shoot_flow(operation, has_workers=True, has_extensions=True).steps
    assert {name for step in steps for name in DESTROYS[step]} == built


def test_the_state_of_extensions_is_in_a_shoot_state_in_gardeners_form() -> None:
    entry = {"kind": "Infrastructure", "name": "apollo", "state": {"vpc": "1"}}
    secret = {"resourceRef": {"kind": "Secret", "name": "s"}, "data": {}}
    state = {"extension-states": {"extensions": [entry], "resources": [secret]}, "secrets": {"ca": "x"}}
    observed = ObservedShoot.of(a_shoot(), uid="u", version=1, role="run")

    document = shoot_state(observed, state, generation=1)

    assert document["spec"]["extensions"] == [entry]
    assert document["spec"]["resources"] == [secret]
    assert [each["name"] for each in document["spec"]["gardener"]] == ["secrets"]
    assert state_in(document, "u") == state


def test_a_pool_has_other_configurations_when_its_machines_are_to_be_replaced() -> None:
    def names(version: str, machine: str = "m5.large", **pool: Any) -> list[str]:
        each = {"name": "pool-a", "machine": {"type": machine, "image": {"name": "linux", "version": "1"}}, **pool}
        spec = {"kubernetes": {"version": version}, "provider": {"workers": [each]}}
        return [found.name for found in operating_system_configs(ShootFacts("ns", "apollo", spec))]

    assert names("1.34.1") == names("1.34.2", minimum=5)
    assert [name.rpartition("-")[2] for name in names("1.34.1")] == ["init", "original"]
    assert not set(names("1.34.1")) & set(names("1.35.0"))
    assert not set(names("1.34.1")) & set(names("1.34.1", machine="m5.xlarge"))


def test_the_primary_registration_says_when_an_extension_is_handled() -> None:
    def registration(primary: bool, **lifecycle: str) -> Document:
        return {
            "spec": {
                "resources": [{"kind": "Extension", "type": "dns", "primary": primary, "lifecycle": lifecycle}],
            }
        }

    several = [registration(False, reconcile="AfterWorker"), registration(True, delete="AfterKubeAPIServer")]
    assert moment_of(several, "dns", "reconcile") == "AfterKubeAPIServer"
    assert moment_of(several, "dns", "delete") == "AfterKubeAPIServer"
    assert moment_of([], "dns", "delete") == "BeforeKubeAPIServer"


def a_reporting_object(status: str, reason: str = "HealthCheckUnsuccessful") -> Document:
    condition = {"type": "EveryNodeReady", "status": status, "reason": reason, "message": "Two of three."}
    return {
        "metadata": {"namespace": "ns", "name": "apollo"},
        "spec": {"type": "aws"},
        "status": {"conditions": [condition, {"type": "Other", "status": "False"}]},
    }


@pytest.mark.parametrize(
    ("status", "beat", "expected"),
    [
        ("True", NOW, None),
        (
            "False",
            NOW,
            (
                "False",
                "WorkerUnhealthyReport",
                "Worker extension (ns/apollo) reports failing health check: Two of three.",
            ),
        ),
        ("Progressing", NOW, ("Progressing", "WorkerRolling", "Two of three.")),
        (
            "True",
            NOW - timedelta(minutes=6),
            (
                "Unknown",
                "WorkerOutdatedHealthCheckReport",
                f"{WORKER} reports an outdated health status (last updated: at 2026-11-30T07:54:00Z).",
            ),
        ),
    ],
)
def test_a_condition_of_an_extension_object_is_the_shoots(
    status: str, beat: datetime, expected: tuple[str, str, str] | None
) -> None:
    found = reporting("Worker", a_reporting_object(status, "Rolling" if status == "Progressing" else "x"))
    assert found is not None
    problems = reported_problems([found], {("Worker", "aws"): beat}, NOW)
    patch = care_patch({}, problems, has_workers=True, now=NOW)
    (condition,) = (each for each in patch["conditions"] if each["type"] == "EveryNodeReady")
    if expected is None:
        assert condition["status"] == "True"
    else:
        assert (condition["status"], condition["reason"], condition["message"]) == expected


def test_heartbeats_are_found_by_what_is_installed() -> None:
    registration = {
        "metadata": {"name": "provider"},
        "spec": {"resources": [{"kind": "Worker", "type": "aws"}, {"kind": "Network", "type": "x", "primary": False}]},
    }
    installation = {"metadata": {"name": "provider-1"}, "spec": {"registrationRef": {"name": "provider"}}}
    lease = {
        "metadata": {"namespace": "extension-provider-1"},
        "spec": {"renewTime": "2026-11-30T08:00:00.000000Z"},
    }

    assert heartbeats_by_kind([installation], [registration], [lease]) == {
        ("Worker", "aws"): NOW.replace(microsecond=0)
    }
    assert heartbeats_by_kind([installation], [registration], []) == {("Worker", "aws"): None}
