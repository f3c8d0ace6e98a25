"""The rules between shoots on a snapshot: which seeds they leave to a shoot."""

from gardenbus.common.api.bitsets import Bitset
from gardenbus.common.api.garden.shoot_groups import NO_GROUP_RULES, GroupChecks
from gardenbus.scheduling.equivalence_classes import SchedulingRequest
from gardenbus.scheduling.feasible_seeds import feasible_seeds_of
from gardenbus.scheduling.room import has_room
from gardenbus.scheduling.snapshot import Snapshot


def group_checks_of(request: SchedulingRequest, snapshot: Snapshot) -> GroupChecks | None:
    """The rules of a shoot on the present counts; None where it has none."""
    if request.rules is NO_GROUP_RULES:
        return None
    landscape, feasible = snapshot.landscape, 0
    for group in feasible_seeds_of(request.constraints, landscape).groups:
        feasible |= group.feasible
    eligible = landscape.index.seeds_in(feasible)
    return GroupChecks(
        request.rules,
        snapshot.groups.of(request.constraints.namespace, request.rules),
        landscape.domain,
        eligible=[seed.name for seed in eligible],
        open_seeds={seed.name for seed in eligible if has_room(seed, snapshot.usage, request.requests)},
    )


def allowed_by(checks: GroupChecks, seeds: Bitset, snapshot: Snapshot) -> Bitset:
    """Those of some seeds that all rules let the shoot onto."""
    index = snapshot.landscape.index
    return index.bits_of(seed for seed in index.seeds_in(seeds) if checks.allow(seed.name))
