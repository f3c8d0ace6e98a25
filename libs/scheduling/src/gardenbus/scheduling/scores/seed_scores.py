"""The scores of one seed, one after the other: levels are made of them, and decision records keep them."""

from collections.abc import Mapping

from gardenbus.common.api.garden.scheduling_profiles import SHOOTS, BalancedAllocation, ResourcesFit, WeightedScore
from gardenbus.common.api.garden.scheduling_requirements import Requests
from gardenbus.scheduling.results import SeedScore
from gardenbus.scheduling.score_table import ScoreTable
from gardenbus.scheduling.scores.class_scores import ClassScore
from gardenbus.scheduling.scores.formulas import Amount, balance_score, fit_score
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.usage_index import UsageIndex


def scores_of(
    table: ScoreTable,
    by_class: Mapping[str, ClassScore],
    seed: SeedCandidate,
    usage: UsageIndex,
    requests: Requests = (),
) -> tuple[SeedScore, ...]:
    """All scores of a profile in its order, for a seed with its usage besides this shoot."""
    return tuple(
        SeedScore(
            each.name,
            each.weight,
            usage_score(each, seed, usage, requests) if each.reads_usage else by_class[each.name].score(seed),
        )
        for each in table.plugins
    )


def usage_score(plugin: WeightedScore, seed: SeedCandidate, usage: UsageIndex, requests: Requests = ()) -> int:
    """The score of a plug-in that reads usage. A resource counts where the seed states, and the shoot requests it."""
    amounts = {SHOOTS: Amount(seed.capacity, usage.get(seed.name, 0), 1)} if seed.capacity else {}
    if requests:
        taken = usage.taken(seed.name)
        for resource, amount in requests:
            if stated := seed.allocatable.get(resource):
                amounts[resource] = Amount(stated, taken.get(resource, 0), amount)
    match plugin.args:
        case ResourcesFit() as args:
            return fit_score(args, amounts)
        case BalancedAllocation() as args:
            return balance_score(args.resources, amounts)
        case _:
            raise AssertionError(f"{plugin.name} reads no usage")
