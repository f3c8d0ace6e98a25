"""The annotation `gardener.cloud/operation` and what else makes a generation grow without a new spec. Pure.

Source: mustIncreaseGeneration in Gardener's registry strategies of Shoot, Seed and ManagedSeed.
"""

from typing import Any, NamedTuple

from gardenbus.common.resources.document import Document, section

OPERATION = "gardener.cloud/operation"
FORCE_DELETION = "confirmation.gardener.cloud/force-deletion"
RECONCILE = "reconcile"
RETRY = "retry"
KEPT_OPERATIONS = ("rotate-", "rollout-")
"""Operations that the gardenlet itself takes away when it has carried them out."""


class Operated(NamedTuple):
    """The document with its carried-out annotation taken off, and whether the generation grows."""

    document: Document
    bumps: bool


def operate(old: Document | None, document: Document) -> Operated:
    """Take up a requested operation.

    A Shoot's `reconcile` counts unless it has failed, its `retry` only then; both are taken off. Rotations and
    rollouts count once and stay. Nothing counts before there is a lastOperation. Seeds and ManagedSeeds know
    `reconcile` alone.
    """
    if old is None:
        return Operated(document, bumps=False)
    annotations = _annotations(document)
    operation = str(annotations.get(OPERATION) or "")
    if document["kind"] in ("Seed", "ManagedSeed"):
        return _taken_up(document) if operation == RECONCILE else Operated(document, bumps=False)
    if document["kind"] != "Shoot":
        return Operated(document, bumps=False)
    forced = _is_true(annotations.get(FORCE_DELETION)) and not _is_true(_annotations(old).get(FORCE_DELETION))
    last_operation = section(document, "status", "lastOperation")
    if not last_operation:
        return Operated(document, bumps=forced)
    if operation == (RETRY if last_operation.get("state") == "Failed" else RECONCILE):
        return _taken_up(document)
    new = operation.startswith(KEPT_OPERATIONS) and operation != _annotations(old).get(OPERATION)
    return Operated(document, bumps=forced or new)


def _annotations(document: Document) -> dict[str, Any]:
    return section(document, "metadata", "annotations")


def _is_true(value: object) -> bool:
    return str(value).lower() == "true"


def _taken_up(document: Document) -> Operated:
    metadata = dict(document["metadata"])
    left = {name: value for name, value in metadata.pop("annotations").items() if name != OPERATION}
    if left:
        metadata["annotations"] = left
    return Operated({**document, "metadata": metadata}, bumps=True)
