"""Selectors of a placement that select nothing: a misspelt name would look like success.

The condition `<kind>ResourcesFound` is in the status as long as there are such selectors, and only then.
"""

from collections.abc import Sequence

from gardenbus.common.api.conditions import FALSE, conditions_of, get_condition, observed_condition
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.placements import Placement, ResourceSelector
from gardenbus.placement.domain.resource_selectors import matches

CONDITION = "ResourcesFound"
NOT_FOUND = "ResourceNotFound"

MOST_NAMED = 10
"""Selectors that the message names at most."""


def not_found_message(placement: Placement, resources: Sequence[Document]) -> str:
    """Name the selectors that match none of the selected resources; "" where each matches some."""
    missing = [
        f"spec.resourceSelectors[{index}]: {_described(placement, selector)}"
        for index, selector in enumerate(placement.spec.resource_selectors)
        if not any(matches(selector, resource) for resource in resources)
    ]
    if not missing:
        return ""
    more = f"; and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
    return f"Nothing that can be placed is selected by {'; '.join(missing[:MOST_NAMED])}{more}."


def with_not_found(document: Document, placement: Placement, message: str, now: str) -> Document:
    """Return a placement with the condition in its status, or without it where the message is "".

    The same document where nothing changes.
    """
    kind, conditions = f"{placement.kind}{CONDITION}", conditions_of(document)
    others = [each for each in conditions if each.get("type") != kind]
    if message:
        outcome = (FALSE, NOT_FOUND, message)
        generation = placement.metadata.generation
        others.append(observed_condition(conditions, kind, outcome, generation=generation, now=now))
    if others == conditions:
        return document
    return {**document, "status": {**section(document, "status"), "conditions": others}}


def recorded_message(document: Document, placement: Placement) -> str:
    """Return the message of the condition in a placement's status; "" without one."""
    return str((_recorded(document, placement) or {}).get("message") or "")


def with_not_found_kept(status: Document, document: Document, placement: Placement) -> Document:
    """Return a renewed status with the placement's recorded condition, if it has one."""
    recorded = _recorded(document, placement)
    return status if recorded is None else {**status, "conditions": [*conditions_of({"status": status}), recorded]}


def _recorded(document: Document, placement: Placement) -> Document | None:
    return get_condition(conditions_of(document), f"{placement.kind}{CONDITION}")


def _described(placement: Placement, selector: ResourceSelector) -> str:
    kind = f"{selector.kind}.{selector.group}" if selector.group else selector.kind
    if selector.name:
        namespace = f"{placement.metadata.namespace}/" if placement.is_namespaced else ""
        return f"{kind} {namespace}{selector.name}"
    return f"{kind} by its labels" if selector.label_selector else f"any {kind}"
