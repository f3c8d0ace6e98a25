"""Formulas of the scores: whole numbers from 0 to 100, of one seed alone, so that other seeds never change them.

Divisions round down unless a formula says otherwise. What a shoot requests, and a seed does not state, does not count.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isqrt
from typing import NamedTuple

from gardenbus.common.api.garden.scheduling_profiles import (
    AnnotationScore,
    PreferredSeeds,
    ResourcesFit,
    ShapePoint,
    WeightedResource,
)
from gardenbus.common.api.numbers import thousandths

HIGHEST = 100

_ENOUGH_ZONES = 3
_TOP_OF_SHAPES = 10


class Amount(NamedTuple):
    """A resource of a seed that a shoot requests: allocatable (above 0), used, requested."""

    allocatable: int
    used: int
    requested: int

    @property
    def needed(self) -> int:
        """Use with the shoot there."""
        return self.used + self.requested


def fit_score(args: ResourcesFit, amounts: Mapping[str, Amount]) -> int:
    """SeedResourcesFit: the weighted mean of the resources' scores; 0 without any resource that counts."""
    points = weights = 0
    for resource in args.resources:
        amount = amounts.get(resource.name)
        if amount is not None:
            points += resource.weight * _fit(args, amount)
            weights += resource.weight
    return points // weights if weights else 0


def _fit(args: ResourcesFit, amount: Amount) -> int:
    allocatable, needed = amount.allocatable, amount.needed
    match args.type:
        case "LeastAllocated":
            return 0 if needed > allocatable else (allocatable - needed) * HIGHEST // allocatable
        case "MostAllocated":
            return min(needed, allocatable) * HIGHEST // allocatable
        case "RequestedToCapacityRatio":
            return shape_score(args.shape, HIGHEST if needed > allocatable else needed * HIGHEST // allocatable)


def shape_score(shape: Sequence[ShapePoint], utilization: int) -> int:
    """The value of a shape, times ten: linear between its points, divided towards zero, and flat outside of them."""
    before = shape[0]
    for point in shape:
        if utilization <= point.utilization:
            if point is before:
                break
            rise = (point.score - before.score) * _TOP_OF_SHAPES * (utilization - before.utilization)
            width = point.utilization - before.utilization
            return before.score * _TOP_OF_SHAPES + (rise // width if rise >= 0 else -(-rise // width))
        before = point
    return before.score * _TOP_OF_SHAPES


def balance_score(resources: Iterable[WeightedResource], amounts: Mapping[str, Amount]) -> int:
    """SeedResourcesBalancedAllocation: above 50 where the shoot makes the use of a seed's resources more even."""
    found = [amount for _, amount in _counting(resources, amounts)]
    if not found:
        return 0
    after = _balance([(amount.needed, amount.allocatable) for amount in found])
    before = _balance([(amount.used, amount.allocatable) for amount in found])
    return 50 + (50 + after - before) // 2


def _balance(uses: Sequence[tuple[int, int]]) -> int:
    """100 less the standard deviation of the shares in use, in per cent. Source: kube-scheduler 1.36."""
    count = len(uses)
    if count < 2:  # noqa: PLR2004  one share deviates from none
        return HIGHEST
    shares = [min(used, allocatable) * 10_000 // allocatable for used, allocatable in uses]
    total = sum(shares)
    variance = sum((count * share - total) ** 2 for share in shares) // count**3
    return (10_000 - isqrt(variance)) // 100


def _counting(resources: Iterable[WeightedResource], amounts: Mapping[str, Amount]) -> list[tuple[int, Amount]]:
    return [(each.weight, amounts[each.name]) for each in resources if each.name in amounts]


def distance_score(distance: int | None, farthest: int) -> int:
    """MinimalDistance: falls from 100 at distance 0 to 0 at the farthest. None: there is no distance."""
    if distance is None:
        return 0
    if farthest <= 0:
        return HIGHEST
    return 0 if distance >= farthest else HIGHEST - max(distance, 0) * HIGHEST // farthest


def affinity_score(preferred: Iterable[PreferredSeeds], labels: Mapping[str, str]) -> int:
    """SeedAffinity: the weight of the terms that match the labels, as a part of all weight; 0 without terms."""
    total = matched = 0
    for each in preferred:
        total += each.weight
        if each.preference.meets(labels):
            matched += each.weight
    return matched * HIGHEST // total if total else 0


def zone_score(zones: int, *, is_zonal: bool) -> int:
    """SeedZoneFit: seeds of three zones are left to the shoots that need them."""
    return HIGHEST if is_zonal or zones < _ENOUGH_ZONES else 0


def annotation_score(args: AnnotationScore, annotations: Mapping[str, str]) -> int:
    """SeedAnnotation: where the value lies between the least and the most; `missing` where it cannot be read."""
    value = thousandths(annotations.get(args.annotation, ""))
    if value is None:
        return args.missing
    score = (min(max(value, args.least), args.most) - args.least) * HIGHEST // (args.most - args.least)
    return HIGHEST - score if args.reverse else score
