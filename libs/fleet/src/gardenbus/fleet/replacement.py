"""Replacement of bindings whose clusters no longer match what a policy requires during execution.

An opt-in of the policy (`requiredDuringSchedulingRequiredDuringExecution`). A replacement is chosen at once, beyond the
wanted number. The replaced binding stays until the replacement is Bound and available, or for good if there is none.
Where the rollout may not surge, a replacement cannot be Bound before there is room: then being chosen suffices.
"""

from collections.abc import Sequence

import msgspec

from gardenbus.common.api.fleet.placement_parts import BOUND
from gardenbus.common.api.fleet.placements import Placement
from gardenbus.fleet.availability import BindingReadiness, readiness
from gardenbus.fleet.binding_classes import BindingRecord
from gardenbus.fleet.budgets import scaled
from gardenbus.fleet.cluster_affinity import matching
from gardenbus.fleet.downscaling import worst_first
from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.requirements import Requirements

_NOT_READY = BindingReadiness(is_ready=False)


class ReplacementPlan(msgspec.Struct, frozen=True):
    """Bindings whose clusters stopped matching: those that go and those that stay."""

    removed: list[BindingRecord]
    """Removed now."""

    kept: list[BindingRecord]
    """Kept for the time being."""

    recheck_after: float | None = None
    """Seconds until a replacement is assumed available."""


def split_by_match(
    records: Sequence[BindingRecord], policy: Requirements, fleet: Fleet
) -> tuple[list[BindingRecord], list[BindingRecord]]:
    """Split into records whose clusters still match, and those whose do not."""
    if not policy.always or not records:
        return list(records), []
    matched = matching(policy.always, fleet, fleet.mask(record.cluster for record in records))
    staying = [record for record in records if matched >> fleet.places[record.cluster] & 1]
    leaving = [record for record in records if not matched >> fleet.places[record.cluster] & 1]
    return staying, leaving


def plan_replacement(
    leaving: Sequence[BindingRecord], present: Sequence[BindingRecord], *, wanted: int, placement: Placement, now: float
) -> ReplacementPlan:
    """Plan which leaving bindings go, where `present` are all others of the policy."""
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
    return ReplacementPlan(removed, kept, min(waits, default=None) if kept else None)


def _readiness(record: BindingRecord, period: float, now: float) -> BindingReadiness:
    if record.binding is None or record.state != BOUND or record.binding.spec.state != BOUND:
        return _NOT_READY
    return readiness(record.binding, unavailable_period_seconds=period, now=now)
