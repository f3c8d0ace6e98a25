"""The shoot's networks must not overlap with the seed's; ranges differ from shoot to shoot."""

from gardenbus.common.api.garden.shoot_networks import network_problems
from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.filters.row import Filter
from gardenbus.scheduling.seed_candidates import SeedCandidate


def _reason(context: FilterContext, candidate: SeedCandidate) -> str:
    problems = network_problems(context.ranges, candidate.seed.spec.networks)
    return f"invalid networks: {'; '.join(problems)}" if problems else ""


NETWORKS = Filter(
    "networks",
    removes="have ranges that overlap with the shoot's",
    unblocked_by=("seed",),
    reason=_reason,
)
