"""The scores of one seed, one after the other: levels are made of them, and decision records keep them."""

from collections.abc import Mapping

from gardenbus.common.api.garden.scheduling_profiles import SHOOTS, BalancedAllocation, ResourcesFit, WeightedScore
from gardenbus.scheduling.results import SeedScore
from gardenbus.scheduling.score_table import ScoreTable
from gardenbus.scheduling.scores.class_scores import ClassScore
from gardenbus.scheduling.scores.formulas import Amount, balance_score, fit_score
from gardenbus.scheduling.seed_candidates import SeedCandidate


def scores_of(
    table: ScoreTable, by_class: Mapping[str, ClassScore], seed: SeedCandidate, used: int
) -> tuple[SeedScore, ...]:
    """All scores of a profile in its order, for a seed with so many shoots besides this one."""
    return tuple(
        SeedScore(
            each.name,
            each.weight,
            usage_score(each, seed, used) if each.reads_usage else by_class[each.name].score(seed),
        )
        for each in table.plugins
    )


def usage_score(plugin: WeightedScore, seed: SeedCandidate, used: int) -> int:
    """The score of a plug-in that reads usage, for a seed with so many shoots."""
    amounts = {SHOOTS: Amount(seed.capacity, used, 1)} if seed.capacity else {}
    match plugin.args:
        case ResourcesFit() as args:
            return fit_score(args, amounts)
        case BalancedAllocation() as args:
            return balance_score(args.resources, amounts)
        case _:
            raise AssertionError(f"{plugin.name} reads no usage")
