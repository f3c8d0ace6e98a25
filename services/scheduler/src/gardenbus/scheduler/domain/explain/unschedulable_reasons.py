"""All filters that reject a seed, not only the first: for people who want to change the seed."""

from collections.abc import Mapping, Sequence

from gardenbus.scheduling.equivalence_classes import SchedulingRequest
from gardenbus.scheduling.filters.context import filter_context_of
from gardenbus.scheduling.filters.strategy import STRATEGY
from gardenbus.scheduling.filters.table import FILTERS, checks_with
from gardenbus.scheduling.group_checks import group_checks_of
from gardenbus.scheduling.results import SeedRejection, Unschedulable
from gardenbus.scheduling.snapshot import Snapshot

UnschedulableReasons = Mapping[str, Sequence[SeedRejection]]


def unschedulable_reasons(request: SchedulingRequest, snapshot: Snapshot) -> UnschedulableReasons:
    """Each seed's name → the rejections by every filter on its own; a seed without any would be chosen from.

    Empty when the profile or the Project is missing: no seed can change that. A filter that compares seeds (zones
    preferred, domains) compares all that there are.
    """
    landscape = snapshot.landscape
    shared = filter_context_of(request.constraints, landscape)
    if isinstance(shared, Unschedulable):
        return {}
    context = shared.with_request(request, snapshot, group_checks_of(request, snapshot))
    index = landscape.index
    found: dict[str, list[SeedRejection]] = {seed.name: [] for seed in landscape.seeds}
    for row in (*FILTERS, *checks_with(landscape), STRATEGY):
        seeds = (
            landscape.seeds
            if row.narrow is None
            else index.seeds_in(index.present & ~row.narrow(shared, index, index.present))
        )
        for seed in seeds:
            if detail := row.reason(context, seed):
                found[seed.name].append(SeedRejection(seed.name, row.name, detail))
    return found
