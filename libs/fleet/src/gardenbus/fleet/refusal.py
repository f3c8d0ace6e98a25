"""A placement that nothing can be decided of: how its status says so, and what is to be done about it.

Source: KubeFleet's `pkg/controllers/placement/controller.go`, which tells of selectors that are invalid in the same
condition and with the same reason.
"""

from typing import NamedTuple

from gardenbus.common.errors import InvalidResource, Terminal
from gardenbus.common.resources.conditions import FALSE, conditions_of, get_condition, observed_condition
from gardenbus.common.resources.document import Document, section

INVALID = "PlacementInvalid"
"""Reason of a placement that cannot be read, or of which nothing can be stored."""

INVALID_SELECTORS = "InvalidResourceSelectors"
"""Reason of selectors that cannot be evaluated. The clusters are chosen all the same."""

_SELECTORS = "spec.resourceSelectors"


class Refusal(NamedTuple):
    """Why nothing can be made of a placement."""

    reason: str
    """`INVALID` or `INVALID_SELECTORS`."""

    message: str
    """What is wrong, and how to mend it."""


def condition_type(placement: Document) -> str:
    """The condition of a placement that tells whether its clusters were chosen."""
    return f"{placement.get('kind')}Scheduled"


def refusal_of(error: Terminal) -> Refusal:
    """What to tell of an error that stays until the placement, or what refuses it, changes."""
    problems = error.problems if isinstance(error, InvalidResource) else ()
    fields = ", ".join(each.field for each in problems if each.field)
    way = f"correct {fields}, and apply the placement again" if fields else "change the placement, and apply it again"
    is_selectors = any(each.field.startswith(_SELECTORS) for each in problems)
    kept = "No newer resources go out until then" if is_selectors else "What was decided before stays until then"
    said = error.message.rstrip(".")
    return Refusal(INVALID_SELECTORS if is_selectors else INVALID, f"{said}. To mend it, {way}. {kept}.")


def told_refusal(placement: Document) -> Refusal | None:
    """The refusal that a placement tells of, as it stands now; None where it tells of none."""
    condition = get_condition(conditions_of(placement), condition_type(placement))
    if condition is None or condition.get("reason") not in (INVALID, INVALID_SELECTORS):
        return None
    if condition.get("observedGeneration") != section(placement, "metadata").get("generation", 0):
        return None
    return Refusal(str(condition["reason"]), str(condition.get("message") or ""))


def with_refusal(placement: Document, refusal: Refusal, now: str) -> Document:
    """A placement that tells of its refusal; the same document when it does already.

    What was told of its clusters stays: they have what they have.
    """
    if told_refusal(placement) == refusal:
        return placement
    kind, conditions = condition_type(placement), conditions_of(placement)
    generation = section(placement, "metadata").get("generation", 0)
    said = (FALSE, refusal.reason, refusal.message)
    condition = observed_condition(conditions, kind, said, generation=generation, now=now)
    others = [each for each in conditions if each.get("type") != kind]
    return {**placement, "status": {**section(placement, "status"), "conditions": [condition, *others]}}


def with_refusal_kept(status: Document, placement: Document) -> Document:
    """A status renewed, with what the placement tells of its refusal; the same where it tells of none."""
    if told_refusal(placement) is None:
        return status
    kind = condition_type(placement)
    kept = get_condition(conditions_of(placement), kind)
    conditions = conditions_of({"status": status})
    return {**status, "conditions": [kept if each.get("type") == kind else each for each in conditions]}
