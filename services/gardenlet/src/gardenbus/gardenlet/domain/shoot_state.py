"""ShootState of a shoot: the data that a migration or restoration takes along.

A step may leave an identity or key with its result: a restoration needs exactly those. Saved twice it is the same text,
so that nothing is written when nothing differs.

The generation at which it was saved is in an annotation. A destination that was handed the shoot at generation G
restores only a state of G or later: an older one may still be in its view when the handover comes.
"""

from collections.abc import Mapping
from typing import Any, cast

from gardenbus.common.api.confirmation import CONFIRMATION
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.migration_feasibility import STATE_GENERATION, state_generation, state_owners
from gardenbus.gardenlet.domain.extension_objects.states import EXTENSIONS, RESOURCES
from gardenbus.gardenlet.domain.flows import CONTROL_PLANE, EXTENSION_STATES
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import ShootRecord

API_VERSION = "core.gardener.cloud/v1beta1"
RESOURCE_TYPE = "local.backend.gardenbus.io/step"

StepStates = Mapping[str, Document]
"""Lasting part of each step's result, by step."""

PASSING = frozenset({"operation", "at"})
"""Fields of a step's result that say when it took effect: they do not last."""


def lasting(resource: Mapping[str, Any]) -> Document:
    """Lasting part of a step's result."""
    return {name: value for name, value in sorted(resource.items()) if name not in PASSING}


def state_of(record: ShootRecord) -> dict[str, Document]:
    """Lasting part of a record."""
    found = {step: lasting(resource) for step, resource in sorted(record.resources.items()) if step != CONTROL_PLANE}
    return {step: data for step, data in found.items() if data}


def shoot_state(observed: ObservedShoot, state: StepStates, *, generation: int, is_deletable: bool = False) -> Document:
    """Build the manifest, owned by the shoot; `is_deletable` confirms its deletion together with the shoot."""
    annotations = {STATE_GENERATION: str(generation)}
    if is_deletable:
        annotations[CONFIRMATION] = "true"
    return {
        "apiVersion": API_VERSION,
        "kind": "ShootState",
        "metadata": {
            "namespace": observed.namespace,
            "name": observed.name,
            "annotations": annotations,
            "ownerReferences": [
                {"apiVersion": API_VERSION, "kind": "Shoot", "name": observed.name, "uid": observed.uid}
            ],
        },
        "spec": {
            "gardener": [
                {"name": step, "type": RESOURCE_TYPE, "data": dict(state[step])}
                for step in sorted(state)
                if step != EXTENSION_STATES
            ],
            **{field: entries for field, entries in state.get(EXTENSION_STATES, {}).items() if entries},
        },
    }


def state_in(document: Document | None, uid: str) -> dict[str, Document] | None:
    """State in a ShootState of the shoot with this uid; None without one, or of an earlier shoot."""
    if document is None:
        return None
    if uid not in state_owners(document):
        return None
    spec = section(document, "spec")
    entries = cast("list[Document]", spec.get("gardener") or [])
    state = {str(entry.get("name")): section(entry, "data") for entry in entries if entry.get("type") == RESOURCE_TYPE}
    if spec.get(EXTENSIONS):
        state[EXTENSION_STATES] = {EXTENSIONS: spec[EXTENSIONS], RESOURCES: spec.get(RESOURCES) or []}
    return state


def generation_of(document: Document | None) -> int:
    """Generation at which a ShootState was saved; 0 if unknown."""
    return state_generation(document or {})


def is_stored(document: Document | None, observed: ObservedShoot, state: StepStates, *, generation: int) -> bool:
    """True if the garden has this very state, saved at this generation or later."""
    return state_in(document, observed.uid) == state and generation_of(document) >= generation


def restorable(document: Document | None, observed: ObservedShoot, *, generation: int) -> dict[str, Document] | None:
    """State saved at `generation` or later; None while there is none."""
    return state_in(document, observed.uid) if generation_of(document) >= generation else None
