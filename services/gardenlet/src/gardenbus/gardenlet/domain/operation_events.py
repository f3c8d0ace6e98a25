"""Events of a shoot's operations, in Gardener's words.

Source: Gardener's `gardenlet/controller/shoot/shoot/reconciler.go`, and `core/v1beta1` for the reasons.
"""

from collections.abc import Mapping
from typing import NamedTuple

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.shoots import SPEC_REVERTED
from gardenbus.gardenlet.domain.flows import OperationType
from gardenbus.gardenlet.domain.shoot_record import Run


class OperationEvent(NamedTuple):
    """An Event about a shoot. `type`: Normal or Warning."""

    type: str
    reason: str
    message: str


_RECONCILE = ("Reconciling", "Reconciled", "ReconcileError")
_OPERATIONS: Mapping[OperationType, tuple[tuple[str, str, str], str, str]] = {
    "Create": (_RECONCILE, "Reconciling Shoot cluster", "Reconciled Shoot cluster"),
    "Reconcile": (_RECONCILE, "Reconciling Shoot cluster", "Reconciled Shoot cluster"),
    "Restore": (_RECONCILE, "Restoring Shoot cluster", "Restored Shoot cluster"),
    "Delete": (("Deleting", "Deleted", "DeleteError"), "Deleting Shoot cluster", "Deleted Shoot cluster"),
    "Migrate": (
        ("PrepareMigration", "MigrationPrepared", "MigrationPreparationFailed"),
        "Preparing Shoot cluster for migration",
        "Prepared Shoot cluster for migration",
    ),
}
"""The reasons of start, success and failure, and the messages of start and success."""


def start_event(operation: OperationType) -> OperationEvent:
    """The Event of an operation that begins."""
    (reason, _, _), message, _ = _OPERATIONS[operation]
    return OperationEvent("Normal", reason, message)


def reverted_event(run: Run, before: Run | None) -> OperationEvent | None:
    """The Event of a run at an earlier generation than the one before, as a restored store has it; else None."""
    if before is None or run.generation >= before.generation or run.operation == "Delete":
        return None
    message = (
        f"The store was restored and has generation {run.generation} of the Shoot, but generation {before.generation} "
        "ran here: what was changed in between is undone. Apply it again."
    )
    return OperationEvent("Warning", SPEC_REVERTED, message)


def success_event(operation: OperationType) -> OperationEvent:
    """The Event of an operation that is complete."""
    (_, reason, _), _, message = _OPERATIONS[operation]
    return OperationEvent("Normal", reason, message)


def failure_event(last_operation: Document) -> OperationEvent:
    """The Event of an attempt that has failed, of its `status.lastOperation`."""
    (_, _, reason), _, _ = _OPERATIONS[last_operation["type"]]
    return OperationEvent("Warning", reason, last_operation["description"])
