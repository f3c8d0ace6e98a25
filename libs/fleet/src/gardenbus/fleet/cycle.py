"""One scheduling cycle: a placement's policy, the fleet and the bindings in, what to write out."""

from collections.abc import Sequence

from gardenbus.common.resources.placement_parts import PolicySnapshot, ResourceBinding
from gardenbus.common.resources.placements import Placement
from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.outcome import Cycle, UnexpectedState


def decide(
    placement: Placement, snapshot: PolicySnapshot, fleet: Fleet, bindings: Sequence[ResourceBinding], now: float
) -> Cycle:
    """Decide on which clusters a placement is, by its policy snapshot.

    `bindings` are all of the placement's, deleting ones too; `now` is unix seconds. Raises UnexpectedState when a
    policy cannot be evaluated or what is stored contradicts itself.
    """
    raise UnexpectedState(f"{placement.key} {snapshot.metadata.name} {len(fleet)} {len(bindings)} {now}")
