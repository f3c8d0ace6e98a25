"""The labels that a shoot requires of its seed, and those that a profile's addedAffinity requires for some purposes."""

from collections.abc import Sequence

from gardenbus.common.api.bitsets import Bitset
from gardenbus.common.api.garden.scheduling_profiles import SEED_AFFINITY_FILTER, AddedAffinity
from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.filters.row import Filter, indexed
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.seed_index import SeedIndex


def affinity_row(added: Sequence[AddedAffinity] = ()) -> Filter:
    """The row of one profile: of what the shoot requires, and of each entry that concerns it, one term must match."""

    def reason(context: FilterContext, candidate: SeedCandidate) -> str:
        purpose, labels = context.constraints.purpose, candidate.seed.metadata.labels
        own = context.constraints.required_seeds
        if own and not any(term.meets(labels) for term in own):
            return f"its labels do not match what the shoot requires: {' or '.join(map(str, own))}"
        for each in added:
            if each.required and each.concerns(purpose) and not any(term.meets(labels) for term in each.required):
                wanted = " or ".join(map(str, each.required))
                about = f" of purpose {purpose}" if each.purposes else ""
                return f"its labels do not match what the profile requires for shoots{about}: {wanted}"
        return ""

    by_labels = indexed(
        SEED_AFFINITY_FILTER,
        reason,
        lambda context: (tuple(added), context.constraints.purpose, context.constraints.required_seeds),
    )

    def narrow(context: FilterContext, index: SeedIndex, bits: Bitset) -> Bitset:
        return by_labels(context, index, bits) if added or context.constraints.required_seeds else bits

    return Filter(
        SEED_AFFINITY_FILTER,
        removes="lack the labels that the shoot, or the profile's addedAffinity, requires",
        unblocked_by=("seed",),
        reason=reason,
        narrow=narrow,
        suggestion=lambda _context, seeds, _: f"{seeds} gets the labels that the shoot, or its profile, requires",
    )


SEED_AFFINITY = affinity_row()
