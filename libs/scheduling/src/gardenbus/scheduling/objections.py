"""All that speaks against a seed, not only the first rule that does: what people ask who want to change it. Pure."""

from collections.abc import Mapping, Sequence

from gardenbus.common.resources.fitting import taint_problem
from gardenbus.common.resources.shoot_networks import network_problems
from gardenbus.scheduling.landscape import Snapshot
from gardenbus.scheduling.outcome import Refusal, Rejection
from gardenbus.scheduling.request import SchedulingRequest
from gardenbus.scheduling.rules import CAPACITY, FILTERS, NETWORKS, STRATEGY, TAINTS, capacity
from gardenbus.scheduling.shortlist import filter_objections, inquiry_of
from gardenbus.scheduling.strategies import measure_of

Objections = Mapping[str, Sequence[Rejection]]


def objections_to_all(request: SchedulingRequest, snapshot: Snapshot) -> Objections:
    """Each seed's name → what every rule by itself has against it; a seed without any would be chosen from.

    Empty when the profile or the Project is missing: then it is no matter of seeds. A rule that compares seeds (zones
    preferred, domains) compares all that there are.
    """
    landscape = snapshot.landscape
    inquiry = inquiry_of(request.demand, landscape)
    if isinstance(inquiry, Refusal):
        return {}
    found: dict[str, list[Rejection]] = {seed.name: [] for seed in landscape.seeds}
    for rule in FILTERS:
        for name, detail in rule.apply(inquiry, landscape.seeds).rejected.items():
            found[name].append(Rejection(name, rule.name, detail))
    measure = measure_of(request.demand, landscape)
    for seed in landscape.seeds:
        if problems := network_problems(request.ranges, seed.seed.spec.networks):
            found[seed.name].append(Rejection(seed.name, NETWORKS, f"invalid networks: {'; '.join(problems)}"))
        if detail := taint_problem(inquiry.tolerations, seed.seed.spec.taints):
            found[seed.name].append(Rejection(seed.name, TAINTS, detail))
        found[seed.name] += filter_objections(request.demand, seed, landscape)
        if detail := capacity.problem(snapshot.usage.get(seed.name, 0), seed.capacity):
            found[seed.name].append(Rejection(seed.name, CAPACITY, detail))
        rank = measure.rank(seed.seed.spec.provider.type, seed.seed.spec.provider.region)
        if isinstance(rank, str):
            found[seed.name].append(Rejection(seed.name, STRATEGY, rank))
    return found
