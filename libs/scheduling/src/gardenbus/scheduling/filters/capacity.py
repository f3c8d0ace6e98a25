"""A seed takes shoots while there are fewer than status.allocatable.shoots, and it has what they request besides."""

from collections.abc import Sequence

from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.filters.row import Filter
from gardenbus.scheduling.room import full_because, lacking_because
from gardenbus.scheduling.seed_candidates import SeedCandidate


def _reason(context: FilterContext, candidate: SeedCandidate) -> str:
    full = full_because(context.usage.get(candidate.name, 0), candidate.capacity)
    return full or lacking_because(context.usage.taken(candidate.name), candidate.allocatable, context.requests)


def _suggestion(context: FilterContext, seeds: str, rejected: Sequence[SeedCandidate]) -> str:
    usage = context.usage
    resources = [
        each[0]
        for each in context.requests
        if any(lacking_because(usage.taken(seed.name), seed.allocatable, (each,)) for seed in rejected)
    ]
    if not resources:
        return f"a shoot leaves {seeds}, or status.allocatable.shoots is raised there"
    return f"a shoot leaves {seeds}, status.allocatable ({', '.join(resources)}) is raised there, or less is requested"


CAPACITY = Filter(
    "capacity",
    removes="are full, or have too little left of a resource that is requested",
    unblocked_by=("seed", "usage"),
    reason=_reason,
    suggestion=_suggestion,
)
