"""Replicas proposed by resource metrics. All arithmetic is exact.

| target       | measured                        | replicas                                        |
|--------------|---------------------------------|-------------------------------------------------|
| Utilization  | used / capacity                 | ceil(count * (used / capacity) / target)        |
| AverageValue | used / count                    | ceil(used / target)                             |
| any          | within tolerance of the target  | unchanged (count, or the ordered number)        |

A set that is slow to shrink, or cannot, has more replicas than were ordered: then the ordered number is compared with
the target first, so that it stays as it would if the others were gone.

When utilization is low and seeds differ in size, it is unknown which ones will go: as many stay as meet the target
even if they are the smallest. For seeds of one size that is the same number, and for others it keeps a set from
shrinking to where it would have to grow again.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

import msgspec

from gardenbus.autoscaling.seed_set import Capacities, SeedSetState
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.seed_autoscalers import AVERAGE_VALUE, UTILIZATION, MetricTarget, ResourceMetric
from gardenbus.common.api.garden.seeds import SHOOTS


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A metric with its proposal; `current` is its entry in status.currentMetrics."""

    resource: str
    replicas: int
    current: Document
    reason: str


class Unmeasured(msgspec.Struct, frozen=True, kw_only=True):
    """A metric that cannot be measured, and the reason."""

    resource: str
    message: str


class Tolerance(NamedTuple):
    """Relative excess (`up`) and shortfall (`down`) of a target that change nothing."""

    up: Fraction
    down: Fraction


def measure(metric: ResourceMetric, seeds: SeedSetState, tolerance: Tolerance) -> Measured | Unmeasured:
    """Measure one resource of a set; within `tolerance` the size is unchanged."""
    used = _used(metric.name, seeds)
    if isinstance(used, Unmeasured):
        return used
    if metric.target.type == AVERAGE_VALUE:
        return _by_average_value(metric.name, metric.target, seeds, used, tolerance)
    if metric.target.type == UTILIZATION:
        return _by_utilization(metric.name, metric.target, seeds, used, tolerance)
    return Unmeasured(resource=metric.name, message=f"{metric.target.type!r} is no target that is known here")


def fewest_to_hold(amount: Fraction | int, capacities: Capacities) -> int:
    """Replicas that must stay to hold an amount, whichever they are; all of them if they cannot. None: no limit."""
    held, number = Fraction(), 0
    for capacity, replicas in _smallest_first(capacities):
        if held >= amount:
            break
        needed = min(replicas, ceil((amount - held) / capacity)) if capacity > 0 else replicas
        held += needed * capacity
        number += needed
    return number if held >= amount else min(number + 1, sum(capacities.values()))


def quantity_text(amount: Fraction) -> str:
    """Format an amount as a quantity: whole, or rounded up to the thousandth."""
    return str(amount.numerator) if amount.denominator == 1 else f"{ceil(amount * 1000)}m"


def _used(resource: str, seeds: SeedSetState) -> Fraction | Unmeasured:
    if resource == SHOOTS:
        return Fraction(seeds.shoots)
    total = Fraction()
    for replica in seeds.staying:
        used = replica.usage.get(resource)
        if used is None and replica.is_built:
            message = f"seed {replica.name} does not report status.usage.{resource}"
            return Unmeasured(resource=resource, message=message)
        total += used or 0
    return total


def _by_utilization(
    resource: str, target: MetricTarget, seeds: SeedSetState, used: Fraction, tolerance: Tolerance
) -> Measured | Unmeasured:
    capacities = seeds.capacities(resource)
    if None in capacities:  # of a resource that not every seed states
        return Unmeasured(resource=resource, message=f"not every seed reports how much of {resource} is allocatable")
    capacity, percent = _sum_of_smallest(seeds.count, capacities), int(target.share * 100)
    if not capacity:
        if used or seeds.count:
            return Unmeasured(resource=resource, message=f"the seeds have no {resource} allocatable at all")
        return Measured(resource=resource, replicas=0, current=_current(resource, used, 0, None), reason="")
    smallest = _sum_of_smallest(seeds.ordered, capacities)
    target_amounts = {seeds.ordered: smallest * target.share, seeds.count: capacity * target.share}
    within_tolerance = _within_tolerance(used, target_amounts, tolerance)
    ratio = used / (capacity * target.share)
    if within_tolerance is not None:
        relation, replicas = "within", within_tolerance
    elif ratio > 1:
        relation, replicas = "above", ceil(seeds.count * ratio)
    else:
        relation, replicas = "below", fewest_to_hold(used / target.share, capacities)
    utilization = floor(used * 100 / capacity)
    return Measured(
        resource=resource,
        replicas=replicas,
        current=_current(resource, used, seeds.count, utilization),
        reason=f"utilization of {resource} is {utilization}%, {relation} the target of {percent}%",
    )


def _smallest_first(capacities: Capacities) -> Sequence[tuple[Fraction, int]]:
    """The known capacities in ascending order, with the number of replicas that have each."""
    return sorted((capacity, replicas) for capacity, replicas in capacities.items() if capacity is not None)


def _sum_of_smallest(number: int, capacities: Capacities) -> Fraction:
    """Total capacity of the smallest replicas, so many of them."""
    total = Fraction()
    for capacity, replicas in _smallest_first(capacities):
        counted = min(replicas, number)
        total += counted * capacity
        number -= counted
    return total


def _within_tolerance(used: Fraction, target_amounts: Mapping[int, Fraction], tolerance: Tolerance) -> int | None:
    """The first size at which usage is within tolerance of the target."""
    near = (
        replicas
        for replicas, amount in target_amounts.items()
        if amount and -tolerance.down <= used / amount - 1 <= tolerance.up
    )
    return next(near, None)


def _by_average_value(
    resource: str, target: MetricTarget, seeds: SeedSetState, used: Fraction, tolerance: Tolerance
) -> Measured | Unmeasured:
    count = seeds.count
    try:
        amount = target.amount
    except ValueError as error:
        return Unmeasured(resource=resource, message=f"averageValue: {error}")
    if amount <= 0:
        return Unmeasured(resource=resource, message="the target states no averageValue above zero")
    within_tolerance = _within_tolerance(
        used, {seeds.ordered: seeds.ordered * amount, count: count * amount}, tolerance
    )
    relation = "within" if within_tolerance is not None else "above" if used > count * amount else "below"
    current = _current(resource, used, count, None)
    on_each = current["resource"]["current"]["averageValue"]
    return Measured(
        resource=resource,
        replicas=ceil(used / amount) if within_tolerance is None else within_tolerance,
        current=current,
        reason=f"{resource} on each seed are {on_each}, {relation} the target of {quantity_text(amount)}",
    )


def _current(resource: str, used: Fraction, count: int, utilization: int | None) -> Document:
    """Format as a HorizontalPodAutoscaler does, with the sum in `value`."""
    current: Document = {"averageValue": quantity_text(used / count if count else Fraction())}
    if utilization is not None:
        current["averageUtilization"] = utilization
    current["value"] = quantity_text(used)
    return {"type": "Resource", "resource": {"name": resource, "current": current}}
