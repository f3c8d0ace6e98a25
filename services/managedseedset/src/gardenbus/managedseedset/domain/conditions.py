"""Conditions of a set.

| condition             | True while …                                                        |
|-----------------------|---------------------------------------------------------------------|
| ScaleInBlocked        | replicas should go and none of them can                             |
| ReplicaUnschedulable  | the scheduler finds no seed for the Shoot of a replica              |
| InvalidPriority       | a replica's priority is no integer, and counts as 3                 |
| StoreRecovering       | the store was restored, and its seeds have not said what they run   |
| Progressing           | an update of the templates goes on or is complete; False: it failed |

A condition that was never True is not written at all.
"""

from collections.abc import Sequence
from datetime import datetime

from gardenbus.common.api.conditions import FALSE, TRUE, build_condition, conditions_of, get_condition, merge_conditions
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.seed_management import DEFAULT_PRIORITY, PRIORITY
from gardenbus.common.ports.clock import timestamp
from gardenbus.managedseedset.domain.actions import SetEvent
from gardenbus.managedseedset.domain.replicas import Replica
from gardenbus.managedseedset.domain.rolling_update import PROGRESSING, UPDATE_COMPLETE, UPDATE_FAILED, UpdateProgress

SCALE_IN_BLOCKED = "ScaleInBlocked"
REPLICA_UNSCHEDULABLE = "ReplicaUnschedulable"
INVALID_PRIORITY = "InvalidPriority"
STORE_RECOVERING = "StoreRecovering"


class ConditionBuilder:
    """Builds conditions, and the Events of their changes."""

    def __init__(self, managed_seed_set: Document, now: datetime) -> None:
        self._conditions = conditions_of(managed_seed_set)
        self._now = timestamp(now)
        self.events: list[SetEvent] = []

    @property
    def conditions(self) -> list[Document]:
        """The conditions to be written."""
        return self._conditions

    def blocked(self, found: tuple[str, str] | None) -> None:
        """Set ScaleInBlocked, with an Event when it begins; None resolves it."""
        if (
            self._update(SCALE_IN_BLOCKED, found, over=("NotBlocked", "Nothing is in the way of scaling in."))
            == "began"
        ):
            self._record_warning(SCALE_IN_BLOCKED, found)

    def unschedulable(self, replicas: Sequence[Replica]) -> None:
        """Set ReplicaUnschedulable; an Event for each new message of the scheduler."""
        rejected = [f"{replica.name}: {replica.unschedulable}" for replica in replicas if replica.unschedulable]
        found = ("SchedulingFailed", "; ".join(rejected)) if rejected else None
        over = ("Scheduled", "The scheduler has a seed for the shoot of each replica.")
        if self._update(REPLICA_UNSCHEDULABLE, found, over=over):
            self._record_warning(REPLICA_UNSCHEDULABLE, found)

    def recovering(self, awaited: str) -> None:
        """Set StoreRecovering; an Event for each new message. "" when the store does not recover."""
        found = ("StoreRestored", f"Nothing is grown, drained or removed: {awaited}") if awaited else None
        if self._update(STORE_RECOVERING, found, over=("Recovered", "All seeds have reported what they run.")):
            self._record_warning(STORE_RECOVERING, found)

    def priorities(self, replicas: Sequence[Replica]) -> None:
        """Set InvalidPriority; one Event for each message."""
        wrong = [
            f"{replica.name} has {str(replica.priority_annotation)[:40]!r}"
            for replica in replicas
            if replica.has_invalid_priority
        ]
        message = f"{PRIORITY} must be an integer, and counts as {DEFAULT_PRIORITY}: {', '.join(wrong)}"
        found = (INVALID_PRIORITY, message) if wrong else None
        if self._update(INVALID_PRIORITY, found, over=("Valid", "All priorities are integers.")):
            self._record_warning(INVALID_PRIORITY, found)

    def progress(self, progress: UpdateProgress | None) -> None:
        """Set Progressing; completion is reported only after an update."""
        old = get_condition(self._conditions, PROGRESSING)
        if progress is None or (old is None and progress.reason == UPDATE_COMPLETE):
            return
        has_failed = progress.reason == UPDATE_FAILED and (old or {}).get("reason") != UPDATE_FAILED
        self._set(PROGRESSING, progress.status, progress.reason, progress.message)
        if has_failed:
            self.events.append(SetEvent(UPDATE_FAILED, progress.message, "Warning"))

    def _update(self, kind: str, found: tuple[str, str] | None, *, over: tuple[str, str]) -> str:
        """Set a condition; returns `began` or `changed` when that deserves an Event, else ""."""
        old = get_condition(self._conditions, kind)
        if found is None:
            if old is not None:
                self._set(kind, FALSE, *over)
            return ""
        self._set(kind, TRUE, *found)
        if old is None or old.get("status") != TRUE:
            return "began"
        return "changed" if old.get("message") != found[1] else ""

    def _set(self, kind: str, status: str, reason: str, message: str) -> None:
        old = get_condition(self._conditions, kind) or {"type": kind}
        new, _ = build_condition(old, now=self._now, status=status, reason=reason, message=message)
        self._conditions = merge_conditions(self._conditions, new)

    def _record_warning(self, reason: str, found: tuple[str, str] | None) -> None:
        if found is not None:
            self.events.append(SetEvent(reason, found[1], "Warning"))
