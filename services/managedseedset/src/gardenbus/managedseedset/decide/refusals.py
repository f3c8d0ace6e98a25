"""An update that admission refuses.

It is said in the condition `Progressing`, and tried again later or when the set changes. Everything else goes on.
"""

from datetime import datetime, timedelta

from gardenbus.common.ports.clock import timestamp
from gardenbus.common.resources.conditions import FALSE, build_condition, conditions_of, get_condition, merge_conditions
from gardenbus.common.resources.document import Document, section
from gardenbus.managedseedset.decide.updating import PROGRESSING, UPDATE_FAILED

REFUSED = "refused"
_REFUSED_AT = "observedGeneration"


def with_refusal(managed_seed_set: Document, replica: str, message: str, now: datetime) -> Document:
    """The set with its refused update noted, and nothing waited for."""
    at = timestamp(now)
    old = get_condition(conditions_of(managed_seed_set), PROGRESSING) or {"type": PROGRESSING}
    text = f"The update of {replica} was refused: {message}"
    new, _ = build_condition(old, now=at, status=FALSE, reason=UPDATE_FAILED, message=text)
    new |= {_REFUSED_AT: section(managed_seed_set, "metadata").get("generation"), "lastUpdateTime": at}
    status = {name: value for name, value in section(managed_seed_set, "status").items() if name != "pendingReplica"}
    status["conditions"] = merge_conditions(conditions_of(managed_seed_set), new)
    return {**managed_seed_set, "status": status}


def with_creation_refused(managed_seed_set: Document, replica: str, message: str) -> Document:
    """The set with its refused replica noted: it never came about, so its ordinal is not used up."""
    status = section(managed_seed_set, "status")
    pending = {**section(status, "pendingReplica"), "name": replica, REFUSED: message}
    return {**managed_seed_set, "status": {**status, "pendingReplica": pending}}


def refusal_of(managed_seed_set: Document, now: datetime, tried_again_after: timedelta) -> str:
    """Why the update is not tried now; "" when it may be."""
    condition = get_condition(conditions_of(managed_seed_set), PROGRESSING) or {}
    if condition.get("reason") != UPDATE_FAILED:
        return ""
    if condition.get(_REFUSED_AT) != section(managed_seed_set, "metadata").get("generation"):
        return ""
    at = instant(condition.get("lastUpdateTime"))
    return "" if at is None or now - at >= tried_again_after else str(condition.get("message") or "")


def instant(text: object) -> datetime | None:
    """The time that an RFC 3339 text names, None when it names none."""
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
