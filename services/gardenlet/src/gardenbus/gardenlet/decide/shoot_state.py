"""What a shoot takes along to another seed, and the ShootState that carries it. Pure.

A step may leave something lasting with what it made (identities, keys): that is what a restoration needs, and all that
is saved. Saved twice it is the same text, so that nothing is written when nothing differs.

The generation at which it was saved travels in an annotation. A destination that was handed the shoot at generation G
restores only what was saved at G or later: an older state may still be in its view when the handover comes.
"""

from collections.abc import Mapping
from typing import Any, cast

from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.migrating import STATE_GENERATION, state_generation, state_owners
from gardenbus.gardenlet.decide.flows import CONTROL_PLANE
from gardenbus.gardenlet.decide.operations import ShootTold
from gardenbus.gardenlet.decide.record import ShootRecord

API_VERSION = "core.gardener.cloud/v1beta1"
CONFIRMATION_ANNOTATION = "confirmation.gardener.cloud/deletion"
RESOURCE_TYPE = "local.backend.gardenbus.io/step"

State = Mapping[str, Document]
"""By step: what of its result must survive."""

_PASSING = frozenset({"operation", "at"})


def lasting(resource: Mapping[str, Any]) -> Document:
    """What of a step's result must survive a move."""
    return {name: value for name, value in sorted(resource.items()) if name not in _PASSING}


def state_of(record: ShootRecord) -> dict[str, Document]:
    """What is kept of a shoot that must survive a move."""
    found = {step: lasting(resource) for step, resource in sorted(record.resources.items()) if step != CONTROL_PLANE}
    return {step: data for step, data in found.items() if data}


def shoot_state(told: ShootTold, state: State, *, generation: int, is_deletable: bool = False) -> Document:
    """The manifest. It belongs to the very shoot; `is_deletable`: the shoot goes for good, and takes it along."""
    annotations = {STATE_GENERATION: str(generation)}
    if is_deletable:
        annotations[CONFIRMATION_ANNOTATION] = "true"
    return {
        "apiVersion": API_VERSION,
        "kind": "ShootState",
        "metadata": {
            "namespace": told.namespace,
            "name": told.name,
            "annotations": annotations,
            "ownerReferences": [{"apiVersion": API_VERSION, "kind": "Shoot", "name": told.name, "uid": told.uid}],
        },
        "spec": {
            "gardener": [{"name": step, "type": RESOURCE_TYPE, "data": dict(state[step])} for step in sorted(state)]
        },
    }


def state_in(document: Document | None, uid: str) -> dict[str, Document] | None:
    """What a ShootState holds of the shoot with this uid; None when there is none, or it is of an earlier shoot."""
    if document is None:
        return None
    if uid not in state_owners(document):
        return None
    entries = cast("list[Document]", section(document, "spec").get("gardener") or [])
    return {str(entry.get("name")): section(entry, "data") for entry in entries if entry.get("type") == RESOURCE_TYPE}


def generation_of(document: Document | None) -> int:
    """The generation at which a ShootState was saved; 0 when it does not say, or there is none."""
    return state_generation(document or {})


def is_deletable(document: Document | None) -> bool:
    """Whether it may be removed with its shoot."""
    return section(document or {}, "metadata", "annotations").get(CONFIRMATION_ANNOTATION) == "true"


def is_stored(document: Document | None, told: ShootTold, state: State, *, generation: int) -> bool:
    """Whether the garden holds this very state, saved at this generation or later."""
    return state_in(document, told.uid) == state and generation_of(document) >= generation


def restorable(document: Document | None, told: ShootTold, *, generation: int) -> dict[str, Document] | None:
    """What a restoration may start from: the state saved at `generation` or later; None while there is none."""
    return state_in(document, told.uid) if generation_of(document) >= generation else None
