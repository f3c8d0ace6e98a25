"""Conditions of a ManagedResource: ResourcesApplied, ResourcesHealthy and ResourcesProgressing, in Gardener's words.

Source: Gardener's `pkg/resourcemanager/controller/{managedresource,health}`.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gardenbus.common.api.conditions import (
    FALSE,
    PROGRESSING,
    TRUE,
    UNKNOWN,
    build_condition,
    conditions_of,
    get_condition,
    get_or_init,
    merge_conditions,
)
from gardenbus.common.api.document import Document
from gardenbus.gardenlet.domain.managed_resources.references import ResourceReference

APPLIED = "ResourcesApplied"
HEALTHY = "ResourcesHealthy"
PROGRESS = "ResourcesProgressing"

APPLY_FAILED = "ApplyFailed"
DELETION_FAILED = "DeletionFailed"
DELETION_PENDING = "DeletionPending"
_BEING_DELETED = "The resources are currently being deleted."
_IGNORED = ("ManagedResourceIgnored", "ManagedResource is marked to be ignored.")


class Finding(NamedTuple):
    """A condition as it was found: type, status, reason and message."""

    type: str
    status: str
    reason: str
    message: str


def with_findings(managed_resource: Document, findings: Sequence[Finding], now: str) -> list[Document]:
    """Conditions of a ManagedResource with what was found."""
    before = conditions_of(managed_resource)
    built = [
        build_condition(
            get_or_init(before, each.type, now), now=now, status=each.status, reason=each.reason, message=each.message
        )[0]
        for each in findings
    ]
    return merge_conditions(before, *built)


def ignored() -> list[Finding]:
    """Findings of a ManagedResource that is ignored."""
    return [Finding(APPLIED, TRUE, *_IGNORED), Finding(HEALTHY, TRUE, *_IGNORED), Finding(PROGRESS, FALSE, *_IGNORED)]


def begun(managed_resource: Document) -> list[Finding]:
    """Findings before another set of objects is applied: checks are due, and a failure is reported until it is over."""
    before = get_condition(conditions_of(managed_resource), APPLIED) or {}
    failed = str(before.get("reason")) in (APPLY_FAILED, DELETION_FAILED, DELETION_PENDING)
    reason, message = (
        (str(before.get("reason")), str(before.get("message") or ""))
        if failed
        else ("ApplyProgressing", "The resources are currently being reconciled.")
    )
    pending = "not yet been executed for the current set of resources."
    return [
        Finding(HEALTHY, UNKNOWN, "ChecksPending", f"The health checks have {pending}"),
        Finding(PROGRESS, UNKNOWN, "ChecksPending", f"Checks have {pending}"),
        Finding(APPLIED, PROGRESSING, reason, message),
    ]


def deletion_begun(managed_resource: Document) -> list[Finding]:
    """Findings before the objects of a ManagedResource are deleted."""
    before = get_condition(conditions_of(managed_resource), APPLIED) or {}
    has_begun = str(before.get("reason")) in (DELETION_FAILED, DELETION_PENDING)
    message = str(before.get("message") or "") if has_begun else _BEING_DELETED
    return [*deletion_checks(), Finding(APPLIED, PROGRESSING, DELETION_PENDING, message)]


def deletion_checks() -> list[Finding]:
    """Findings of health and progress while a ManagedResource is being deleted."""
    return [
        Finding(HEALTHY, FALSE, DELETION_PENDING, _BEING_DELETED),
        Finding(PROGRESS, TRUE, DELETION_PENDING, _BEING_DELETED),
    ]


def applied() -> Finding:
    """Finding when all objects are applied."""
    return Finding(APPLIED, TRUE, "ApplySucceeded", "All resources are applied.")


def apply_failed(message: str) -> Finding:
    """Finding when an object could not be applied."""
    return Finding(APPLIED, FALSE, APPLY_FAILED, message)


def secret_unreadable(message: str) -> Finding:
    """Finding when a Secret could not be read."""
    return Finding(APPLIED, FALSE, "CannotReadSecret", message)


def decoding_failed(message: str) -> Finding:
    """Finding when a document could not be decoded; the others are applied."""
    return Finding(APPLIED, FALSE, "DecodingFailed", message)


def release_failed(message: str) -> Finding:
    """Finding when the management of objects could not be ended."""
    return Finding(APPLIED, FALSE, "ReleaseOfOrphanedResourcesFailed", message)


def removal_pending(problems: Sequence[str]) -> Finding:
    """Finding while objects that are in no Secret any more are still there."""
    return Finding(APPLIED, PROGRESSING, DELETION_PENDING, removal_message(problems))


def removal_message(problems: Sequence[str]) -> str:
    """Message of what could not be removed."""
    return f"Could not clean all old resources: {_counted(problems)}"


def release_message(problems: Sequence[str]) -> str:
    """Message when the management of objects could not be ended."""
    return f"Could not release all orphaned resources: {_counted(problems)}"


def _counted(problems: Sequence[str]) -> str:
    if len(problems) == 1:
        return f"1 error occurred: {problems[0]}"
    return f"{len(problems)} errors occurred: [{', '.join(problems)}]"


def missing(reference: ResourceReference, detail: str = "") -> Finding:
    """Finding when an object is not there."""
    message = f'Required {reference.kind} "{reference.name}" in namespace "{reference.namespace}" is missing'
    return Finding(HEALTHY, FALSE, f"{reference.kind}Missing", f"{message}: {detail}" if detail else message)


def unhealthy(reference: ResourceReference, problem: str) -> Finding:
    """Finding when an object is not healthy."""
    message = f'{reference.kind} "{reference.namespace}/{reference.name}" is unhealthy: {problem}'
    return Finding(HEALTHY, FALSE, f"{reference.kind}Unhealthy", message)


def healthy() -> Finding:
    """Finding when all objects are healthy."""
    return Finding(HEALTHY, TRUE, "ResourcesHealthy", "All resources are healthy.")


def progressing(reference: ResourceReference, problem: str) -> Finding:
    """Finding when an object is being rolled out."""
    message = f'{reference.kind} "{reference.namespace}/{reference.name}" is progressing: {problem}'
    return Finding(PROGRESS, TRUE, f"{reference.kind}Progressing", message)


def rolled_out() -> Finding:
    """Finding when all objects are rolled out."""
    return Finding(PROGRESS, FALSE, "ResourcesRolledOut", "All resources have been fully rolled out.")


def are_checked(conditions: Iterable[Document]) -> bool:
    """True if health and progress of the objects are to be checked: all of them are applied."""
    return (get_condition(conditions, APPLIED) or {}).get("status") not in (None, PROGRESSING, FALSE)
