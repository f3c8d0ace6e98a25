"""Bindings whose clusters stopped to match what a policy requires always: they go once others serve in their place.

An opt-in of the policy (`requiredDuringSchedulingRequiredDuringExecution`). A replacement is chosen at once, beyond the
number wanted. What it replaces stays until it is Bound and available, and so does what nothing can replace. Where the
rollout may not surge, a replacement cannot be Bound before there is room: then being chosen suffices.
"""

from collections.abc import Sequence

import msgspec

from gardenbus.common.resources.placement_parts import BOUND
from gardenbus.common.resources.placements import Placement
from gardenbus.fleet.affinity import matching
from gardenbus.fleet.availability import Readiness, readiness
from gardenbus.fleet.budgets import scaled
from gardenbus.fleet.classifying import Record
from gardenbus.fleet.downscaling import worst_first
from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.requirements import Requirements

_NOT_READY = Readiness(is_ready=False)


class Replaced(msgspec.Struct, frozen=True):
    """What becomes of bindings whose clusters stopped to match."""

    removed: list[Record]
    """They go now."""

    kept: list[Record]
    """They stay for the time being."""

    recheck_after: float | None = None
    """When a replacement is taken to be available (seconds from now)."""


def split(records: Sequence[Record], policy: Requirements, fleet: Fleet) -> tuple[list[Record], list[Record]]:
    """Those whose clusters still match, and those whose do not."""
    if not policy.always or not records:
        return list(records), []
    matched = matching(policy.always, fleet, fleet.mask(record.cluster for record in records))
    staying = [record for record in records if matched >> fleet.places[record.cluster] & 1]
    leaving = [record for record in records if not matched >> fleet.places[record.cluster] & 1]
    return staying, leaving


def replaced(
    leaving: Sequence[Record], present: Sequence[Record], *, wanted: int, placement: Placement, now: float
) -> Replaced:
    """Which of the leaving ones go, where `present` are all others of the policy."""
    update = placement.spec.strategy.rolling_update
    period = float(update.unavailable_period_seconds)
    placed = [record for record in leaving if record.state == BOUND]
    if scaled(update.max_surge, wanted) == 0:
        serving, waits = len(present), []
    else:
        states = [_readiness(record, period, now) for record in present]
        serving = sum(state.is_ready for state in states)
        waits = [state.wait_seconds for state in states if state.wait_seconds is not None]
    ordered = sorted(worst_first(placed), key=lambda record: _readiness(record, period, now).is_ready)
    surplus = len(ordered) - max(0, wanted - serving)
    going, kept = ordered[: max(0, surplus)], ordered[max(0, surplus) :]
    removed = [record for record in leaving if record.state != BOUND] + going
    return Replaced(removed, kept, min(waits, default=None) if kept else None)


def _readiness(record: Record, period: float, now: float) -> Readiness:
    if record.binding is None or record.state != BOUND or record.binding.spec.state != BOUND:
        return _NOT_READY
    return readiness(record.binding, unavailable_period_seconds=period, now=now)
