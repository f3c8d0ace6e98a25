"""Operations that annotations of a Shoot ask for: which there are, and which of them are requested.

Source: `availableShootOperations` in Gardener's `pkg/api/core/validation/shoot.go`.
"""

from collections.abc import Iterator, Sequence

from gardenbus.common.api.document import Document, section
from gardenbus.common.errors import FieldProblem

FORCE_DELETION = "confirmation.gardener.cloud/force-deletion"
OPERATION = "gardener.cloud/operation"
MAINTENANCE_OPERATION = "maintenance.gardener.cloud/operation"
MAINTAIN, RECONCILE, RETRY = "maintain", "reconcile", "retry"
SEPARATOR = ";"
OPERATIONS = {
    OPERATION: (MAINTAIN, RECONCILE, RETRY, "force-in-place-update"),
    MAINTENANCE_OPERATION: (RECONCILE,),
}
"""Annotations with operations, and those that there are besides rotations and rollouts."""

KEPT_OPERATIONS = ("rotate-", "rollout-")
"""Prefixes of operations that the gardenlet removes itself when they are done."""


def requested_operations(document: Document, annotation: str = OPERATION) -> Sequence[str]:
    """The operations that an annotation of an object requests, in its order."""
    return [each for each in _separated(section(document, "metadata", "annotations").get(annotation)) if each]


def operation_problems(annotations: Document, before: Document) -> Iterator[FieldProblem]:
    """Problems of the operations that annotations ask for, and did not before.

    What an older version took is no problem, also where a maintenance moves it from one annotation to the other.
    """
    earlier = {operation for name in OPERATIONS for operation in _separated(before.get(name))}
    for name, available in OPERATIONS.items():
        for operation in _separated(annotations.get(name)):
            if operation not in earlier and operation not in available and not operation.startswith(KEPT_OPERATIONS):
                others = ", ".join(available)
                yield FieldProblem(
                    f"metadata.annotations[{name}]", f"there is no operation {operation[:80]!r}: {others}, rotate-…"
                )


def _separated(value: object) -> Sequence[str]:
    return [operation.strip() for operation in str(value).split(SEPARATOR)] if value else []
