"""Scores by the members of groups near each seed, for a shoot that prefers some: in the place of those of its class."""

from collections.abc import Callable, Mapping

from gardenbus.common.api.bitsets import Bitset
from gardenbus.common.api.garden.scheduling_profiles import ShootAffinity, TopologySpread
from gardenbus.common.api.garden.shoot_groups import NO_GROUP_RULES, GroupScores
from gardenbus.scheduling.equivalence_classes import SchedulingRequest
from gardenbus.scheduling.feasible_seeds import feasible_seeds_of
from gardenbus.scheduling.room import has_room
from gardenbus.scheduling.scores.class_scores import Cells, ClassScore, cells_of
from gardenbus.scheduling.seed_index import Grades, SeedIndex
from gardenbus.scheduling.snapshot import Landscape, Snapshot


def group_scores_of(request: SchedulingRequest, snapshot: Snapshot) -> Mapping[str, ClassScore]:
    """The scores of a shoot's preferences by the name of the plug-in; none where it or the profile has none."""
    if request.rules is NO_GROUP_RULES or not request.rules.prefers:
        return {}
    landscape, rules = snapshot.landscape, request.rules
    plugins = [each for each in landscape.scores.static if isinstance(each.args, TopologySpread | ShootAffinity)]
    if not plugins:
        return {}
    feasible = 0
    for group in feasible_seeds_of(request.constraints, landscape).groups:
        feasible |= group.feasible
    seeds = landscape.index.seeds_in(feasible)
    scores = GroupScores(
        rules,
        snapshot.groups.of(request.constraints.namespace, rules),
        landscape.domain,
        (seed.name for seed in seeds if has_room(seed, snapshot.usage, request.requests)),
    )
    spread = _score(scores.spread, feasible, is_requested=bool(rules.preferred_spread))
    affinity = _score(
        scores.affinity, feasible, is_requested=bool(rules.preferred_affinity or rules.preferred_anti_affinity)
    )
    return {each.name: spread if isinstance(each.args, TopologySpread) else affinity for each in plugins}


def cells_with(
    scores: Mapping[str, ClassScore], by_class: Mapping[str, ClassScore], landscape: Landscape, seeds: Bitset
) -> Cells:
    """Some seeds by the sum of the scores that read no usage, those of a shoot's preferences among them."""
    return cells_of(landscape.scores.static, {**by_class, **scores}, landscape.index, seeds)


def _score(points: Callable[[str], int], feasible: Bitset, *, is_requested: bool) -> ClassScore:
    def grades(index: SeedIndex) -> Grades:
        graded: dict[int, Bitset] = {}
        for seed in index.seeds_in(feasible):
            score = points(seed.name)
            graded[score] = graded.get(score, 0) | 1 << index.slots[seed.name]
        return graded

    return ClassScore(lambda seed: points(seed.name), grades, is_requested)
