"""Operations that annotations of a Shoot request: which there are, and which of them are requested.

Source: `availableShootOperations` in Gardener's `pkg/api/core/validation/shoot.go`.
"""

from collections.abc import Iterator, Mapping, Sequence

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.hibernation import is_hibernation_enabled
from gardenbus.common.api.garden.rotations import collision, hibernation_problem, is_rotation, rotation_problem
from gardenbus.common.errors import FieldProblem

FORCE_DELETION = "confirmation.gardener.cloud/force-deletion"
OPERATION = "gardener.cloud/operation"
MAINTENANCE_OPERATION = "maintenance.gardener.cloud/operation"
MAINTAIN, RECONCILE, RETRY = "maintain", "reconcile", "retry"
SEPARATOR = ";"
_ALONE = (MAINTAIN, RETRY, "force-in-place-update")
OPERATIONS = {
    OPERATION: (MAINTAIN, RECONCILE, RETRY, "force-in-place-update"),
    MAINTENANCE_OPERATION: (RECONCILE,),
}
"""Annotations with operations, and those that there are besides rotations and rollouts."""

KEPT_OPERATIONS = ("rotate-", "rollout-")
"""Prefixes of operations that the gardenlet removes itself when they are done."""


def is_force_deletion(annotations: Mapping[str, object]) -> bool:
    """True if a Shoot's annotations confirm that its deletion leaves out what fails."""
    return str(annotations.get(FORCE_DELETION)).lower() in ("true", "1", "t")


def requested_operations(document: Document, annotation: str = OPERATION) -> Sequence[str]:
    """The operations that an annotation of an object requests, in its order."""
    return [each for each in _separated(section(document, "metadata", "annotations").get(annotation)) if each]


def operation_problems(shoot: Document, old: Document | None) -> Iterator[FieldProblem]:
    """Problems of the operations that annotations of a shoot request, and did not before.

    What an older version took is no problem, also where a maintenance moves it from one annotation to the other.
    """
    sleeps, slept = (is_hibernation_enabled(section(each or {}, "spec")) for each in (shoot, old))
    falls_asleep = sleeps and not slept
    if not falls_asleep and section(shoot, "metadata", "annotations").keys().isdisjoint(OPERATIONS):
        return
    requested = {name: requested_operations(shoot, name) for name in OPERATIONS}
    earlier = {operation for name in OPERATIONS for operation in requested_operations(old or {}, name)}
    for name, operations in requested.items():
        is_for_later = name == MAINTENANCE_OPERATION and bool(section(shoot, "metadata").get("deletionTimestamp"))
        for operation in dict.fromkeys(operations):
            if operation in earlier:
                continue
            problem = _problem(operation, name, requested)
            if not problem and not is_for_later:
                problem = rotation_problem(operation, shoot)
            if problem:
                yield FieldProblem(f"metadata.annotations[{name}]", f"{operation[:80]!r} {problem}")
    if falls_asleep and (problem := hibernation_problem(shoot, requested[MAINTENANCE_OPERATION])):
        yield FieldProblem("spec.hibernation.enabled", problem)


def _problem(operation: str, name: str, requested: Mapping[str, Sequence[str]]) -> str:
    """Return what is wrong with an operation in an annotation, beside the others; "" when nothing is."""
    if operation not in OPERATIONS[name] and not is_rotation(operation):
        return f"is no operation: there are {', '.join(OPERATIONS[name])}, rotate-…"
    beside = set(requested[name]) - {operation}
    if operation in _ALONE and beside:
        return f"is requested alone, not beside {min(beside)}"
    elsewhere = {each for other in requested if other != name for each in requested[other]}
    if operation in elsewhere:
        return "is in both annotations: request it once"
    other = collision(operation, beside, elsewhere)
    return f"does not go with {other}: leave one of them out" if other else ""


def _separated(value: object) -> Sequence[str]:
    return [operation.strip() for operation in str(value).split(SEPARATOR)] if value else []
