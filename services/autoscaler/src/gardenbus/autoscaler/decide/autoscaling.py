"""The decision: how many replicas a set shall have now. Service, simulation and tests all come here.

The order of things: what is needed (`need`), stabilization windows, policies, then minReplicas and maxReplicas. A set
outside its bounds is brought back to them at once. Nothing goes below what holds the shoots that are on its seeds.

A change is remembered before it is made (`memory.rescale`) and counted once it is seen in the set, whoever made it: a
process that ends in between leaves nothing half done, and two that decide at once make one change.
"""

from datetime import datetime, timedelta
from fractions import Fraction

import msgspec

from gardenbus.autoscaler.decide.behavior import (
    Limited,
    Windows,
    events_that_count,
    rate_limited,
    recommendations_since,
    stabilized,
)
from gardenbus.autoscaler.decide.landscape import SetOfSeeds
from gardenbus.autoscaler.decide.metrics import Tolerance
from gardenbus.autoscaler.decide.need import Need, need_of
from gardenbus.common.ports.clock import timestamp
from gardenbus.common.resources.conditions import FALSE, TRUE
from gardenbus.common.resources.seed_autoscalers import (
    Rescale,
    ScaleEvent,
    SeedAutoscalerSpec,
    SeedAutoscalerStatus,
)


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for all autoscalers of a landscape that do not say otherwise."""

    tolerance: Fraction = Fraction(1, 10)
    """A measurement nearer to its target than this part of it changes nothing."""

    downscale_stabilization: timedelta = timedelta(minutes=5)
    """A set shrinks to the highest that was right within this time."""


class Finding(msgspec.Struct, frozen=True):
    """What a condition is to say."""

    status: str
    reason: str
    message: str


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done, said and remembered.

    `rescale` is the change to make, None for none; `carried_out` one of earlier that the set shows now. `able` is None
    when only the change itself can tell. `again_at`: when the same set could get another decision, None for never.
    """

    desired: int
    need: Need
    memory: SeedAutoscalerStatus
    rescale: Rescale | None = None
    carried_out: Rescale | None = None
    able: Finding | None = None
    active: Finding
    limited: Finding
    again_at: datetime | None = None


class _Step(msgspec.Struct, frozen=True):
    """The number that came of the rules, how it came about, and when the rules may say something else."""

    replicas: int
    reason: str
    limited: Finding | None = None
    able: Finding | None = None
    again_at: datetime | None = None


def decide(
    spec: SeedAutoscalerSpec,
    memory: SeedAutoscalerStatus,
    seeds: SetOfSeeds,
    now: datetime,
    pace: Pace = Pace(),  # noqa: B008  (frozen)
) -> Decision:
    """How many replicas the set shall have; see the module. Pure: the same arguments give the same decision."""
    need = need_of(spec, seeds, _tolerance(spec, pace))
    memory, carried_out = _seen(spec, memory, seeds, now)
    recommended = min(max(need.replicas, spec.min_replicas), spec.max_replicas)
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
    step = _outside_of_bounds(spec, need, seeds) or _inside_of_bounds(
        spec, need, seeds, stabilized(seeds.ordered, recommended, past, now=now, windows=windows), memory, now
    )
    rescale = None
    if step.replicas != seeds.ordered:
        rescale = Rescale(seeds.ordered, step.replicas, step.reason)
    return Decision(
        desired=step.replicas,
        need=need,
        memory=msgspec.structs.replace(memory, desired_replicas=step.replicas, rescale=rescale),
        rescale=rescale,
        carried_out=carried_out,
        able=_able(step, rescale, carried_out),
        active=_active(need),
        limited=_limited(seeds, step),
        again_at=step.again_at,
    )


def _seen(
    spec: SeedAutoscalerSpec, memory: SeedAutoscalerStatus, seeds: SetOfSeeds, now: datetime
) -> tuple[SeedAutoscalerStatus, Rescale | None]:
    """Take note of a change of the set's replicas since the last look, and whether it is the one that was ordered."""
    events = memory.scale_events
    carried_out = None
    if memory.target_replicas is not None and memory.target_replicas != seeds.ordered:
        events = (*events, ScaleEvent(seeds.ordered - memory.target_replicas, now))
        if memory.rescale is not None and memory.rescale.to_replicas == seeds.ordered:
            carried_out = memory.rescale
    memory = msgspec.structs.replace(
        memory,
        target_replicas=seeds.ordered,
        scale_events=events_that_count(events, spec.behavior, now),
        last_scale_time=timestamp(now) if carried_out else memory.last_scale_time,
    )
    return memory, carried_out


def _tolerance(spec: SeedAutoscalerSpec, pace: Pace) -> Tolerance:
    up, down = spec.behavior.scale_up, spec.behavior.scale_down
    return Tolerance(up.tolerance_or(pace.tolerance), down.tolerance_or(pace.tolerance))


def _outside_of_bounds(spec: SeedAutoscalerSpec, need: Need, seeds: SetOfSeeds) -> _Step | None:
    """Bounds that were moved past what the set has count at once, as far as its shoots allow."""
    if seeds.ordered > spec.max_replicas:
        replicas = max(spec.max_replicas, min(seeds.ordered, need.holding))
        return _Step(replicas, f"more than maxReplicas ({spec.max_replicas})", _too_many(spec))
    if seeds.ordered < spec.min_replicas:
        return _Step(spec.min_replicas, f"less than minReplicas ({spec.min_replicas})", _too_few(spec))
    return None


def _inside_of_bounds(
    spec: SeedAutoscalerSpec,
    need: Need,
    seeds: SetOfSeeds,
    steady: Limited,
    memory: SeedAutoscalerStatus,
    now: datetime,
) -> _Step:
    ordered = seeds.ordered
    paced = rate_limited(ordered, steady.replicas, memory.scale_events, spec.behavior, now=now)
    waits = [moment for moment in (steady.again_at, paced.again_at) if moment is not None]
    return _Step(
        replicas=max(paced.replicas, min(ordered, need.holding)),
        reason=need.reason if memory.recommended_replicas == need.replicas else _bounded_reason(spec, need),
        limited=_limit(spec, need, steady.replicas, paced.replicas),
        able=_steadiness(steady.replicas, memory.recommended_replicas or 0),
        again_at=min(waits, default=None),
    )


def _bounded_reason(spec: SeedAutoscalerSpec, need: Need) -> str:
    bound = "maxReplicas" if need.replicas > spec.max_replicas else "minReplicas"
    return f"{need.reason} (limited by {bound})"


def _limit(spec: SeedAutoscalerSpec, need: Need, steady: int, paced: int) -> Finding | None:
    if paced < steady:
        return Finding(TRUE, "ScaleUpLimit", f"the policies of behavior.scaleUp allow {paced} replicas now")
    if paced > steady:
        return Finding(TRUE, "ScaleDownLimit", f"the policies of behavior.scaleDown allow {paced} replicas now")
    if need.replicas > spec.max_replicas:
        return _too_many(spec)
    return _too_few(spec) if need.replicas < spec.min_replicas else None


def _too_many(spec: SeedAutoscalerSpec) -> Finding:
    return Finding(TRUE, "TooManyReplicas", f"more replicas are desired than maxReplicas ({spec.max_replicas})")


def _too_few(spec: SeedAutoscalerSpec) -> Finding:
    return Finding(TRUE, "TooFewReplicas", f"fewer replicas are desired than minReplicas ({spec.min_replicas})")


def _steadiness(steady: int, recommended: int) -> Finding | None:
    if steady > recommended:
        return Finding(TRUE, "ScaleDownStabilized", "more replicas were right within the stabilization window")
    if steady < recommended:
        return Finding(TRUE, "ScaleUpStabilized", "fewer replicas were right within the stabilization window")
    return None


def _able(step: _Step, rescale: Rescale | None, carried_out: Rescale | None) -> Finding | None:
    if rescale is not None:
        return None
    if carried_out is not None:
        return Finding(TRUE, "SucceededRescale", f"the set was scaled to {carried_out.to_replicas} replicas")
    return step.able or Finding(TRUE, "ReadyForNewScale", "the set has as many replicas as are desired")


def _active(need: Need) -> Finding:
    if need.unmeasured:
        message = "; ".join(f"{each.resource}: {each.message}" for each in need.unmeasured)
        return Finding(FALSE, "FailedGetResourceMetric", f"no scaling down: {message}")
    return Finding(TRUE, "ValidMetricFound", "all metrics can be told")


def _limited(seeds: SetOfSeeds, step: _Step) -> Finding:
    if seeds.unschedulable:
        return Finding(TRUE, "ReplicaUnschedulable", seeds.unschedulable)
    return step.limited or Finding(FALSE, "DesiredWithinRange", "the desired number is within the acceptable range")
