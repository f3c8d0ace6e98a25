"""Rejection of a placement that cannot be decided: its reason, message and condition.

Source: KubeFleet's `pkg/controllers/placement/controller.go`, which reports invalid selectors in the same condition and
with the same reason.
"""

from typing import NamedTuple

from gardenbus.common.api.conditions import FALSE, conditions_of, get_condition, observed_condition
from gardenbus.common.api.document import Document, section
from gardenbus.common.errors import InvalidResource, Terminal

INVALID = "PlacementInvalid"
"""Reason of a placement that cannot be parsed, or whose parts cannot be stored."""

INVALID_SELECTORS = "InvalidResourceSelectors"
"""Reason of selectors that cannot be evaluated. The clusters are chosen nevertheless."""

_SELECTORS = "spec.resourceSelectors"


class PlacementRejection(NamedTuple):
    """Reason and message of a rejected placement."""

    reason: str
    """`INVALID` or `INVALID_SELECTORS`."""

    message: str
    """The problem, and how to mend it."""


def condition_type(placement: Document) -> str:
    """Return the type of a placement's condition Scheduled."""
    return f"{placement.get('kind')}Scheduled"


def rejection_of(error: Terminal) -> PlacementRejection:
    """Return the rejection for an error that stays until the placement, or its surroundings, change."""
    problems = error.problems if isinstance(error, InvalidResource) else ()
    fields = ", ".join(each.field for each in problems if each.field)
    way = f"correct {fields}, and apply the placement again" if fields else "change the placement, and apply it again"
    is_selectors = any(each.field.startswith(_SELECTORS) for each in problems)
    retained = "No newer resources go out until then" if is_selectors else "What was decided before stays until then"
    message = f"{error.message.rstrip('.')}. To mend it, {way}. {retained}."
    return PlacementRejection(INVALID_SELECTORS if is_selectors else INVALID, message)


def recorded_rejection(placement: Document) -> PlacementRejection | None:
    """Return the rejection in a placement's current status; None where there is none."""
    condition = get_condition(conditions_of(placement), condition_type(placement))
    if condition is None or condition.get("reason") not in (INVALID, INVALID_SELECTORS):
        return None
    if condition.get("observedGeneration") != section(placement, "metadata").get("generation", 0):
        return None
    return PlacementRejection(str(condition["reason"]), str(condition.get("message") or ""))


def with_rejection(placement: Document, rejection: PlacementRejection, now: str) -> Document:
    """Return a placement with the rejection in its status; the same document when it is there already.

    The recorded clusters stay: they keep their resources.
    """
    if recorded_rejection(placement) == rejection:
        return placement
    kind, conditions = condition_type(placement), conditions_of(placement)
    generation = section(placement, "metadata").get("generation", 0)
    outcome = (FALSE, rejection.reason, rejection.message)
    condition = observed_condition(conditions, kind, outcome, generation=generation, now=now)
    others = [each for each in conditions if each.get("type") != kind]
    return {**placement, "status": {**section(placement, "status"), "conditions": [condition, *others]}}


def with_rejection_kept(status: Document, placement: Document) -> Document:
    """Return a renewed status with the placement's recorded rejection, if it has one."""
    if recorded_rejection(placement) is None:
        return status
    kind = condition_type(placement)
    retained = get_condition(conditions_of(placement), kind)
    conditions = conditions_of({"status": status})
    return {**status, "conditions": [retained if each.get("type") == kind else each for each in conditions]}
