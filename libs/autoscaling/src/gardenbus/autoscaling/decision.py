"""Scaling decision, shared by service, simulation and tests.

Order: proposal (`replica_calculator`), stabilization windows, policies, then minReplicas and maxReplicas. A set outside
its bounds is brought back to them at once. No decision goes below what holds the shoots that are on the set's seeds.

A change is recorded before it is made (`memory.rescale`) and counted once it is observed in the set, whoever made it: a
process that ends in between leaves nothing half done, and two that decide at once make one change.
"""

from datetime import datetime

import msgspec

from gardenbus.autoscaling.behavior import (
    LimitedReplicas,
    Windows,
    events_that_count,
    rate_limited,
    recommendations_since,
    stabilized,
)
from gardenbus.autoscaling.replica_calculator import ReplicaProposal, propose_replicas
from gardenbus.autoscaling.resource_metrics import Tolerance
from gardenbus.autoscaling.seed_set import SeedSetState
from gardenbus.common.api.conditions import FALSE, TRUE
from gardenbus.common.api.configuration.seed_autoscaler import Pace
from gardenbus.common.api.garden.seed_autoscalers import (
    Rescale,
    ScaleEvent,
    SeedAutoscalerSpec,
    SeedAutoscalerStatus,
)
from gardenbus.common.ports.clock import timestamp


class ConditionValue(msgspec.Struct, frozen=True):
    """Content of a condition."""

    status: str
    reason: str
    message: str


class ScalingDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Desired replicas, with the conditions and the status that follow.

    `rescale` is the change to make, None for none; `completed` an earlier one that is observed now. `able` is None when
    only the change itself shows. `recheck_at`: when the same set could get another decision, None for never.
    """

    desired: int
    proposal: ReplicaProposal
    memory: SeedAutoscalerStatus
    rescale: Rescale | None = None
    completed: Rescale | None = None
    able: ConditionValue | None = None
    active: ConditionValue
    limited: ConditionValue
    recheck_at: datetime | None = None


class _PacedReplicas(msgspec.Struct, frozen=True):
    """Replicas after windows and policies, the reason, and when another result is possible."""

    replicas: int
    reason: str
    limited: ConditionValue | None = None
    able: ConditionValue | None = None
    recheck_at: datetime | None = None


def decide(
    spec: SeedAutoscalerSpec,
    memory: SeedAutoscalerStatus,
    seeds: SeedSetState,
    now: datetime,
    pace: Pace = Pace(),  # noqa: B008  (frozen)
) -> ScalingDecision:
    """Decide the set's replicas; see the module. Pure: the same arguments give the same decision."""
    proposal = propose_replicas(spec, seeds, _tolerance(spec, pace))
    memory, completed = _observe_scale(spec, memory, seeds, now)
    recommended = min(max(proposal.replicas, spec.min_replicas), spec.max_replicas)
    windows = Windows.of(spec.behavior, pace.downscale_stabilization)
    past = recommendations_since(
        memory.recommendations,
        last=memory.recommended_replicas,
        recommended=recommended,
        current=seeds.ordered,
        now=now,
        windows=windows,
    )
    memory = msgspec.structs.replace(memory, recommended_replicas=recommended, recommendations=past)
    step = _outside_of_bounds(spec, proposal, seeds) or _inside_of_bounds(
        spec, proposal, seeds, stabilized(seeds.ordered, recommended, past, now=now, windows=windows), memory, now
    )
    rescale = None
    if step.replicas != seeds.ordered:
        rescale = Rescale(seeds.ordered, step.replicas, step.reason)
    return ScalingDecision(
        desired=step.replicas,
        proposal=proposal,
        memory=msgspec.structs.replace(memory, desired_replicas=step.replicas, rescale=rescale),
        rescale=rescale,
        completed=completed,
        able=_able(step, rescale, completed),
        active=_active(proposal),
        limited=_limited(seeds, step),
        recheck_at=step.recheck_at,
    )


def _observe_scale(
    spec: SeedAutoscalerSpec, memory: SeedAutoscalerStatus, seeds: SeedSetState, now: datetime
) -> tuple[SeedAutoscalerStatus, Rescale | None]:
    """Record a change of the set's replicas since the last reconciliation; returns the ordered one if it was that."""
    events = memory.scale_events
    completed = None
    if memory.target_replicas is not None and memory.target_replicas != seeds.ordered:
        events = (*events, ScaleEvent(seeds.ordered - memory.target_replicas, now))
        if memory.rescale is not None and memory.rescale.to_replicas == seeds.ordered:
            completed = memory.rescale
    memory = msgspec.structs.replace(
        memory,
        target_replicas=seeds.ordered,
        scale_events=events_that_count(events, spec.behavior, now),
        last_scale_time=timestamp(now) if completed else memory.last_scale_time,
    )
    return memory, completed


def _tolerance(spec: SeedAutoscalerSpec, pace: Pace) -> Tolerance:
    up, down = spec.behavior.scale_up, spec.behavior.scale_down
    return Tolerance(up.tolerance_or(pace.tolerance), down.tolerance_or(pace.tolerance))


def _outside_of_bounds(
    spec: SeedAutoscalerSpec, proposal: ReplicaProposal, seeds: SeedSetState
) -> _PacedReplicas | None:
    """Enforce bounds that were moved past the set's size at once, as far as its shoots allow."""
    if seeds.ordered > spec.max_replicas:
        replicas = max(spec.max_replicas, min(seeds.ordered, proposal.for_placed))
        return _PacedReplicas(replicas, f"more than maxReplicas ({spec.max_replicas})", _too_many(spec))
    if seeds.ordered < spec.min_replicas:
        return _PacedReplicas(spec.min_replicas, f"less than minReplicas ({spec.min_replicas})", _too_few(spec))
    return None


def _inside_of_bounds(
    spec: SeedAutoscalerSpec,
    proposal: ReplicaProposal,
    seeds: SeedSetState,
    steady: LimitedReplicas,
    memory: SeedAutoscalerStatus,
    now: datetime,
) -> _PacedReplicas:
    ordered = seeds.ordered
    paced = rate_limited(ordered, steady.replicas, memory.scale_events, spec.behavior, now=now)
    waits = [moment for moment in (steady.recheck_at, paced.recheck_at) if moment is not None]
    return _PacedReplicas(
        replicas=max(paced.replicas, min(ordered, proposal.for_placed)),
        reason=proposal.reason if memory.recommended_replicas == proposal.replicas else _bounded_reason(spec, proposal),
        limited=_limit(spec, proposal, steady.replicas, paced.replicas),
        able=_stabilization(steady.replicas, memory.recommended_replicas or 0),
        recheck_at=min(waits, default=None),
    )


def _bounded_reason(spec: SeedAutoscalerSpec, proposal: ReplicaProposal) -> str:
    bound = "maxReplicas" if proposal.replicas > spec.max_replicas else "minReplicas"
    return f"{proposal.reason} (limited by {bound})"


def _limit(spec: SeedAutoscalerSpec, proposal: ReplicaProposal, steady: int, paced: int) -> ConditionValue | None:
    if paced < steady:
        return ConditionValue(TRUE, "ScaleUpLimit", f"the policies of behavior.scaleUp allow {paced} replicas now")
    if paced > steady:
        return ConditionValue(TRUE, "ScaleDownLimit", f"the policies of behavior.scaleDown allow {paced} replicas now")
    if proposal.replicas > spec.max_replicas:
        return _too_many(spec)
    return _too_few(spec) if proposal.replicas < spec.min_replicas else None


def _too_many(spec: SeedAutoscalerSpec) -> ConditionValue:
    return ConditionValue(TRUE, "TooManyReplicas", f"more replicas are desired than maxReplicas ({spec.max_replicas})")


def _too_few(spec: SeedAutoscalerSpec) -> ConditionValue:
    return ConditionValue(TRUE, "TooFewReplicas", f"fewer replicas are desired than minReplicas ({spec.min_replicas})")


def _stabilization(steady: int, recommended: int) -> ConditionValue | None:
    if steady > recommended:
        return ConditionValue(TRUE, "ScaleDownStabilized", "more replicas were right within the stabilization window")
    if steady < recommended:
        return ConditionValue(TRUE, "ScaleUpStabilized", "fewer replicas were right within the stabilization window")
    return None


def _able(step: _PacedReplicas, rescale: Rescale | None, completed: Rescale | None) -> ConditionValue | None:
    if rescale is not None:
        return None
    if completed is not None:
        return ConditionValue(TRUE, "SucceededRescale", f"the set was scaled to {completed.to_replicas} replicas")
    return step.able or ConditionValue(TRUE, "ReadyForNewScale", "the set has as many replicas as are desired")


def _active(proposal: ReplicaProposal) -> ConditionValue:
    if proposal.unmeasured:
        message = "; ".join(f"{each.resource}: {each.message}" for each in proposal.unmeasured)
        return ConditionValue(FALSE, "FailedGetResourceMetric", f"no scaling down: {message}")
    return ConditionValue(TRUE, "ValidMetricFound", "all metrics can be read")


def _limited(seeds: SeedSetState, step: _PacedReplicas) -> ConditionValue:
    if seeds.unschedulable:
        return ConditionValue(TRUE, "ReplicaUnschedulable", seeds.unschedulable)
    return step.limited or ConditionValue(
        FALSE, "DesiredWithinRange", "the desired number is within the acceptable range"
    )
