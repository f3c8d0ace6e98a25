"""The annotation `gardener.cloud/operation` and what else makes a generation grow without a new spec. Pure.

Source: mustIncreaseGeneration in Gardener's registry strategies of Shoot, Seed and ManagedSeed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import with_metadata, without
from gardenbus.common.api.garden.hibernation import is_hibernation_enabled
from gardenbus.common.api.garden.shoot_operations import (
    FORCE_DELETION,
    KEPT_OPERATIONS,
    OPERATION,
    RECONCILE,
    RETRY,
    SEPARATOR,
    requested_operations,
)


class OperationResult(NamedTuple):
    """The document without the operations that were accepted, and whether the generation increases."""

    document: Document
    bumps_generation: bool


def accept_operation(old: Document | None, document: Document) -> OperationResult:
    """Accept the requested operations.

    A Shoot may have several. Its `reconcile` counts unless it has failed, its `retry` only then; both are removed, and
    so is what is requested twice. Rotations and rollouts count once and stay. Nothing counts before there is a
    lastOperation. Seeds and ManagedSeeds know `reconcile` alone.
    """
    if old is None:
        return OperationResult(document, bumps_generation=False)
    annotations = _annotations(document)
    if document["kind"] in ("Seed", "ManagedSeed"):
        is_accepted = annotations.get(OPERATION) == RECONCILE
        return OperationResult(without_operation(document) if is_accepted else document, bumps_generation=is_accepted)
    if document["kind"] != "Shoot":
        return OperationResult(document, bumps_generation=False)
    forced = _is_true(annotations.get(FORCE_DELETION)) and not _is_true(_annotations(old).get(FORCE_DELETION))
    last_operation = section(document, "status", "lastOperation")
    if not last_operation:
        return OperationResult(document, bumps_generation=forced)
    requested = requested_operations(document)
    accepted = RETRY if last_operation.get("state") == "Failed" else RECONCILE
    left = [each for each in dict.fromkeys(requested) if each != accepted]
    is_new = any(each.startswith(KEPT_OPERATIONS) and each not in requested_operations(old) for each in left)
    return OperationResult(
        document if left == requested else _with_operations(document, left),
        bumps_generation=forced or accepted in requested or is_new,
    )


def is_rollout_confined(old: Document | None, document: Document) -> bool:
    """True when the changes of a shoot's spec wait for its maintenance window, and do not raise the generation.

    Source: mustIncreaseGenerationForSpecChanges in Gardener's registry strategy of Shoot: hibernation is switched at
    once. A shoot that no gardenlet runs yet waits for nothing.
    """
    if old is None or document["kind"] != "Shoot" or not section(old, "status").get("seedName"):
        return False
    spec, before = section(document, "spec"), section(old, "spec")
    is_confined = section(spec, "maintenance").get("confineSpecUpdateRollout") is True
    return is_confined and is_hibernation_enabled(spec) == is_hibernation_enabled(before)


def _annotations(document: Document) -> dict[str, Any]:
    return section(document, "metadata", "annotations")


def _is_true(value: object) -> bool:
    return str(value).lower() == "true"


def _with_operations(document: Document, operations: Sequence[str]) -> Document:
    if not operations:
        return without_operation(document)
    annotations = {**_annotations(document), OPERATION: SEPARATOR.join(operations)}
    return with_metadata(document, "annotations", annotations)


def without_operation(document: Document) -> Document:
    """The document without the annotation that requests an operation."""
    return with_metadata(document, "annotations", without(_annotations(document), OPERATION))
