"""Which placements a change of a cluster touches: those whose decision may come out differently, and no other."""

from gardenbus.common.resources.member_clusters import MemberCluster
from gardenbus.common.resources.placement_parts import PolicySnapshot, ResourceBinding
from gardenbus.common.resources.placements import Placement


def may_change(
    placement: Placement,
    snapshot: PolicySnapshot,
    old: MemberCluster | None,
    new: MemberCluster | None,
    *,
    was: float,
    now: float,
) -> bool:
    """Whether a cluster's change from `old` (as of `was`, unix seconds) to `new` (as of `now`) may change the decision.

    None is a cluster that is not there. The same cluster at two times covers heartbeats that went stale.
    """
    del placement, snapshot, was, now
    return old != new


def binding_may_change(snapshot: PolicySnapshot, old: ResourceBinding | None, new: ResourceBinding | None) -> bool:
    """Whether a binding's change calls for another cycle: it began to be deleted, went, or replaces another."""
    del snapshot
    return old != new
