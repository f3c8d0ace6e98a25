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
    """Problems of the operations that annotations ask for, and did not before."""
    for name, available in OPERATIONS.items():
        value = annotations.get(name)
        for operation in str(value).split(";") if value and value != before.get(name) else ():
            if operation.strip() not in available and not operation.strip().startswith(_PREFIXES):
                others = ", ".join(available)
                yield FieldProblem(
                    f"metadata.annotations[{name}]", f"there is no operation {operation[:80]!r}: {others}, rotate-…"
                )
