"""Plug-ins of users: the seeds that they reject for a class of shoots."""

from gardenbus.common.api.bitsets import Bitset
from gardenbus.common.api.garden.scheduling_profiles import PLUGIN_FILTER
from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.filters.row import Filter
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.seed_index import SeedIndex


def _reason(context: FilterContext, candidate: SeedCandidate) -> str:
    return context.replies.rejection(candidate.name)


def _narrow(context: FilterContext, index: SeedIndex, bits: Bitset) -> Bitset:
    rejected = {name for reply in context.replies.by_plugin.values() for name in reply.rejected}
    slots = (index.slots.get(name) for name in rejected)
    for slot in slots:
        if slot is not None:
            bits &= ~(1 << slot)
    return bits


PLUGINS = Filter(
    PLUGIN_FILTER,
    removes="a plug-in rejects",
    unblocked_by=("seed",),
    reason=_reason,
    narrow=_narrow,
    suggestion=lambda context, seeds, rejected: f"the plug-in lets {seeds} through ({_reason(context, rejected[0])})",
)
