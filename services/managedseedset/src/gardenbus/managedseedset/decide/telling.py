"""The set's conditions: what is in the way, said once and taken back when it is over.

| condition             | True while …                                                        |
|-----------------------|---------------------------------------------------------------------|
| ScaleInBlocked        | replicas should go and none of them can                             |
| ReplicaUnschedulable  | the scheduler finds no seed for the Shoot of a replica              |
| InvalidPriority       | a replica's priority is no integer, and counts as 3                 |
| Progressing           | an update of the templates goes on or is complete; False: it failed |

A condition that was never True is not written at all.
"""

from collections.abc import Sequence
from datetime import datetime

from gardenbus.common.ports.clock import timestamp
from gardenbus.common.resources.conditions import (
    FALSE,
    TRUE,
    build_condition,
    conditions_of,
    get_condition,
    merge_conditions,
)
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.seed_management import DEFAULT_PRIORITY, PRIORITY
from gardenbus.managedseedset.decide.actions import SetEvent
from gardenbus.managedseedset.decide.replicas import Replica
from gardenbus.managedseedset.decide.updating import PROGRESSING, UPDATE_COMPLETE, UPDATE_FAILED, Progress

SCALE_IN_BLOCKED = "ScaleInBlocked"
REPLICA_UNSCHEDULABLE = "ReplicaUnschedulable"
INVALID_PRIORITY = "InvalidPriority"


class Telling:
    """The conditions under construction, and the Events that go with their changes."""

    def __init__(self, managed_seed_set: Document, now: datetime) -> None:
        self._conditions = conditions_of(managed_seed_set)
        self._now = timestamp(now)
        self.events: list[SetEvent] = []

    @property
    def conditions(self) -> list[Document]:
        """As they shall be written."""
        return self._conditions

    def blocked(self, found: tuple[str, str] | None) -> None:
        """Say what is in the way of scaling in, or that nothing is; an Event when it begins."""
        if self._say(SCALE_IN_BLOCKED, found, over=("NotBlocked", "Nothing is in the way of scaling in.")) == "began":
            self._warn(SCALE_IN_BLOCKED, found)

    def unschedulable(self, replicas: Sequence[Replica]) -> None:
        """Say which replicas' Shoots find no seed; an Event for each new text of the scheduler's."""
        refused = [f"{replica.name}: {replica.unschedulable}" for replica in replicas if replica.unschedulable]
        found = ("SchedulingFailed", "; ".join(refused)) if refused else None
        over = ("Scheduled", "The scheduler has a seed for the shoot of each replica.")
        if self._say(REPLICA_UNSCHEDULABLE, found, over=over):
            self._warn(REPLICA_UNSCHEDULABLE, found)

    def priorities(self, replicas: Sequence[Replica]) -> None:
        """Say which priorities are none; one Event for each text."""
        wrong = [
            f"{replica.name} has {str(replica.stated_priority)[:40]!r}"
            for replica in replicas
            if replica.has_invalid_priority
        ]
        message = f"{PRIORITY} must be an integer, and counts as {DEFAULT_PRIORITY}: {', '.join(wrong)}"
        found = (INVALID_PRIORITY, message) if wrong else None
        if self._say(INVALID_PRIORITY, found, over=("Valid", "All priorities are integers.")):
            self._warn(INVALID_PRIORITY, found)

    def progress(self, progress: Progress | None) -> None:
        """Say how the update goes; complete is worth saying only after one was under way."""
        old = get_condition(self._conditions, PROGRESSING)
        if progress is None or (old is None and progress.reason == UPDATE_COMPLETE):
            return
        has_failed = progress.reason == UPDATE_FAILED and (old or {}).get("reason") != UPDATE_FAILED
        self._set(PROGRESSING, progress.status, progress.reason, progress.message)
        if has_failed:
            self.events.append(SetEvent(UPDATE_FAILED, progress.message, "Warning"))

    def _say(self, kind: str, found: tuple[str, str] | None, *, over: tuple[str, str]) -> str:
        """Set a condition; answer `began` or `changed` when there is news worth an Event, else nothing."""
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

    def _warn(self, reason: str, found: tuple[str, str] | None) -> None:
        if found is not None:
            self.events.append(SetEvent(reason, found[1], "Warning"))
