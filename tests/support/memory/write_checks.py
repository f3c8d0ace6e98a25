"""Checks of a write to the memory store: what functions/write_checks.lua checks before it changes anything."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from gardenbus.common.adapters.store_responses import (
    NAMED_MEMBERS,
    claim_conflict,
    exists_already,
    has_moved_on,
    is_counted,
    is_emptiness_unknown,
    is_gone,
    is_guarded,
    is_held,
    is_outdated,
    runs_unknown,
    seed_has_shoots,
    seed_rejection,
)
from gardenbus.common.api.changes import ObjectChange
from gardenbus.common.api.garden.resource_amounts import amounts_of
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.ports.store import BindOutcome, RequestOrigin, Superseded, WritePrecondition
from tests.support.memory.followed_shoots import followed_shoot
from tests.support.memory.quotas import check_demands, check_quotas
from tests.support.memory.recovery import (
    ordered_after,
    recovery_rejection,
    requested_on,
    unknown_places,
    unknown_rejection,
)
from tests.support.memory.state import MemoryState, ObjectRow, member_of, origin_of_tombstone
from tests.support.memory.stored_amounts import check_stored


def check_write(
    state: MemoryState,
    key: ObjectKey,
    base: int,
    *,
    origin: RequestOrigin | None,
    change: ObjectChange | None,
    preconditions: Sequence[WritePrecondition],
    scheduling_generation: int | None = None,
    is_adoption: bool = False,
    private: Mapping[str, bytes] = {},
) -> Superseded | None:
    """Raise the error of a write based on version `base` (0: a creation), or return what superseded it.

    `change` is None when nothing of the object would differ, `private` what is stored beside it.
    """
    row = state.rows.get(key)
    applied = row.origin if row else origin_of_tombstone(state.tombstones.get(key))
    if origin and applied and origin <= applied:
        return Superseded(applied)
    if base == 0 and row:
        raise exists_already(key)
    if base == 0 and key.kind == "shoot" and not is_adoption:
        for seed, lost in state.unknown:
            if lost == key:
                raise runs_unknown(key, seed)
    if base > 0 and not row:
        raise is_gone(key)
    if row and base != row.stored.version:
        raise has_moved_on(key, row.stored.version)
    _check_guards(state, key, row, change, preconditions, private)
    if change is not None:
        _check_claims(state, key, change)
        placed = PlacedShoot(row.stored.uid, row.after) if row else PlacedShoot("", ordered_after(state, origin))
        _check_seeds(state, key, row, change, scheduling_generation, None if is_adoption else placed)
        _check_removal(state, key, row, change)
    return None


class PlacedShoot(NamedTuple):
    """What is stored of a shoot that is placed: its uid, and the recovery since which it was ordered."""

    uid: str
    after: str


def seed_rejection_reason(
    state: MemoryState,
    seed: str,
    scheduling_generation: int | None,
    shoot: ObjectKey,
    placed: PlacedShoot | None,
    requested: tuple[str, ...],
) -> BindOutcome | Literal["short"] | None:
    """Reason for which a seed accepts no more shoots; None when it does. `placed` None: what is adopted."""
    row = state.rows.get(ObjectKey("seed", "", seed))
    if row is None or row.stored.is_deleting or row.index_keys.removal_owner:
        return "seed-gone"
    if _is_hosted_by(state, seed, shoot):
        return "circular"
    if placed:
        rejection, is_here = unknown_rejection(state, shoot, placed.uid, seed)
        if rejection or is_here:
            return rejection
        if rejection := recovery_rejection(state, placed.after, seed):
            return rejection
    if scheduling_generation is not None and row.stored.scheduling_generation != scheduling_generation:
        return "seed-changed"
    used, capacity = state.usage[seed], row.index_keys.capacity
    taken = len(used) + unknown_places(state, seed) - (placed is None)
    if shoot in used:
        return None
    if capacity and taken >= int(capacity):
        return "full"
    return "short" if are_lacking(state, seed, shoot, amounts_of(requested), {}) else None


def are_lacking(
    state: MemoryState, seed: str, shoot: ObjectKey, requests: Mapping[str, int], counted: Mapping[str, int]
) -> bool:
    """True if a seed lacks what a shoot requests beyond what is counted of it there."""
    row = state.rows.get(ObjectKey("seed", "", seed))
    stated = amounts_of(row.index_keys.allocatable) if row else {}
    taken = requested_on(state, seed, but=shoot)
    return any(
        amount > counted.get(resource, 0)
        and taken[resource] + amount - counted.get(resource, 0) > stated.get(resource, 0)
        for resource, amount in requests.items()
    )


def _reported_seed_rejection(state: MemoryState, seed: str, shoot: ObjectKey) -> BindOutcome | None:
    """Reason for which a shoot may not be on a seed that it was not assigned to; None when it may."""
    row = state.rows.get(ObjectKey("seed", "", seed))
    if row is not None and row.index_keys.removal_owner:
        return "seed-gone"
    return "circular" if _is_hosted_by(state, seed, shoot) else None


def _is_hosted_by(state: MemoryState, seed: str, shoot: ObjectKey) -> bool:
    """True if a seed is hosted by a shoot, however indirectly. Only shoots in the garden namespace can be seeds."""
    return shoot.namespace == GARDEN_NAMESPACE and shoot in state.carriers([seed])


def _check_guards(
    state: MemoryState,
    key: ObjectKey,
    row: ObjectRow | None,
    change: ObjectChange | None,
    preconditions: Sequence[WritePrecondition],
    private: Mapping[str, bytes],
) -> None:
    for guard in preconditions:
        if guard.kind in ("quota", "demand", "count", "stored"):
            _check_counts(state, guard, key, row, change, private)
            continue
        if guard.kind == "version":
            other = state.rows.get(ObjectKey.from_stored(guard.name))
            version = other.stored.version if other else 0
            if version != guard.version:
                raise is_outdated(guard.message, version)
            continue
        if guard.kind == "claim":
            holder = state.claims.get(guard.name)
            if holder is not None and not state.rows[holder].stored.is_deleting:
                raise is_held(guard.message, holder)
            continue
        members = state.usage[guard.name] if guard.kind == "usage" else state.references[guard.name]
        if members:
            examples = sorted(members)[:NAMED_MEMBERS]
            texts = [member_of(example) if guard.kind == "usage" else str(example) for example in examples]
            raise is_guarded(guard.message, len(members), texts)
        if guard.kind == "usage" and (unknown := _unknown_shoots(state, guard.name)):
            texts = [f"unknown {member_of(key)}" for key in unknown[:NAMED_MEMBERS]]
            raise is_guarded(guard.message, len(unknown), texts)
        if guard.kind == "usage" and state.recovery is not None:
            raise is_emptiness_unknown(key)


def _check_counts(
    state: MemoryState,
    guard: WritePrecondition,
    key: ObjectKey,
    row: ObjectRow | None,
    change: ObjectChange | None,
    private: Mapping[str, bytes],
) -> None:
    if guard.kind == "stored":
        check_stored(state, guard, row, change, private)
    elif guard.kind == "demand":
        check_demands(state, guard, row, None if change is None else change.index_keys.demands)
    elif row is None and guard.kind == "count":
        found = sum(other.kind == guard.name for other in state.rows)
        if found >= guard.most:
            raise is_counted(guard.message, found)
    elif row is None:
        check_quotas(state, key, guard.message)


def _unknown_shoots(state: MemoryState, seed: str) -> list[ObjectKey]:
    """Shoots that run on a seed and are unknown: they count where a seed must be empty."""
    return sorted(
        key
        for (on, key), each in state.unknown.items()
        if on == seed and key.kind == "shoot" and not state.is_settled(key, seed, each.uid)
    )


def _check_claims(state: MemoryState, key: ObjectKey, change: ObjectChange) -> None:
    for claim in change.index_keys.claims:
        if state.claims.get(claim, key) != key:
            raise claim_conflict(claim, state.claims[claim])


def _check_seeds(
    state: MemoryState,
    key: ObjectKey,
    row: ObjectRow | None,
    change: ObjectChange,
    scheduling_generation: int | None,
    placed: PlacedShoot | None,
) -> None:
    """Check the seeds that a shoot comes to name, and those that the shoot of a ManagedSeed is on."""
    wanted, reported = change.parts.seed_name, change.parts.status_seed_name
    rejection: BindOutcome | Literal["short"] | None = None
    requested, counted = change.index_keys.requests, row.index_keys.requests if row else ()
    if wanted and not (row and wanted == row.stored.parts.seed_name):
        rejection = seed_rejection_reason(state, wanted, scheduling_generation, key, placed, requested)
    if not rejection and row and requested != counted:
        more, already = amounts_of(requested), amounts_of(counted)
        rejection = "short" if any(are_lacking(state, on, key, more, already) for on in row.seeds) else None
    if not rejection and reported and not (row and reported in row.seeds):
        rejection = _reported_seed_rejection(state, reported, key)
    if key.kind == "managedseed" and key.namespace == GARDEN_NAMESPACE:
        shoot = followed_shoot(key, change.index_keys)
        is_new = not (row and shoot == followed_shoot(key, row.index_keys))
        if is_new and ObjectKey("seed", "", key.name) in state.carriers(state.seeds_at(shoot)):
            rejection = "circular"
    if rejection:
        raise seed_rejection(key, rejection)


def _check_removal(state: MemoryState, key: ObjectKey, row: ObjectRow | None, change: ObjectChange) -> None:
    """A seed is marked for removal only while it is empty."""
    if not change.index_keys.removal_owner or (row and row.index_keys.removal_owner):
        return
    if shoots := state.usage[key.name]:
        raise seed_has_shoots(key, len(shoots), member_of(min(shoots)))
    if unknown := _unknown_shoots(state, key.name):
        raise seed_has_shoots(key, len(unknown), f"unknown {member_of(unknown[0])}")
    if state.recovery is not None:
        raise is_emptiness_unknown(key)
