"""Condition of a Seed on which objects run that the store neither has nor remembers to have left it. Pure."""

from collections.abc import Sequence
from datetime import datetime

from gardenbus.common.api.conditions import (
    FALSE,
    TRUE,
    build_condition,
    conditions_of,
    get_condition,
    get_or_init,
    merge_conditions,
)
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.seeds import OBJECTS_CONDITION
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.clock import timestamp

NAMED_OBJECTS = 5


def with_objects_condition(seed: Document, unknown: Sequence[ObjectKey], now: datetime) -> Document | None:
    """The Seed with condition ObjectsKnown, False while something is `unknown`; None when there is nothing to write.

    As with an emergency stop, a Seed gets the condition when it is first needed. One that no gardenlet has ever
    reported for gets none: that it has conditions says that one has.
    """
    conditions = conditions_of(seed)
    if not conditions or (not unknown and get_condition(conditions, OBJECTS_CONDITION) is None):
        return None
    status, reason, message = TRUE, "AllObjectsKnown", "All objects that run here are known."
    if unknown:
        named = ", ".join(f"{key.kind} {key.namespace}/{key.name}" for key in unknown[:NAMED_OBJECTS])
        more = f" and {len(unknown) - NAMED_OBJECTS} more" if len(unknown) > NAMED_OBJECTS else ""
        status, reason = FALSE, "ObjectsUnknown"
        message = f"Objects run here that the store does not have here: {named}{more}. Adopt or forget them."
    old = get_or_init(conditions, OBJECTS_CONDITION, timestamp(now))
    new, changed = build_condition(old, now=timestamp(now), status=status, reason=reason, message=message)
    if not changed:
        return None
    return {**seed, "status": {**section(seed, "status"), "conditions": merge_conditions(conditions, new)}}
