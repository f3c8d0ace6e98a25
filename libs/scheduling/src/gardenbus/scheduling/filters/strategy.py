"""The strategy must be able to rank the seed: it is neither of another provider or region, nor too far away."""

from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.filters.row import Filter
from gardenbus.scheduling.seed_candidates import SeedCandidate


def _reason(context: FilterContext, candidate: SeedCandidate) -> str:
    provider = candidate.seed.spec.provider
    rank = context.ranking.rank(provider.type, provider.region)
    return rank if isinstance(rank, str) else ""


STRATEGY = Filter(
    "strategy",
    removes="the strategy cannot rank: of another provider or region, or too far away",
    unblocked_by=("seed", "configmap"),
    reason=_reason,
)
