"""Operations that annotations of a Shoot ask for: which there are.

Source: `availableShootOperations` in Gardener's `pkg/api/core/validation/shoot.go`.
"""

from collections.abc import Iterator

from gardenbus.common.api.document import Document
from gardenbus.common.errors import FieldProblem

OPERATIONS = {
    "gardener.cloud/operation": ("maintain", "reconcile", "retry", "force-in-place-update"),
    "maintenance.gardener.cloud/operation": ("reconcile",),
}
"""Annotations with operations, separated by semicolons, and those that there are besides rotations and rollouts."""

_PREFIXES = ("rotate-", "rollout-")


def operation_problems(annotations: Document, before: Document) -> Iterator[FieldProblem]:
    """Problems of the operations that annotations ask for, and did not before.

    What an older version took is no problem, also where a maintenance moves it from one annotation to the other.
    """
    earlier = {operation for name in OPERATIONS for operation in _operations(before, name)}
    for name, available in OPERATIONS.items():
        for operation in _operations(annotations, name):
            if operation not in earlier and operation not in available and not operation.startswith(_PREFIXES):
                others = ", ".join(available)
                yield FieldProblem(
                    f"metadata.annotations[{name}]", f"there is no operation {operation[:80]!r}: {others}, rotate-…"
                )


def _operations(annotations: Document, name: str) -> Iterator[str]:
    if value := annotations.get(name):
        yield from (operation.strip() for operation in str(value).split(";"))
