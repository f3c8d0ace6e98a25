"""Scores that depend on the class of a shoot and on the seed: kept as sets of seeds of equal score."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from gardenbus.common.api.bitsets import Bitset
from gardenbus.common.api.garden.scheduling_profiles import (
    AnnotationScore,
    BalancedAllocation,
    PreferredSeeds,
    RegionDistance,
    RemotePlugin,
    ResourcesFit,
    SeedAffinity,
    ShootAffinity,
    TopologySpread,
    WeightedScore,
    ZoneFit,
)
from gardenbus.scheduling.equivalence_classes import Constraints
from gardenbus.scheduling.plugin_replies import NO_REPLY
from gardenbus.scheduling.scores.formulas import affinity_score, annotation_score, distance_score, zone_score
from gardenbus.scheduling.scores.region_distance import FARTHEST
from gardenbus.scheduling.scores.strategies import configured_distances, named_distance
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.seed_index import Grades, SeedIndex, SeedPart
from gardenbus.scheduling.snapshot import Landscape

Cells = tuple[tuple[int, Bitset], ...]
"""Seeds by the sum of their scores, best first."""


@dataclass(frozen=True, slots=True)
class ClassScore:
    """One score for one class: of a seed, and of all seeds of an index at once.

    `is_requested` is false where shoots of the class ask for nothing that it could tell seeds apart by.
    """

    score: Callable[[SeedCandidate], int]
    grades: Callable[[SeedIndex], Grades]
    is_requested: bool = True


def _class_score(plugin: WeightedScore, constraints: Constraints, landscape: Landscape) -> ClassScore:
    """The score of a plug-in that reads no usage."""
    match plugin.args:
        case RegionDistance() as args:
            return _distance(args, constraints, landscape)
        case SeedAffinity() as args:
            return _affinity(_preferred(args, constraints))
        case ZoneFit():
            return _zones(is_zonal=constraints.is_zonal)
        case AnnotationScore() as args:
            return _annotation(args)
        case RemotePlugin() as args:
            reply = landscape.replies_of(constraints).of(plugin.name) if "Score" in args.points else NO_REPLY
            return _of_plugin(reply.scores)
        case TopologySpread() | ShootAffinity():  # those of a shoot that states any: group_scores
            return ClassScore(lambda _: 0, lambda index: {0: index.present}, is_requested=False)
        case ResourcesFit() | BalancedAllocation():
            raise AssertionError(f"{plugin.name} reads usage")
        case _:
            assert_never(plugin.args)


def class_scores(constraints: Constraints, landscape: Landscape) -> Mapping[str, ClassScore]:
    """The scores of the landscape's profile that read no usage, by name."""
    return {each.name: _class_score(each, constraints, landscape) for each in landscape.scores.static}


def cells_of(
    plugins: Sequence[WeightedScore], scores: Mapping[str, ClassScore], index: SeedIndex, seeds: Bitset
) -> Cells:
    """Some seeds by the weighted sum of these scores."""
    cells: dict[int, Bitset] = {0: seeds}
    for plugin in plugins:
        finer: dict[int, Bitset] = {}
        for score, graded in scores[plugin.name].grades(index).items():
            for total, bits in cells.items():
                if both := bits & graded:
                    more = total + plugin.weight * score
                    finer[more] = finer.get(more, 0) | both
        cells = finer
    return tuple(sorted(cells.items(), reverse=True))


def _distance(args: RegionDistance, constraints: Constraints, landscape: Landscape) -> ClassScore:
    distance = _distances(constraints, landscape)
    found = (distance(kind, region) for kind, region in landscape.index.regions if region)
    farthest = args.farthest
    if farthest is None:
        farthest = max((each for each in found if each is not None), default=0)

    def score(seed: SeedCandidate) -> int:
        provider = seed.seed.spec.provider
        return distance_score(distance(provider.type, provider.region), farthest)

    def grades(index: SeedIndex) -> Mapping[int, Bitset]:
        graded: dict[int, Bitset] = {}
        for region, seeds in index.regions.items():
            points = distance_score(distance(*region), farthest)
            graded[points] = graded.get(points, 0) | seeds
        return graded

    return ClassScore(score, grades)


def _distances(constraints: Constraints, landscape: Landscape) -> Callable[[str, str], int | None]:
    """Distance of a region, None where there is none: too far by name, or not in a region ConfigMap that counts."""
    try:
        configured = configured_distances(constraints, landscape)
    except ValueError:
        return lambda _kind, _region: None
    if configured:
        return lambda _kind, region: configured.get(region)

    def by_name(kind: str, region: str) -> int | None:
        distance = named_distance(kind, region, constraints)
        return distance if distance <= FARTHEST else None

    return by_name


def _preferred(args: SeedAffinity, constraints: Constraints) -> tuple[PreferredSeeds, ...]:
    added = (term for each in args.added if each.concerns(constraints.purpose) for term in each.preferred)
    return (*constraints.preferred_seeds, *added)


def _affinity(preferred: tuple[PreferredSeeds, ...]) -> ClassScore:
    def score(seed: SeedCandidate) -> int:
        return affinity_score(preferred, seed.seed.metadata.labels)

    keys = tuple(sorted({key for each in preferred for key in each.preference.keys}))
    labels = SeedPart(("labels", keys), lambda seed: tuple(map(seed.seed.metadata.labels.get, keys)))
    return _graded(("SeedAffinity", preferred), score, labels, is_requested=bool(preferred))


def _zones(*, is_zonal: bool) -> ClassScore:
    def score(seed: SeedCandidate) -> int:
        return zone_score(len(seed.seed.spec.provider.zones), is_zonal=is_zonal)

    zones = SeedPart("zone-count", lambda seed: len(seed.seed.spec.provider.zones))
    return _graded(("SeedZoneFit", is_zonal), score, zones, is_requested=not is_zonal)


def _annotation(args: AnnotationScore) -> ClassScore:
    def score(seed: SeedCandidate) -> int:
        return annotation_score(args, seed.seed.metadata.annotations)

    name = args.annotation
    annotation = SeedPart(("annotation", name), lambda seed: seed.seed.metadata.annotations.get(name))
    return _graded(("SeedAnnotation", args), score, annotation, is_requested=True)


def _of_plugin(scores: Mapping[str, int]) -> ClassScore:
    def grades(index: SeedIndex) -> Mapping[int, Bitset]:
        graded: dict[int, Bitset] = {0: index.present}
        for name, points in scores.items():
            if points and (slot := index.slots.get(name)) is not None:
                graded[0] &= ~(1 << slot)
                graded[points] = graded.get(points, 0) | 1 << slot
        return graded

    return ClassScore(lambda seed: scores.get(seed.name, 0), grades)


def _graded(
    key: tuple[object, ...], score: Callable[[SeedCandidate], int], reads: SeedPart, *, is_requested: bool
) -> ClassScore:
    return ClassScore(score, lambda index: index.graded(key, score, reads), is_requested)
