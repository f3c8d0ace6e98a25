"""Which of the seeds that fit come first: the strategies, down to groups of equals that usage decides between."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from gardenbus.scheduling.distance import FARTHEST, OTHER_PROVIDER, distance_by_name, parse_distances
from gardenbus.scheduling.landscape import MINIMAL_DISTANCE, SAME_REGION, Landscape, SeedCandidate
from gardenbus.scheduling.request import Demand

TESTING = "Testing"


class Group(msgspec.Struct, frozen=True, eq=False):
    """Seeds that are equally near; `distance` None when the strategy measures none."""

    distance: int | None
    seeds: tuple[SeedCandidate, ...]


class Order(msgspec.Struct, frozen=True, eq=False):
    """The groups, nearest first; why the others are left out; the sentence for people in case that no group fits."""

    strategy: str
    groups: tuple[Group, ...]
    left_out: Mapping[str, str]
    sentence: str


Rank = tuple[int, int] | str


class Measure(NamedTuple):
    """How a strategy ranks seeds by provider type and region: smaller is nearer, a text says why one is left out.

    `has_distances`: the second number of a rank is the seed's distance. `sentence` is for the case that no seed fits.
    """

    strategy: str
    rank: Callable[[str, str], Rank]
    has_distances: bool
    sentence: str


def measure_of(demand: Demand, landscape: Landscape) -> Measure:
    """The measure for one class. Source: `determineCandidatesWithStrategy`."""
    if demand.is_testing:
        return _of_provider(demand)
    if landscape.strategy == MINIMAL_DISTANCE:
        return _minimal_distance(demand, landscape)
    return _same_region(demand)


def order_of(demand: Demand, candidates: Sequence[SeedCandidate], landscape: Landscape) -> Order:
    """Put candidates (in the order of their names) into groups.

    A seed of a later group is chosen only when no seed of an earlier one passes the checks.
    """
    measure = measure_of(demand, landscape)
    groups: dict[tuple[int, int], list[SeedCandidate]] = {}
    left_out: dict[str, str] = {}
    for candidate in candidates:
        provider = candidate.seed.spec.provider
        rank = measure.rank(provider.type, provider.region)
        if isinstance(rank, str):
            left_out[candidate.name] = rank
        else:
            groups.setdefault(rank, []).append(candidate)
    return Order(
        measure.strategy,
        tuple(Group(rank[1] if measure.has_distances else None, tuple(groups[rank])) for rank in sorted(groups)),
        left_out,
        measure.sentence,
    )


def _of_provider(demand: Demand) -> Measure:
    def rank(kind: str, _region: str) -> Rank:
        return _other_provider(kind, demand) or (0, 0)

    return Measure(
        TESTING,
        rank,
        has_distances=False,
        sentence=f"no seed that fits has the provider {demand.provider!r}, which shoots for testing never leave",
    )


def _same_region(demand: Demand) -> Measure:
    def rank(kind: str, region: str) -> Rank:
        return _other_provider(kind, demand) or _other_region(region, demand) or (0, 0)

    return Measure(
        SAME_REGION,
        rank,
        has_distances=False,
        sentence=(
            f"no seed that fits is of provider {demand.provider!r} in region {demand.region!r}"
            f" (strategy SameRegion, cloud profile {demand.profile!r})"
        ),
    )


def _minimal_distance(demand: Demand, landscape: Landscape) -> Measure:
    """Order by the region ConfigMap; seeds whose region it lacks come last, by their regions' names.

    That is the same as measuring the names only when no seed of the ConfigMap is left.
    """
    try:
        distances = _configured_distances(demand, landscape)
    except ValueError as error:
        problem = str(error)

        def refuse(_kind: str, _region: str) -> Rank:
            return problem

        return Measure(MINIMAL_DISTANCE, refuse, has_distances=True, sentence=problem)

    def rank(kind: str, region: str) -> Rank:
        if region in distances:
            return (0, distances[region])
        penalty = 0 if kind == demand.provider else OTHER_PROVIDER
        by_name = (1, distance_by_name(region, demand.region) + penalty)
        return by_name if by_name <= (1, FARTHEST) else f"its region {region!r} is too far away"

    return Measure(
        MINIMAL_DISTANCE,
        rank,
        has_distances=True,
        sentence=f"no seed that fits is near region {demand.region!r}"
        f" (strategy MinimalDistance, cloud profile {demand.profile!r})",
    )


def _configured_distances(demand: Demand, landscape: Landscape) -> Mapping[str, int]:
    configmaps = landscape.region_configmaps_of(demand.profile)
    text = configmaps[0].data.get(demand.region) if configmaps else None
    if not text:
        return {}
    try:
        distances = parse_distances(text)
    except ValueError as error:
        name = configmaps[0].metadata.name
        raise ValueError(
            f"the region ConfigMap garden/{name} is malformed at region {demand.region!r}: {error}"
        ) from error
    return {demand.region: 0, **distances}


def _other_provider(kind: str, demand: Demand) -> str:
    return "" if kind == demand.provider else f"its provider {kind!r} is not the shoot's"


def _other_region(region: str, demand: Demand) -> str:
    return "" if region == demand.region else f"its region {region!r} is not the shoot's"
