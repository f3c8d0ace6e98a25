"""Strategies: rank seeds by provider and region, down to groups of equals that usage decides between."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from gardenbus.common.api.bitsets import Bitset
from gardenbus.common.api.garden.strategies import MINIMAL_DISTANCE, SAME_REGION, WEIGHTED
from gardenbus.scheduling.equivalence_classes import Constraints
from gardenbus.scheduling.scores.region_distance import FARTHEST, OTHER_PROVIDER, distance_by_name, parse_distances
from gardenbus.scheduling.seed_index import SeedIndex
from gardenbus.scheduling.snapshot import Landscape

TESTING = "Testing"


Rank = tuple[int, int] | str


class SeedRanking(NamedTuple):
    """Ranks seeds by provider type and region: smaller is nearer, a text is the reason why a seed is no candidate.

    `has_distances`: the second number of a rank is the seed's distance. `none_left` is for the case that no seed fits.
    """

    strategy: str
    rank: Callable[[str, str], Rank]
    has_distances: bool
    none_left: str

    def groups(self, index: SeedIndex, candidates: Bitset) -> list[tuple[int | None, Bitset]]:
        """The candidates that can be ranked, by distance (None when the strategy measures none), nearest first."""
        ranks: dict[tuple[int, int], Bitset] = {}
        for region, seeds in index.regions.items():
            if here := seeds & candidates:
                rank = self.rank(*region)
                if not isinstance(rank, str):
                    ranks[rank] = ranks.get(rank, 0) | here
        return [(rank[1] if self.has_distances else None, ranks[rank]) for rank in sorted(ranks)]


def ranking_of(constraints: Constraints, landscape: Landscape) -> SeedRanking:
    """The ranking for one class. Source: `determineCandidatesWithStrategy` of Gardener."""
    if constraints.is_testing:
        return _within_provider(constraints)
    if landscape.strategy == MINIMAL_DISTANCE:
        return _minimal_distance(constraints, landscape)
    if landscape.strategy == WEIGHTED:
        return _weighted(constraints, landscape)
    return _same_region(constraints)


def _within_provider(constraints: Constraints) -> SeedRanking:
    def rank(kind: str, _region: str) -> Rank:
        return _other_provider(kind, constraints) or (0, 0)

    return SeedRanking(
        TESTING,
        rank,
        has_distances=False,
        none_left=f"no seed that fits has the provider {constraints.provider!r}, which shoots for testing never leave",
    )


def _same_region(constraints: Constraints) -> SeedRanking:
    def rank(kind: str, region: str) -> Rank:
        return _other_provider(kind, constraints) or _other_region(region, constraints) or (0, 0)

    return SeedRanking(
        SAME_REGION,
        rank,
        has_distances=False,
        none_left=(
            f"no seed that fits is of provider {constraints.provider!r} in region {constraints.region!r}"
            f" (strategy SameRegion, cloud profile {constraints.profile!r})"
        ),
    )


def _minimal_distance(constraints: Constraints, landscape: Landscape) -> SeedRanking:
    """Rank by the region ConfigMap; seeds whose region it lacks come last, by their regions' names.

    That equals comparing names only when no seed of the ConfigMap is left.
    """
    try:
        distances = configured_distances(constraints, landscape)
    except ValueError as error:
        problem = str(error)

        def reject(_kind: str, _region: str) -> Rank:
            return problem

        return SeedRanking(MINIMAL_DISTANCE, reject, has_distances=True, none_left=problem)

    def rank(kind: str, region: str) -> Rank:
        if region in distances:
            return (0, distances[region])
        by_name = (1, named_distance(kind, region, constraints))
        return by_name if by_name <= (1, FARTHEST) else f"its region {region!r} is too far away"

    return SeedRanking(
        MINIMAL_DISTANCE,
        rank,
        has_distances=True,
        none_left=f"no seed that fits is near region {constraints.region!r}"
        f" (strategy MinimalDistance, cloud profile {constraints.profile!r})",
    )


def _weighted(constraints: Constraints, landscape: Landscape) -> SeedRanking:
    """One group of all seeds that MinimalDistance can rank."""
    by_distance = _minimal_distance(constraints, landscape)

    def rank(kind: str, region: str) -> Rank:
        near = by_distance.rank(kind, region)
        return near if isinstance(near, str) else (0, 0)

    none_left = by_distance.none_left.replace(f"strategy {MINIMAL_DISTANCE}", f"strategy {WEIGHTED}")
    return SeedRanking(WEIGHTED, rank, has_distances=False, none_left=none_left)


def named_distance(kind: str, region: str, constraints: Constraints) -> int:
    """Distance of a provider's region to the shoot's by their names."""
    return distance_by_name(region, constraints.region) + (0 if kind == constraints.provider else OTHER_PROVIDER)


def configured_distances(constraints: Constraints, landscape: Landscape) -> Mapping[str, int]:
    """Region → distance by the region ConfigMap, empty where it lacks the shoot's. Raises ValueError if malformed."""
    configmaps = landscape.region_configmaps_of(constraints.profile)
    text = configmaps[0].data.get(constraints.region) if configmaps else None
    if not text:
        return {}
    try:
        distances = parse_distances(text)
    except ValueError as error:
        name = configmaps[0].metadata.name
        raise ValueError(
            f"the region ConfigMap garden/{name} is malformed at region {constraints.region!r}: {error}"
        ) from error
    return {constraints.region: 0, **distances}


def _other_provider(kind: str, constraints: Constraints) -> str:
    return "" if kind == constraints.provider else f"its provider {kind!r} is not the shoot's"


def _other_region(region: str, constraints: Constraints) -> str:
    return "" if region == constraints.region else f"its region {region!r} is not the shoot's"
