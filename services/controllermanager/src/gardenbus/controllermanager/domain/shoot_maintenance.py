"""Decides when a shoot is maintained, what that changes, and what its status says about it.

Once in each time window, in a moment of it that differs from shoot to shoot, and at once on the annotation
`gardener.cloud/operation: maintain`:

    status.lastMaintenance Processing   (what is to be done)
    spec and annotations                (one request, through admission; rejected: Failed)
    status.lastMaintenance Succeeded

The status says when a window's maintenance began, so that no second one begins, whichever replicas come and go; one
that was interrupted in between is begun anew. A shoot that was made within its window waits for the next one.

Source: Gardener's `pkg/controllermanager/controller/shoot/maintenance`.
"""

from datetime import datetime
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.maintenance_windows import NEEDS_RETRY, MaintenanceWindow, effective_window
from gardenbus.common.api.garden.shoot_operations import (
    MAINTAIN,
    MAINTENANCE_OPERATION,
    OPERATION,
    RECONCILE,
    RETRY,
    SEPARATOR,
    requested_operations,
)
from gardenbus.common.api.merge_patches import merge_patch_between
from gardenbus.common.ports.clock import parse_timestamp, timestamp
from gardenbus.controllermanager.domain.dropped_fields import without_dropped_fields
from gardenbus.controllermanager.domain.jitter import fraction_of
from gardenbus.controllermanager.domain.shoot_updates import CONTROL_PLANE, VersionUpdate, maintained_spec
from gardenbus.controllermanager.domain.unsupported_features import without_unsupported_features

PROCESSING, SUCCEEDED, FAILED = "Processing", "Succeeded", "Failed"


class NotMaintained(NamedTuple):
    """The shoot is being deleted."""


class AwaitWindow(NamedTuple):
    """Nothing is done before this instant."""

    at: datetime


class MaintainNow(NamedTuple):
    """The shoot is maintained; then nothing is done before `next_at`."""

    next_at: datetime


MaintenanceDecision = NotMaintained | AwaitWindow | MaintainNow


class MaintenancePlan(NamedTuple):
    """Changes of a maintenance: a merge patch of the shoot, the updates, and operations besides."""

    patch: Document
    updates: tuple[VersionUpdate, ...]
    operations: tuple[str, ...]

    @property
    def description(self) -> str:
        """All of it in one text, as Gardener words it."""
        parts = [_described(update) for update in self.updates] + list(self.operations)
        failed = sum(not update.is_successful for update in self.updates)
        beginning = "All maintenance operations successful."
        if failed:
            beginning = f"({len(self.updates) - failed}/{len(self.updates)}) maintenance operations successful."
        return " ".join((beginning, ", ".join(parts))).rstrip()

    @property
    def failure_reason(self) -> str:
        """Reasons why updates could not be made; "" where none failed."""
        return ", ".join(
            f"{update.subject}: {update.component} maintenance failure due to: {update.description}"
            for update in self.updates
            if not update.is_successful
        )


def decide_maintenance(shoot: Document, now: datetime) -> MaintenanceDecision:
    """Decide whether a shoot is maintained now."""
    metadata = section(shoot, "metadata")
    if metadata.get("deletionTimestamp"):
        return NotMaintained()
    window = effective_window(section(shoot, "spec"), f"{metadata.get('namespace')}/{metadata.get('name')}")
    next_at = _moment(window, window.next_begin(now), metadata)
    if MAINTAIN in requested_operations(shoot):
        return MaintainNow(next_at)
    opened_at = window.opened_at(now)
    if opened_at is None or _is_over(shoot, opened_at):
        return AwaitWindow(next_at)
    moment = _moment(window, opened_at, metadata)
    return MaintainNow(next_at) if moment <= now else AwaitWindow(moment)


def plan_maintenance(shoot: Document, offered: Document, now: datetime) -> MaintenancePlan:
    """Plan the maintenance of a shoot; `offered` is the (merged) spec of its profile, {} where there is none."""
    spec = section(shoot, "spec")
    maintained = maintained_spec(spec, offered, now)
    cleaned = without_dropped_fields(maintained.spec, section(spec, "kubernetes").get("version"))
    supported = without_unsupported_features(cleaned.spec)
    annotations, operations = _requested(shoot)
    patch: Document = {"metadata": {"annotations": annotations}} if annotations else {}
    if changed := merge_patch_between(spec, supported.spec):
        patch["spec"] = changed
    return MaintenancePlan(patch, maintained.updates, (*cleaned.operations, *supported.operations, *operations))


def begun(shoot: Document, plan: MaintenancePlan, now: datetime) -> Document:
    """The shoot at the beginning of a maintenance; one that was interrupted keeps its description if nothing is new."""
    last = section(shoot, "status", "lastMaintenance")
    is_resumed = last.get("state") == PROCESSING and not plan.updates and not plan.operations
    description = last.get("description") if is_resumed else None
    return _with_last(
        shoot,
        description=description or plan.description,
        state=PROCESSING,
        triggeredTime=timestamp(now),
        failureReason=plan.failure_reason,
    )


def ended(shoot: Document) -> Document:
    """The shoot at the end of a maintenance, whose status has its beginning."""
    last = section(shoot, "status", "lastMaintenance")
    return _with_last(shoot, **{**last, "state": FAILED if last.get("failureReason") else SUCCEEDED})


def rejected(shoot: Document, problem: str, now: datetime) -> Document:
    """The shoot after a maintenance whose changes were rejected: tried again in the next window."""
    return _with_last(
        shoot,
        description="Maintenance failed",
        state=FAILED,
        triggeredTime=timestamp(now),
        failureReason=f"Updates to the Shoot failed to be applied: {problem}",
    )


def without_request_patch(shoot: Document) -> Document | None:
    """The merge patch that removes the annotation which requests a maintenance; None without it."""
    others = [name for name in requested_operations(shoot) if name != MAINTAIN]
    if MAINTAIN not in requested_operations(shoot):
        return None
    return {"metadata": {"annotations": {OPERATION: SEPARATOR.join(others) or None}}}


def event_of(update: VersionUpdate) -> tuple[str, str]:
    """Reason and message of the Event of an update."""
    reason = "KubernetesVersionMaintenance" if not update.image else "MachineImageVersionMaintenance"
    if update.is_successful:
        return reason, f"{update.subject}: {update.description}. Reason: {update.reason}."
    failure = f"{update.component} version maintenance failed. Reason for update: {update.reason}."
    return reason, f"{update.subject}: {failure} Error: {update.description}"


def _described(update: VersionUpdate) -> str:
    if update.is_successful:
        return f"{update.subject}: {update.description}. Reason: {update.reason}"
    word = "update" if update.subject == CONTROL_PLANE else "version maintenance"
    return f"{update.subject}: {update.component} {word} failed. Reason for update: {update.reason}"


def _is_over(shoot: Document, opened_at: datetime) -> bool:
    """True when this window's maintenance was made, or there is none: the shoot is younger than the window."""
    created_at = parse_timestamp(section(shoot, "metadata").get("creationTimestamp"))
    if created_at is not None and created_at >= opened_at:
        return True
    last = section(shoot, "status", "lastMaintenance")
    triggered_at = parse_timestamp(last.get("triggeredTime"))
    return triggered_at is not None and triggered_at >= opened_at and last.get("state") != PROCESSING


def _moment(window: MaintenanceWindow, begin: datetime, metadata: Document) -> datetime:
    """The instant within a window at which a shoot is maintained."""
    return begin + window.length * fraction_of(metadata.get("uid"), begin.date())


def _requested(shoot: Document) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Annotations that a maintenance writes, and what they request besides the reconciliation."""
    state = section(shoot, "status", "lastOperation").get("state")
    annotations = section(shoot, "metadata", "annotations")
    requested = [name for name in requested_operations(shoot) if name != MAINTAIN]
    written: dict[str, str | None] = {}
    if state == FAILED and str(annotations.get(NEEDS_RETRY)).lower() == "true":
        written[NEEDS_RETRY], requested = None, [RETRY]
    elif state is not None and state != FAILED:
        requested += [name for name in requested_operations(shoot, MAINTENANCE_OPERATION) if name not in requested]
        requested = requested or [RECONCILE]
        if MAINTENANCE_OPERATION in annotations:
            written[MAINTENANCE_OPERATION] = None
    operation = SEPARATOR.join(requested)
    if operation != (annotations.get(OPERATION) or ""):
        written[OPERATION] = operation or None
    added = [name for name in requested if name != RECONCILE and name not in requested_operations(shoot)]
    return written, tuple(f'Added "{name}" operation annotation' for name in added)


def _with_last(shoot: Document, **fields: Any) -> Document:
    last = {name: value for name, value in fields.items() if value}
    return {**shoot, "status": {**section(shoot, "status"), "lastMaintenance": last}}
