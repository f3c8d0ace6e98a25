"""Status patches of a shoot, with Gardener's texts.

A patch holds whole fields; None removes a field.
Source: Gardener's `gardenlet/controller/shoot/shoot/reconciler.go` and `gardenlet/controller/shoot/care`.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Self, cast

from gardenbus.common.api.conditions import FALSE, TRUE, UNKNOWN, build_condition, failed_status, get_or_init
from gardenbus.common.api.document import Document, section
from gardenbus.common.ports.clock import timestamp
from gardenbus.gardenlet.domain.failures import StepFailure, is_final
from gardenbus.gardenlet.domain.flows import OperationType
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import Run, ShootRecord

WILL_BE_RETRIED = " Operation will be retried."

_STARTED: Mapping[OperationType, str] = {
    "Create": "Reconciliation of Shoot cluster initialized.",
    "Reconcile": "Reconciliation of Shoot cluster initialized.",
    "Delete": "Deletion of Shoot cluster in progress.",
    "Migrate": "Preparation of Shoot cluster for migration initialized.",
    "Restore": "Restoration of Shoot cluster initialized.",
}
_SUCCEEDED: Mapping[OperationType, str] = {
    "Create": "Shoot cluster has been successfully reconciled.",
    "Reconcile": "Shoot cluster has been successfully reconciled.",
    "Delete": "Shoot cluster has been successfully deleted.",
    "Migrate": "Shoot cluster has been successfully prepared for migration.",
    "Restore": "Shoot cluster has been successfully restored.",
}

CONDITIONS: Mapping[str, tuple[str, str, str]] = {
    "APIServerAvailable": (
        "HealthzRequestSucceeded",
        "API server /healthz endpoint responded with success status code.",
        "HealthzRequestFailed",
    ),
    "ControlPlaneHealthy": (
        "ControlPlaneRunning",
        "All control plane components are healthy.",
        "ControlPlaneUnhealthy",
    ),
    "ObservabilityComponentsHealthy": (
        "ObservabilityComponentsRunning",
        "All observability components are healthy.",
        "ObservabilityComponentsUnhealthy",
    ),
    "EveryNodeReady": ("EveryNodeReady", "All nodes are ready.", "NodesUnhealthy"),
    "SystemComponentsHealthy": (
        "SystemComponentsRunning",
        "All system components are healthy.",
        "SystemComponentsUnhealthy",
    ),
}
"""Conditions of a shoot: reason and message when True, reason when False."""

CONSTRAINTS: Mapping[str, tuple[str, str, str]] = {
    "HibernationPossible": ("NoProblematicWebhooks", "All webhooks are properly configured.", "ProblematicWebhooks"),
    "MaintenancePreconditionsSatisfied": (
        "NoProblematicWebhooks",
        "All webhooks are properly configured.",
        "ProblematicWebhooks",
    ),
}
"""Constraints of a shoot, in the same form."""


NOT_CHECKED = ("ConditionNotChecked", "Shoot cluster has been hibernated.", "ConditionNotChecked")
"""Reasons and message of all conditions of a shoot that is hibernated."""


class CheckError(str):
    """A problem of the check itself: nobody could look, and the condition is Unknown."""

    __slots__ = ()


class ReportedProblem(str):
    """A problem that an extension reports: it has its own reason, and may be less than False."""

    __slots__ = ("reason", "status")
    reason: str
    status: str

    def __new__(cls, text: str, reason: str, status: str) -> Self:
        """The problem with a reason, and the status of the condition."""
        made = super().__new__(cls, text)
        made.reason, made.status = reason, status
        return made


_TIMES = frozenset({"lastUpdateTime", "lastTransitionTime"})


def without_times(value: Any) -> Any:
    """The document without its times, for comparison with an earlier report."""
    if isinstance(value, dict):
        fields = cast("Document", value)
        return {name: without_times(part) for name, part in fields.items() if name not in _TIMES}
    if isinstance(value, list):
        return [without_times(part) for part in cast("list[Any]", value)]
    return value


def technical_id(namespace: str, name: str) -> str:
    """The shoot's namespace on its seed: `shoot--<project>--<name>`; the project's `garden-` prefix is left out."""
    return f"shoot--{namespace.removeprefix('garden-')}--{name}"


def last_operation(operation: OperationType, state: str, progress: int, description: str, *, now: datetime) -> Document:
    """Build a status.lastOperation."""
    return {
        "type": operation,
        "state": state,
        "progress": progress,
        "description": description,
        "lastUpdateTime": timestamp(now),
    }


def started(
    observed: ObservedShoot, record: ShootRecord, run: Run, *, seed_name: str, gardener: Document, now: datetime
) -> Document:
    """Patch at the start of a run, new or resumed."""
    old = record.last_operation
    progress = record.flow_of(run).progress(run.done)
    fresh_cycle = (
        record.status.get("retryCycleStartTime") is None
        or record.status.get("observedGeneration") != observed.generation
        or (run.operation == "Delete" and old.get("type") != "Delete")
        or section(record.status, "gardener").get("version") not in {None, gardener["version"]}
    )
    return {
        "lastOperation": last_operation(run.operation, "Processing", progress, _STARTED[run.operation], now=now),
        "observedGeneration": observed.generation,
        "retryCycleStartTime": timestamp(now) if fresh_cycle else record.status["retryCycleStartTime"],
        "technicalID": record.status.get("technicalID")
        or observed.status.get("technicalID")
        or technical_id(*observed.full_name),
        "uid": observed.uid,
        "seedName": seed_name,
        "gardener": gardener,
    }


def progressed(record: ShootRecord, running: Sequence[str], *, now: datetime) -> Document:
    """Patch after a step has ended: `running` are the tasks in flight."""
    assert record.run is not None
    run, flow = record.run, record.flow
    description = ", ".join(running) or (
        f"{flow.name} finished" if flow.is_complete(run.done) else f"Starting {flow.name}"
    )
    return {"lastOperation": last_operation(run.operation, "Processing", flow.progress(run.done), description, now=now)}


def succeeded(operation: OperationType, *, now: datetime, is_hibernated: bool | None = None) -> Document:
    """Patch of a complete run; `is_hibernated` of None where it is not known to be, or to have been."""
    return {
        **({} if is_hibernated is None else {"hibernated": is_hibernated}),
        "lastOperation": last_operation(operation, "Succeeded", 100, _SUCCEEDED[operation], now=now),
        "lastErrors": None,
        "retryCycleStartTime": None,
    }


def networking_patch(record: ShootRecord) -> Document:
    """Patch with the networks of a shoot's infrastructure; empty where nothing reports any, or nothing else."""
    found = record.networking
    return {} if found is None or found == record.status.get("networking") else {"networking": found}


def handed_over(last: Document, *, seed_name: str, generation: int) -> Document:
    """Patch of a prepared migration, in one write: from now on `seed_name` runs the shoot.

    `generation`: at which its state was saved; the destination accepts no older one.
    """
    return {
        "lastOperation": last,
        "lastErrors": None,
        "retryCycleStartTime": None,
        "seedName": seed_name,
        "observedGeneration": generation,
    }


def failed(
    record: ShootRecord, failures: Sequence[StepFailure], *, retry_duration: timedelta, now: datetime
) -> Document:
    """Patch of a run with failed steps.

    Failed (permanent) for a non-retryable code or when `retry_duration` is over; else Error.
    """
    assert record.run is not None
    run, flow = record.run, record.flow
    descriptions = [f'task "{failure.task}" failed: {failure.message}' for failure in failures]
    text = f'Flow "{flow.name}" encountered task errors: [{", ".join(descriptions)}]'
    began = record.status.get("retryCycleStartTime")
    exhausted = began is not None and now - datetime.fromisoformat(began) > retry_duration
    is_last = exhausted or is_final(failures)
    state, description = ("Failed", text) if is_last else ("Error", text + WILL_BE_RETRIED)
    patch: Document = {
        "lastOperation": last_operation(run.operation, state, flow.progress(run.done), description, now=now),
        "lastErrors": [
            {
                "taskID": failure.task,
                "description": text,
                **({"codes": list(failure.codes)} if failure.codes else {}),
                "lastUpdateTime": timestamp(now),
            }
            for failure, text in zip(failures, descriptions, strict=True)
        ],
    }
    return patch | ({"retryCycleStartTime": None} if is_last else {})


def seed_not_ready(operation: OperationType, old: Document, problem: str, *, now: datetime) -> Document | None:
    """Patch while the seed is not ready; None if already reported. Never Failed."""
    return _not_yet(operation, old, f"Shoot cannot be reconciled on seed: {problem}", now=now)


def awaiting_dependency(operation: OperationType, old: Document, problem: str, *, now: datetime) -> Document | None:
    """Patch while a migration or restoration waits for others; None if already reported."""
    what = "prepared for migration" if operation == "Migrate" else "restored"
    return _not_yet(operation, old, f"Shoot cannot be {what}: {problem}", now=now)


def awaiting_extensions(operation: OperationType, old: Document, problem: str, *, now: datetime) -> Document | None:
    """Patch while a shoot waits for extensions of its seed; None if already reported."""
    return _not_yet(operation, old, f"{problem[:1].upper()}{problem[1:]}", now=now)


def _not_yet(operation: OperationType, old: Document, text: str, *, now: datetime) -> Document | None:
    text += WILL_BE_RETRIED
    if (old.get("type"), old.get("state"), old.get("description")) == (operation, "Error", text):
        return None
    progress = int(old.get("progress") or 0) if old.get("type") == operation else 0
    return {"lastOperation": last_operation(operation, "Error", progress, text, now=now)}


def care_patch(  # noqa: PLR0913 - what a check goes by
    status: Document,
    problems: Mapping[str, str],
    *,
    has_workers: bool,
    now: datetime,
    healthy_message: str = "",
    is_hibernated: bool = False,
    thresholds: Mapping[str, timedelta] = {},
) -> Document:
    """Conditions and constraints by the backend's findings: `problems` maps a type to its problem.

    Only fields that differ are in the patch. `healthy_message` takes the place of Gardener's messages where the backend
    has not looked at what they speak of. Conditions of a shoot that is hibernated are not checked. `thresholds`: how
    long a condition is Progressing before it is False; constraints have none.
    """
    patch: Document = {}
    last = section(status, "lastOperation")
    succeeded_at = datetime.fromisoformat(last["lastUpdateTime"]) if last.get("state") == "Succeeded" else None
    for field, checks in (("conditions", CONDITIONS), ("constraints", CONSTRAINTS)):
        old: list[Document] = status.get(field) or []
        checked = [
            _checked(
                get_or_init(old, kind, timestamp(now)),
                NOT_CHECKED
                if is_hibernated and field == "conditions"
                else (reason_true, healthy_message or message, reason_false),
                problems.get(kind),
                failed_as=lambda old, reason: failed_status(
                    old, reason, thresholds.get(old["type"]), now=now, succeeded_at=succeeded_at
                ),
                now=now,
            )
            for kind, (reason_true, message, reason_false) in checks.items()
            if has_workers or kind != "EveryNodeReady"
        ]
        if any(condition not in old for condition in checked):
            patch[field] = checked
    return patch


def _checked(
    old: Document,
    texts: tuple[str, str, str],
    problem: str | None,
    *,
    failed_as: Callable[[Document, str], str],
    now: datetime,
) -> Document:
    reason_true, message, reason_false = texts
    status, reason, text = TRUE, reason_true, message
    if isinstance(problem, CheckError):
        status, reason, text = UNKNOWN, "ConditionCheckError", str(problem)
    elif isinstance(problem, ReportedProblem):
        reason, text = problem.reason, str(problem)
        status = failed_as(old, reason) if problem.status == FALSE else problem.status
    elif problem is not None:
        status, reason, text = failed_as(old, reason_false), reason_false, problem
    return build_condition(old, now=timestamp(now), status=status, reason=reason, message=text)[0]
