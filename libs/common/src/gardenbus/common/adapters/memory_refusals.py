"""Why the store in memory does not take a write: what functions/refusals.lua checks before it changes anything."""

from collections.abc import Sequence

from gardenbus.common.adapters.memory_state import MemoryState, Row, member_of, origin_of_grave
from gardenbus.common.adapters.store_answers import (
    cannot_be_marked,
    claim_is_taken,
    exists_already,
    has_moved_on,
    is_gone,
    is_guarded,
    is_outdated,
    seed_refuses,
)
from gardenbus.common.ports.store import BindOutcome, Guard, RequestOrigin, Superseded
from gardenbus.common.resources.changes import Change
from gardenbus.common.resources.derived import followed_shoot
from gardenbus.common.resources.keys import GARDEN_NAMESPACE, ObjectKey


def check_write(  # noqa: PLR0913  all that a write depends on
    state: MemoryState,
    key: ObjectKey,
    base: int,
    *,
    origin: RequestOrigin | None,
    change: Change | None,
    guards: Sequence[Guard],
    gate: int | None = None,
) -> Superseded | None:
    """Raise what speaks against a write based on version `base` (0: a creation), or say what superseded it.

    `change` is None when nothing of the object would differ.
    """
    row = state.rows.get(key)
    taken = row.origin if row else origin_of_grave(state.graves.get(key))
    if origin and taken and origin <= taken:
        return Superseded(taken)
    if base == 0 and row:
        raise exists_already(key)
    if base > 0 and not row:
        raise is_gone(key)
    if row and base != row.stored.version:
        raise has_moved_on(key, row.stored.version)
    _check_guards(state, guards)
    if change is not None:
        _check_claims(state, key, change)
        _check_seeds(state, key, row, change, gate)
        _check_mark(state, key, row, change)
    return None


def refusal_of(state: MemoryState, seed: str, gate: int | None, shoot: ObjectKey) -> BindOutcome | None:
    """Why a seed does not take one more shoot; None when it does."""
    row = state.rows.get(ObjectKey("seed", "", seed))
    if row is None or row.stored.is_deleting or row.derived.mark:
        return "seed-gone"
    if _is_hosted_by(state, seed, shoot):
        return "circular"
    if gate is not None and row.stored.gate != gate:
        return "seed-changed"
    used, capacity = state.usage[seed], row.derived.capacity
    return "full" if capacity and len(used) >= int(capacity) and shoot not in used else None


def _report_refusal(state: MemoryState, seed: str, shoot: ObjectKey) -> BindOutcome | None:
    """Why a shoot may not be on a seed that it was not sent to; None when it may."""
    row = state.rows.get(ObjectKey("seed", "", seed))
    if row is not None and row.derived.mark:
        return "seed-gone"
    return "circular" if _is_hosted_by(state, seed, shoot) else None


def _is_hosted_by(state: MemoryState, seed: str, shoot: ObjectKey) -> bool:
    """Whether a seed is hosted by a shoot, however indirectly. Only shoots in the garden namespace can be seeds."""
    return shoot.namespace == GARDEN_NAMESPACE and shoot in state.carriers([seed])


def _check_guards(state: MemoryState, guards: Sequence[Guard]) -> None:
    for guard in guards:
        if guard.kind == "version":
            row = state.rows.get(ObjectKey.from_stored(guard.name))
            version = row.stored.version if row else 0
            if version != guard.version:
                raise is_outdated(guard.message, version)
            continue
        holders = state.usage[guard.name] if guard.kind == "usage" else state.references[guard.name]
        if holders:
            example = min(holders)
            text = member_of(example) if guard.kind == "usage" else str(example)
            raise is_guarded(guard.message, len(holders), text)


def _check_claims(state: MemoryState, key: ObjectKey, change: Change) -> None:
    for claim in change.derived.claims:
        if state.claims.get(claim, key) != key:
            raise claim_is_taken(claim, state.claims[claim])


def _check_seeds(state: MemoryState, key: ObjectKey, row: Row | None, change: Change, gate: int | None) -> None:
    """Check the seeds that a shoot comes to name, and those that the shoot of a ManagedSeed is on."""
    wanted, reported = change.parts.seed_name, change.parts.status_seed_name
    refusal: BindOutcome | None = None
    if wanted and not (row and wanted == row.stored.parts.seed_name):
        refusal = refusal_of(state, wanted, gate, key)
    if not refusal and reported and not (row and reported in row.seeds):
        refusal = _report_refusal(state, reported, key)
    if key.kind == "managedseed" and key.namespace == GARDEN_NAMESPACE:
        shoot = followed_shoot(key, change.derived)
        is_new = not (row and shoot == followed_shoot(key, row.derived))
        if is_new and ObjectKey("seed", "", key.name) in state.carriers(state.seeds_at(shoot)):
            refusal = "circular"
    if refusal:
        raise seed_refuses(key, refusal)


def _check_mark(state: MemoryState, key: ObjectKey, row: Row | None, change: Change) -> None:
    """A seed is marked for removal only while it is empty."""
    shoots = state.usage[key.name] if change.derived.mark and not (row and row.derived.mark) else None
    if shoots:
        raise cannot_be_marked(key, len(shoots), member_of(min(shoots)))
