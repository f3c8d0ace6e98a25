"""Users' own filters as rows of the table."""

from typing import Any

import msgspec

from gardenbus.common.api.bitsets import Bitset
from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.filters.row import Filter
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.seed_index import SeedIndex
from gardenbus.scheduling.user_filters import SeedFilter, reason_of


def user_row(seed_filter: SeedFilter) -> Filter:
    """The row of one filter. Its exceptions are passed on; it sees only seeds that have passed all rows before."""

    def reason(context: FilterContext, candidate: SeedCandidate) -> str:
        return reason_of(seed_filter, _input_of(context), candidate.document) or ""

    def narrow(context: FilterContext, index: SeedIndex, bits: Bitset) -> Bitset:
        value = _input_of(context)
        return index.bits_of(seed for seed in index.seeds_in(bits) if not reason_of(seed_filter, value, seed.document))

    def _input_of(context: FilterContext) -> Any:
        inputs = dict(context.constraints.filter_inputs)
        return msgspec.json.decode(inputs[seed_filter.name]) if seed_filter.name in inputs else None

    return Filter(
        seed_filter.name,
        removes="a user's own filter rejects",
        unblocked_by=("seed",),
        reason=reason,
        narrow=narrow,
        suggestion=lambda context, seeds, rejected: (
            f"{seeds} comes to satisfy the filter {seed_filter.name} ({reason(context, rejected[0])})"
        ),
    )
