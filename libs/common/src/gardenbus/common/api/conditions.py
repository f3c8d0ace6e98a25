"""Conditions, built and merged as in Gardener. A condition is a plain document, so that unknown fields survive.

Source: Gardener's `v1beta1/helper/{condition_builder,condition}.go`.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from gardenbus.common.api.document import Document
from gardenbus.common.api.views import mapping_or_empty

TRUE = "True"
FALSE = "False"
PROGRESSING = "Progressing"
UNKNOWN = "Unknown"

INITIAL_REASON = "ConditionInitialized"
INITIAL_MESSAGE = "The condition has been initialized but its semantic check has not been performed yet."
UNSPECIFIED_REASON = "Unspecified"
NO_MESSAGE = "No message given."

LAST_HEARTBEAT = "lastHeartbeatTime"
"""Ours, in the condition GardenletReady of a silent seed: its last heartbeat, by NodeCondition's name for it."""


def conditions_of(document: Document, field: str = "conditions") -> list[Document]:
    """The list below status (`conditions` or `constraints`); what is no condition in it is left out."""
    entries: Any = mapping_or_empty(document.get("status")).get(field)
    if not isinstance(entries, list):
        return []
    return [cast("Document", entry) for entry in cast("list[Any]", entries) if isinstance(entry, dict)]


def get_condition(conditions: Iterable[Document], kind: str) -> Document | None:
    """The condition of a type, or None."""
    return next((condition for condition in conditions if condition.get("type") == kind), None)


def condition_status(conditions: Iterable[Document], kind: str) -> str:
    """The status of the condition of a type; "" when there is none."""
    condition = get_condition(conditions, kind)
    return str(condition.get("status") or "") if condition else ""


def initial_condition(kind: str, now: str) -> Document:
    """A condition before its first check: Unknown."""
    return {
        "type": kind,
        "status": UNKNOWN,
        "reason": INITIAL_REASON,
        "message": INITIAL_MESSAGE,
        "lastTransitionTime": now,
        "lastUpdateTime": now,
    }


def get_or_init(conditions: Iterable[Document], kind: str, now: str) -> Document:
    """The condition of a type, or a new one that starts as Unknown."""
    return get_condition(conditions, kind) or initial_condition(kind, now)


def build_condition(
    old: Document,
    *,
    now: str,
    status: str | None = None,
    reason: str | None = None,
    message: str | None = None,
    codes: Sequence[str] = (),
) -> tuple[Document, bool]:
    """Build the successor of `old` (at least its `type`); also returns whether anything differs.

    `reason` and `message` of None keep the old text, an empty one gets a placeholder. lastTransitionTime follows the
    status alone, lastUpdateTime reason, message and codes alone. Codes and lastHeartbeatTime are never carried over.
    """
    new: Document = {name: value for name, value in old.items() if name not in ("codes", LAST_HEARTBEAT)}
    new["status"] = status or old.get("status") or UNKNOWN
    new["reason"] = _text(reason, old.get("reason"), UNSPECIFIED_REASON, INITIAL_REASON)
    new["message"] = _text(message, old.get("message"), NO_MESSAGE, INITIAL_MESSAGE)
    if codes:
        new["codes"] = list(codes)
    new["lastTransitionTime"] = old.get("lastTransitionTime") or now
    new["lastUpdateTime"] = old.get("lastUpdateTime") or now
    if new["status"] != old.get("status"):
        new["lastTransitionTime"] = now
    if (new["reason"], new["message"], list(codes)) != (old.get("reason"), old.get("message"), old.get("codes") or []):
        new["lastUpdateTime"] = now
    return new, new != old


def failed_status(
    old: Document, reason: str, threshold: timedelta | None, *, now: datetime, succeeded_at: datetime | None = None
) -> str:
    """Status of a condition whose check has failed: Progressing for as long as its threshold allows, else False.

    `succeeded_at`: end of the last operation, if that was successful; the threshold counts from then as well.
    Source: Gardener's `FailedCondition` in `v1beta1/helper/condition.go`.
    """
    before = old.get("status")
    if threshold is None or before not in (TRUE, PROGRESSING, FALSE):
        return FALSE
    since = datetime.fromisoformat(str(old.get("lastTransitionTime"))) if before == PROGRESSING else succeeded_at
    is_recent = any(each is not None and now - each <= threshold for each in (since, succeeded_at))
    is_another = before == FALSE and reason != old.get("reason")
    return PROGRESSING if before == TRUE or is_recent or is_another else FALSE


def observed_condition(
    old: Iterable[Document], kind: str, observed: tuple[str, str, str], *, generation: int, now: str
) -> Document:
    """Build a condition in Kubernetes' own form: status, reason and message observed for a generation.

    lastTransitionTime is kept while the status is that of the one in `old`, else it is `now` (RFC 3339).
    """
    before = get_condition(old, kind) or {}
    since = before.get("lastTransitionTime") if before.get("status") == observed[0] else None
    return {
        "type": kind,
        "status": observed[0],
        "reason": observed[1],
        "message": observed[2],
        "observedGeneration": generation,
        "lastTransitionTime": since or now,
    }


def merge_conditions(old: Iterable[Document], *new: Document) -> list[Document]:
    """`old` in its order with those of the same type replaced, and the unknown ones of `new` at the end."""
    by_type = {condition.get("type"): condition for condition in new}
    merged = [by_type.pop(condition.get("type"), condition) for condition in old]
    return merged + list(by_type.values())


def _text(given: str | None, old: str | None, stand_in: str, initial: str) -> str:
    if given is not None:
        return given or stand_in
    return old or initial
