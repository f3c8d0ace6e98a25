"""Label `shoot.gardener.cloud/status`: a Shoot's health in one word.

Source: Gardener's pkg/utils/gardener/shoot_status.go.
"""

from typing import Any

from gardenbus.common.api.conditions import PROGRESSING, TRUE, UNKNOWN, conditions_of
from gardenbus.common.api.document import STATUS_LABEL, Document

HEALTHY = "healthy"
PROGRESSING_STATUS = "progressing"
UNKNOWN_STATUS = "unknown"
UNHEALTHY = "unhealthy"

WORST_FIRST = (UNHEALTHY, UNKNOWN_STATUS, PROGRESSING_STATUS, HEALTHY)
"""The order in which one bad sign outweighs the better ones."""

_OF_CONDITION = {TRUE: HEALTHY, PROGRESSING: PROGRESSING_STATUS, UNKNOWN: UNKNOWN_STATUS}


def shoot_status(shoot: Document) -> str:
    """Health of a Shoot: `healthy`, `progressing`, `unknown` or `unhealthy`.

    Without lastOperation it is healthy; during creation and deletion only lastErrors count; otherwise the worst of its
    conditions, and of its operation (running: no errors; ended: succeeded).
    """
    status: dict[str, Any] = shoot.get("status") or {}
    operation: dict[str, Any] | None = status.get("lastOperation")
    if not operation:
        return HEALTHY
    kind, state = operation.get("type"), operation.get("state")
    without_errors = HEALTHY if not status.get("lastErrors") else UNHEALTHY
    if kind == "Delete" or (kind == "Create" and state != "Succeeded"):
        return without_errors
    of_operation = without_errors if state == "Processing" else (HEALTHY if state == "Succeeded" else UNHEALTHY)
    signs = {_OF_CONDITION.get(str(condition.get("status")), UNHEALTHY) for condition in conditions_of(shoot)}
    return next(sign for sign in WORST_FIRST if sign in signs | {of_operation, HEALTHY})


def with_status_label(shoot: Document) -> Document:
    """The Shoot with its label up to date; the same object when it is already."""
    metadata: dict[str, Any] = shoot.get("metadata") or {}
    labels: dict[str, Any] = metadata.get("labels") or {}
    label = shoot_status(shoot)
    if labels.get(STATUS_LABEL) == label:
        return shoot
    return {**shoot, "metadata": {**metadata, "labels": {**labels, STATUS_LABEL: label}}}
