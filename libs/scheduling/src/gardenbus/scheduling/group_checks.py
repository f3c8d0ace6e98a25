"""The rules between shoots on a snapshot: which seeds they leave to a shoot."""

from gardenbus.common.api.bitsets import Bitset
from gardenbus.common.api.garden.shoot_groups import NO_GROUP_RULES, GroupChecks
from gardenbus.scheduling.equivalence_classes import SchedulingRequest
from gardenbus.scheduling.feasible_seeds import feasible_seeds_of
from gardenbus.scheduling.group_domains import GroupDomains
from gardenbus.scheduling.room import has_room
from gardenbus.scheduling.scores.usage_levels import open_seeds
from gardenbus.scheduling.snapshot import Snapshot


def group_checks_of(request: SchedulingRequest, snapshot: Snapshot) -> GroupChecks | None:
    """The rules of a shoot on the present counts; None where it has none."""
    if request.rules is NO_GROUP_RULES:
        return None
    landscape = snapshot.landscape
    eligible = landscape.index.seeds_in(feasible_seeds_of(request.constraints, landscape).feasible)
    return GroupChecks(
        request.rules,
        snapshot.groups.of(request.constraints.namespace, request.rules),
        landscape.domain,
        eligible=[seed.name for seed in eligible],
        open_seeds={seed.name for seed in eligible if has_room(seed, snapshot.usage, request.requests)},
    )


def allowed_seeds(request: SchedulingRequest, snapshot: Snapshot, feasible: Bitset) -> Bitset:
    """The seeds that all rules of a shoot let it onto, of those that its class may use."""
    if request.rules is NO_GROUP_RULES:
        return feasible
    landscape, rules = snapshot.landscape, request.rules
    domains = GroupDomains(rules, snapshot.groups.of(request.constraints.namespace, rules), landscape)
    has_room = 0
    if rules.ignores_full:
        scores, index = landscape.scores, landscape.index
        has_room = open_seeds(request.requests, scores=scores, usage=snapshot.usage, index=index)
    return domains.allowed(feasible, eligible=feasible, open_seeds=has_room)
