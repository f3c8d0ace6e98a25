"""Maintenance: when, what it changes, and what it says. Cases as in Gardener's reconciler test."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.controllermanager.domain.shoot_maintenance import (
    AwaitWindow,
    MaintainNow,
    NotMaintained,
    begun,
    decide_maintenance,
    ended,
    event_of,
    plan_maintenance,
    rejected,
    without_request_patch,
)
from tests.support.builders import a_shoot, merged

OPENED_AT = datetime(2026, 3, 10, 22, tzinfo=UTC)
CLOSES_AT = OPENED_AT + timedelta(minutes=45)
OFFER: Document = {"kubernetes": {"versions": [{"version": "1.34.1"}, {"version": "1.34.2"}]}}
OPERATION, MAINTENANCE_OPERATION = "gardener.cloud/operation", "maintenance.gardener.cloud/operation"
NEEDS_RETRY = "maintenance.shoot.gardener.cloud/needs-retry-operation"


def a_maintained(operation: str | None = None, **changes: Any) -> Document:
    annotations = {} if operation is None else {OPERATION: operation}
    shoot = a_shoot(
        metadata={"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations},
        spec={
            "kubernetes": {"version": "1.34.1"},
            "maintenance": {"timeWindow": {"begin": "220000+0000", "end": "230000+0000"}},
        },
        status={"lastOperation": {"type": "Reconcile", "state": "Succeeded"}},
    )
    return merged(shoot, changes)


def moment_of(shoot: Document) -> datetime:
    decision = decide_maintenance(shoot, OPENED_AT - timedelta(hours=1))
    assert isinstance(decision, AwaitWindow)
    return decision.at


def test_each_shoot_is_maintained_at_its_own_moment_of_the_window() -> None:
    moments = {moment_of(a_maintained(metadata={"uid": f"u-{number}"})) for number in range(50)}
    assert len(moments) == 50
    assert all(OPENED_AT <= moment < CLOSES_AT for moment in moments)
    assert max(moments) - min(moments) > timedelta(minutes=30)


def test_it_is_maintained_from_its_moment_on_until_the_window_closes() -> None:
    shoot = a_maintained()
    moment = moment_of(shoot)
    tomorrow = moment_of(merged(shoot, {"status": {"lastMaintenance": {"triggeredTime": "2026-03-10T22:44:00Z"}}}))
    assert decide_maintenance(shoot, moment - timedelta(seconds=1)) == AwaitWindow(moment)
    found = decide_maintenance(shoot, moment)
    assert isinstance(found, MaintainNow)
    assert found.next_at.date() == OPENED_AT.date() + timedelta(days=1)
    assert isinstance(decide_maintenance(shoot, CLOSES_AT - timedelta(seconds=1)), MaintainNow)
    assert isinstance(decide_maintenance(shoot, CLOSES_AT), AwaitWindow)
    assert tomorrow >= OPENED_AT


@pytest.mark.parametrize(
    ("last", "is_due"),
    [
        ({"triggeredTime": "2026-03-10T22:01:00Z", "state": "Succeeded"}, False),
        ({"triggeredTime": "2026-03-10T22:01:00Z", "state": "Failed"}, False),
        ({"triggeredTime": "2026-03-10T22:01:00Z", "state": "Processing"}, True),
        ({"triggeredTime": "2026-03-09T22:01:00Z", "state": "Failed"}, True),
    ],
)
def test_a_window_has_one_maintenance_unless_it_was_interrupted(last: Document, is_due: bool) -> None:
    shoot = a_maintained(status={"lastMaintenance": last})
    assert isinstance(decide_maintenance(shoot, CLOSES_AT - timedelta(seconds=1)), MaintainNow) is is_due


def test_a_shoot_that_was_made_within_its_window_waits_for_the_next() -> None:
    shoot = a_maintained(metadata={"creationTimestamp": "2026-03-10T22:00:00Z"})
    assert isinstance(decide_maintenance(shoot, CLOSES_AT - timedelta(seconds=1)), AwaitWindow)


def test_the_annotation_asks_for_it_at_once() -> None:
    assert isinstance(decide_maintenance(a_maintained("maintain"), OPENED_AT - timedelta(hours=8)), MaintainNow)
    assert (
        decide_maintenance(a_maintained("maintain", metadata={"deletionTimestamp": "x"}), OPENED_AT) == NotMaintained()
    )


def test_without_anything_to_update_the_shoot_is_reconciled() -> None:
    plan = plan_maintenance(a_maintained(), {}, OPENED_AT)
    assert plan.patch == {"metadata": {"annotations": {OPERATION: "reconcile"}}}
    assert plan.description == "All maintenance operations successful."


def test_updates_come_with_the_reconciliation() -> None:
    plan = plan_maintenance(a_maintained(), OFFER, OPENED_AT)
    assert plan.patch["spec"] == {"kubernetes": {"version": "1.34.2"}}
    assert plan.description == (
        'All maintenance operations successful. Control Plane: Updated Kubernetes version from "1.34.1" to "1.34.2". '
        "Reason: Automatic update of the Kubernetes version is configured"
    )
    reason, message = event_of(plan.updates[0])
    assert reason == "KubernetesVersionMaintenance"
    assert plan.description.endswith(message.removesuffix("."))


@pytest.mark.parametrize(
    ("annotations", "state", "written", "operations"),
    [
        ({}, None, {}, ()),
        ({}, "Failed", {}, ()),
        ({OPERATION: "maintain"}, "Failed", {OPERATION: None}, ()),
        ({OPERATION: "maintain"}, "Succeeded", {OPERATION: "reconcile"}, ()),
        ({NEEDS_RETRY: "true"}, "Failed", {NEEDS_RETRY: None, OPERATION: "retry"}, ("retry",)),
        ({NEEDS_RETRY: "true"}, "Succeeded", {OPERATION: "reconcile"}, ()),
        (
            {MAINTENANCE_OPERATION: "rotate-ssh-keypair"},
            "Error",
            {MAINTENANCE_OPERATION: None, OPERATION: "rotate-ssh-keypair"},
            ("rotate-ssh-keypair",),
        ),
    ],
)
def test_annotations_ask_for_operations(
    annotations: Document, state: str | None, written: Document, operations: tuple[str, ...]
) -> None:
    shoot = a_maintained(
        metadata={"annotations": annotations}, status={"lastOperation": None if state is None else {"state": state}}
    )
    plan = plan_maintenance(shoot, {}, OPENED_AT)
    assert plan.patch.get("metadata", {}).get("annotations", {}) == written
    assert plan.operations == tuple(f'Added "{name}" operation annotation' for name in operations)


def test_the_status_follows_a_maintenance() -> None:
    shoot = a_maintained()
    plan = plan_maintenance(shoot, OFFER, OPENED_AT)
    at_first = begun(shoot, plan, OPENED_AT)
    assert at_first["status"]["lastMaintenance"] == {
        "description": plan.description,
        "state": "Processing",
        "triggeredTime": "2026-03-10T22:00:00Z",
    }
    assert ended(at_first)["status"]["lastMaintenance"]["state"] == "Succeeded"
    failed = rejected(at_first, "spec.kubernetes.version: no", OPENED_AT)["status"]["lastMaintenance"]
    assert failed["state"] == "Failed"
    assert failed["failureReason"] == "Updates to the Shoot failed to be applied: spec.kubernetes.version: no"


def test_one_that_was_interrupted_after_its_update_keeps_its_description() -> None:
    shoot = a_maintained()
    at_first = begun(shoot, plan_maintenance(shoot, OFFER, OPENED_AT), OPENED_AT)
    updated = merged(at_first, {"spec": {"kubernetes": {"version": "1.34.2"}}})
    resumed = begun(updated, plan_maintenance(updated, OFFER, CLOSES_AT), CLOSES_AT)
    assert "Updated Kubernetes version" in resumed["status"]["lastMaintenance"]["description"]


def test_what_could_not_be_updated_is_a_failure() -> None:
    expired = {"version": "1.34.1", "expirationDate": "2026-03-01T00:00:00Z"}
    plan = plan_maintenance(a_maintained(), {"kubernetes": {"versions": [expired]}}, OPENED_AT)
    assert plan.description.startswith(
        "(0/1) maintenance operations successful. Control Plane: Kubernetes update failed."
    )
    last = ended(begun(a_maintained(), plan, OPENED_AT))["status"]["lastMaintenance"]
    assert last["state"] == "Failed"
    assert last["failureReason"].startswith("Control Plane: Kubernetes maintenance failure due to: found no version")


def test_a_refused_request_is_taken_off() -> None:
    assert without_request_patch(a_maintained()) is None
    patch = without_request_patch(a_maintained("maintain;rotate-ssh-keypair"))
    assert patch == {"metadata": {"annotations": {OPERATION: "rotate-ssh-keypair"}}}
    assert without_request_patch(a_maintained("maintain")) == {"metadata": {"annotations": {OPERATION: None}}}
