"""The labels that an operator requires of the seeds for shoots of some purposes, by the profile's addedAffinity."""

from collections.abc import Sequence

from gardenbus.common.api.garden.scheduling_profiles import SEED_AFFINITY_FILTER, AddedAffinity
from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.filters.row import Filter, indexed
from gardenbus.scheduling.seed_candidates import SeedCandidate


def affinity_row(added: Sequence[AddedAffinity]) -> Filter:
    """The row of one profile: of each entry that concerns the shoot, one of the required terms must match."""

    def reason(context: FilterContext, candidate: SeedCandidate) -> str:
        purpose, labels = context.constraints.purpose, candidate.seed.metadata.labels
        for each in added:
            if each.required and each.concerns(purpose) and not any(term.meets(labels) for term in each.required):
                wanted = " or ".join(map(str, each.required))
                about = f" of purpose {purpose}" if each.purposes else ""
                return f"its labels do not match what the profile requires for shoots{about}: {wanted}"
        return ""

    return Filter(
        SEED_AFFINITY_FILTER,
        removes="lack the labels that the profile's addedAffinity requires",
        unblocked_by=("seed",),
        reason=reason,
        narrow=indexed(SEED_AFFINITY_FILTER, reason, lambda context: (tuple(added), context.constraints.purpose)),
        suggestion=lambda _context, seeds, _: f"{seeds} gets the labels that addedAffinity of the profile requires",
    )
