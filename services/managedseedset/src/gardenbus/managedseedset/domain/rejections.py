"""Updates and creations that admission rejected.

A rejected update is reported in the condition `Progressing`, and tried again later or when the set changes. Everything
else goes on.
"""

from datetime import datetime, timedelta

from gardenbus.common.api.conditions import FALSE, build_condition, conditions_of, get_condition, merge_conditions
from gardenbus.common.api.document import Document, section
from gardenbus.common.ports.clock import parse_timestamp, timestamp
from gardenbus.managedseedset.domain.rolling_update import PROGRESSING, UPDATE_FAILED

REJECTION_FIELD = "refused"
_REJECTED_GENERATION = "observedGeneration"


def with_rejected_update(managed_seed_set: Document, replica: str, message: str, now: datetime) -> Document:
    """The set with its rejected update recorded, and nothing pending."""
    at = timestamp(now)
    old = get_condition(conditions_of(managed_seed_set), PROGRESSING) or {"type": PROGRESSING}
    text = f"The update of {replica} was rejected: {message}"
    new, _ = build_condition(old, now=at, status=FALSE, reason=UPDATE_FAILED, message=text)
    new |= {_REJECTED_GENERATION: section(managed_seed_set, "metadata").get("generation"), "lastUpdateTime": at}
    status = {name: value for name, value in section(managed_seed_set, "status").items() if name != "pendingReplica"}
    status["conditions"] = merge_conditions(conditions_of(managed_seed_set), new)
    return {**managed_seed_set, "status": status}


def with_rejected_creation(managed_seed_set: Document, replica: str, message: str) -> Document:
    """The set with its rejected replica recorded: it was never created, so its ordinal is not used up."""
    status = section(managed_seed_set, "status")
    pending = {**section(status, "pendingReplica"), "name": replica, REJECTION_FIELD: message}
    return {**managed_seed_set, "status": {**status, "pendingReplica": pending}}


def update_rejection(managed_seed_set: Document, now: datetime, retry_after: timedelta) -> str:
    """The reason why the update is not tried now; "" when it may be."""
    condition = get_condition(conditions_of(managed_seed_set), PROGRESSING) or {}
    if condition.get("reason") != UPDATE_FAILED:
        return ""
    if condition.get(_REJECTED_GENERATION) != section(managed_seed_set, "metadata").get("generation"):
        return ""
    at = parse_timestamp(condition.get("lastUpdateTime"))
    return "" if at is None or now - at >= retry_after else str(condition.get("message") or "")
