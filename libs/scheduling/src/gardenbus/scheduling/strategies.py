"""Which of the seeds that fit come first: the strategies, down to groups of equals that usage decides between."""

from collections.abc import Mapping, Sequence

import msgspec

from gardenbus.scheduling.distance import FARTHEST, OTHER_PROVIDER, distance_by_name, parse_distances
from gardenbus.scheduling.landscape import MINIMAL_DISTANCE, Landscape, SeedCandidate
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


def order_of(demand: Demand, candidates: Sequence[SeedCandidate], landscape: Landscape) -> Order:
    """Put candidates (in the order of their names) into groups. Source: `determineCandidatesWithStrategy`.

    A seed of a later group is chosen only when no seed of an earlier one passes the checks.
    """
    if demand.is_testing:
        return _of_provider(demand, candidates)
    if landscape.strategy == MINIMAL_DISTANCE:
        return _minimal_distance(demand, candidates, landscape)
    return _same_region(demand, candidates)


def _of_provider(demand: Demand, candidates: Sequence[SeedCandidate]) -> Order:
    left_out = {candidate.name: _other_provider(candidate, demand) for candidate in candidates}
    sentence = f"no seed that fits has the provider {demand.provider!r}, which shoots for testing never leave"
    return _one_group(TESTING, candidates, left_out, sentence)


def _same_region(demand: Demand, candidates: Sequence[SeedCandidate]) -> Order:
    left_out = {
        candidate.name: _other_provider(candidate, demand) or _other_region(candidate, demand)
        for candidate in candidates
    }
    sentence = (
        f"no seed that fits is of provider {demand.provider!r} in region {demand.region!r}"
        f" (strategy SameRegion, cloud profile {demand.profile!r})"
    )
    return _one_group("SameRegion", candidates, left_out, sentence)


def _one_group(strategy: str, candidates: Sequence[SeedCandidate], left_out: dict[str, str], sentence: str) -> Order:
    seeds = tuple(candidate for candidate in candidates if not left_out[candidate.name])
    reasons = {seed: reason for seed, reason in left_out.items() if reason}
    return Order(strategy, (Group(None, seeds),) if seeds else (), reasons, sentence)


def _minimal_distance(demand: Demand, candidates: Sequence[SeedCandidate], landscape: Landscape) -> Order:
    """Order by the region ConfigMap; seeds whose region it lacks come last, by their regions' names.

    That is the same as measuring the names only when no seed of the ConfigMap is left.
    """
    try:
        distances = _configured_distances(demand, landscape)
    except ValueError as error:
        return Order(MINIMAL_DISTANCE, (), {candidate.name: str(error) for candidate in candidates}, str(error))
    groups: dict[tuple[int, int], list[SeedCandidate]] = {}
    left_out: dict[str, str] = {}
    for candidate in candidates:
        provider = candidate.seed.spec.provider
        if provider.region in distances:
            rank = (0, distances[provider.region])
        else:
            penalty = 0 if provider.type == demand.provider else OTHER_PROVIDER
            rank = (1, distance_by_name(provider.region, demand.region) + penalty)
        if rank > (1, FARTHEST):
            left_out[candidate.name] = f"its region {provider.region!r} is too far away"
        else:
            groups.setdefault(rank, []).append(candidate)
    return Order(
        MINIMAL_DISTANCE,
        tuple(Group(rank[1], tuple(groups[rank])) for rank in sorted(groups)),
        left_out,
        f"no seed that fits is near region {demand.region!r}"
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


def _other_provider(candidate: SeedCandidate, demand: Demand) -> str:
    kind = candidate.seed.spec.provider.type
    return "" if kind == demand.provider else f"its provider {kind!r} is not the shoot's"


def _other_region(candidate: SeedCandidate, demand: Demand) -> str:
    region = candidate.seed.spec.provider.region
    return "" if region == demand.region else f"its region {region!r} is not the shoot's"
