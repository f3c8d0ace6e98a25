"""Scores by the members of groups near each seed, for a shoot that prefers some: in the place of those of its class."""

from collections.abc import Mapping

from gardenbus.common.api.bitsets import Bitset
from gardenbus.common.api.garden.scheduling_profiles import ShootAffinity, TopologySpread
from gardenbus.common.api.garden.shoot_groups import NO_GROUP_RULES
from gardenbus.scheduling.equivalence_classes import SchedulingRequest
from gardenbus.scheduling.feasible_seeds import feasible_seeds_of
from gardenbus.scheduling.group_domains import GroupDomains
from gardenbus.scheduling.scores.class_scores import Cells, ClassScore, cells_of
from gardenbus.scheduling.scores.usage_levels import open_seeds
from gardenbus.scheduling.seed_candidates import SeedCandidate
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
    domains = GroupDomains(rules, snapshot.groups.of(request.constraints.namespace, rules), landscape)
    index, feasible = landscape.index, feasible_seeds_of(request.constraints, landscape).feasible
    grades_of_spread: Grades = {0: index.present}
    if rules.preferred_spread:
        is_open = open_seeds(request.requests, scores=landscape.scores, usage=snapshot.usage, index=index)
        grades_of_spread = domains.spread_grades(index.present, feasible & is_open)
    spread = _score(grades_of_spread, index, is_requested=bool(rules.preferred_spread))
    affinity = _score(
        domains.affinity_grades(index.present),
        index,
        is_requested=bool(rules.preferred_affinity or rules.preferred_anti_affinity),
    )
    return {each.name: spread if isinstance(each.args, TopologySpread) else affinity for each in plugins}


def cells_with(
    scores: Mapping[str, ClassScore], by_class: Mapping[str, ClassScore], landscape: Landscape, seeds: Bitset
) -> Cells:
    """Some seeds by the sum of the scores that read no usage, those of a shoot's preferences among them."""
    return cells_of(landscape.scores.static, {**by_class, **scores}, landscape.index, seeds)


def _score(grades: Grades, index: SeedIndex, *, is_requested: bool) -> ClassScore:
    def score(seed: SeedCandidate) -> int:
        slot = index.slots[seed.name]
        return next((points for points, seeds in grades.items() if seeds >> slot & 1), 0)

    return ClassScore(score, lambda _: grades, is_requested)
