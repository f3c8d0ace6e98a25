"""How many replicas a measurement asks for. All arithmetic is exact.

| target       | measured                        | replicas                                        |
|--------------|---------------------------------|-------------------------------------------------|
| Utilization  | used / room                     | ceil(count * (used / room) / target)            |
| AverageValue | used / count                    | ceil(used / target)                             |
| any          | within tolerance of the target  | those that are (count, or those ordered)        |

A set that is slow to shrink, or cannot, has more replicas than were ordered: then those ordered are held against the
target first, so that the number stands still as it would if the others were gone.

When utilization is low and seeds differ in size, nobody knows which ones will go: as many stay as meet the target
even if they are the smallest. For seeds of one size that is the same number, and for others it keeps a set from
shrinking to where it would have to grow again.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

import msgspec

from gardenbus.autoscaler.decide.landscape import SetOfSeeds
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.seed_autoscalers import AVERAGE_VALUE, UTILIZATION, MetricTarget, ResourceMetric
from gardenbus.common.resources.seeds import SHOOTS


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A metric with what it asks for; `current` is its entry in status.currentMetrics, `reason` says why."""

    resource: str
    replicas: int
    current: Document
    reason: str


class Unmeasured(msgspec.Struct, frozen=True, kw_only=True):
    """A metric that cannot be measured, and why."""

    resource: str
    message: str


class Tolerance(NamedTuple):
    """Which part of a target may be exceeded (`up`) or left unused (`down`) before anything is asked for."""

    up: Fraction
    down: Fraction


def measure(metric: ResourceMetric, seeds: SetOfSeeds, tolerance: Tolerance) -> Measured | Unmeasured:
    """Measure one resource of a set; within `tolerance` nothing is asked for."""
    used = _used(metric.name, seeds)
    if isinstance(used, Unmeasured):
        return used
    if metric.target.type == AVERAGE_VALUE:
        return _by_amount(metric.name, metric.target, seeds, used, tolerance)
    if metric.target.type == UTILIZATION:
        return _by_share(metric.name, metric.target, seeds, used, tolerance)
    return Unmeasured(resource=metric.name, message=f"{metric.target.type!r} is no target that is known here")


def fewest_that_hold(amount: Fraction | int, rooms: Sequence[Fraction | None]) -> int:
    """How many of these must stay to hold an amount, whichever they are; all of them if they cannot. None: no limit."""
    limits = sorted(room for room in rooms if room is not None)
    held, number = Fraction(), 0
    while held < amount and number < len(limits):
        held += limits[number]
        number += 1
    return number if held >= amount else min(number + 1, len(rooms))


def quantity_text(amount: Fraction) -> str:
    """An amount as a quantity: whole, or rounded up to the thousandth."""
    return str(amount.numerator) if amount.denominator == 1 else f"{ceil(amount * 1000)}m"


def _used(resource: str, seeds: SetOfSeeds) -> Fraction | Unmeasured:
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


def _by_share(
    resource: str, target: MetricTarget, seeds: SetOfSeeds, used: Fraction, tolerance: Tolerance
) -> Measured | Unmeasured:
    rooms = [room for room in seeds.rooms(resource) if room is not None]
    if len(rooms) < seeds.count:
        return Unmeasured(resource=resource, message=f"not every seed says how much of {resource} is allocatable")
    room, percent = sum(rooms, Fraction()), int(target.share * 100)
    if not room:
        if used or seeds.count:
            return Unmeasured(resource=resource, message=f"the seeds have no {resource} allocatable at all")
        return Measured(resource=resource, replicas=0, current=_current(resource, used, 0, None), reason="")
    smallest = sum(sorted(rooms)[: seeds.ordered], Fraction())
    aims = {seeds.ordered: smallest * target.share, seeds.count: room * target.share}
    settled = _settled(used, aims, tolerance)
    ratio = used / (room * target.share)
    if settled is not None:
        stand, replicas = "within", settled
    elif ratio > 1:
        stand, replicas = "above", ceil(seeds.count * ratio)
    else:
        stand, replicas = "below", fewest_that_hold(used / target.share, rooms)
    utilization = floor(used * 100 / room)
    return Measured(
        resource=resource,
        replicas=replicas,
        current=_current(resource, used, seeds.count, utilization),
        reason=f"utilization of {resource} is {utilization}%, {stand} the target of {percent}%",
    )


def _settled(used: Fraction, aims: Mapping[int, Fraction], tolerance: Tolerance) -> int | None:
    """The first number of replicas for which what is used is near enough to what they aim at."""
    near = (replicas for replicas, aim in aims.items() if aim and -tolerance.down <= used / aim - 1 <= tolerance.up)
    return next(near, None)


def _by_amount(
    resource: str, target: MetricTarget, seeds: SetOfSeeds, used: Fraction, tolerance: Tolerance
) -> Measured | Unmeasured:
    count = seeds.count
    try:
        amount = target.amount
    except ValueError as error:
        return Unmeasured(resource=resource, message=f"averageValue: {error}")
    if amount <= 0:
        return Unmeasured(resource=resource, message="the target states no averageValue above zero")
    settled = _settled(used, {seeds.ordered: seeds.ordered * amount, count: count * amount}, tolerance)
    stand = "within" if settled is not None else "above" if used > count * amount else "below"
    current = _current(resource, used, count, None)
    on_each = current["resource"]["current"]["averageValue"]
    return Measured(
        resource=resource,
        replicas=ceil(used / amount) if settled is None else settled,
        current=current,
        reason=f"{resource} on each seed are {on_each}, {stand} the target of {quantity_text(amount)}",
    )


def _current(resource: str, used: Fraction, count: int, utilization: int | None) -> Document:
    """As a HorizontalPodAutoscaler writes it, with the sum in `value`."""
    current: Document = {"averageValue": quantity_text(used / count if count else Fraction())}
    if utilization is not None:
        current["averageUtilization"] = utilization
    current["value"] = quantity_text(used)
    return {"type": "Resource", "resource": {"name": resource, "current": current}}
