"""Which placements a change of a cluster or a binding touches: those whose decision may come out differently, no other.

| placement | is touched when |
|---|---|
| any whose decision is not known, or could not be made | anything changed that policies look at |
| any that is on the cluster | it left, or stopped or began to match what the policy requires always |
| PickAll | it became, or ceased to be, one to choose |
| PickFixed | the policy names it, and it came, went, or changed in eligibility |
| PickN that lacks clusters | the same as for PickAll, or the domains of its hard spread constraints changed |

KubeFleet looks at fewer changes (a taint that is added and a heartbeat that goes stale touch nothing there) and, for
those that it looks at, at every PickAll and every unfulfilled placement. Source: `pkg/scheduler/watchers`.
"""

from typing import Self

from gardenbus.common.resources.member_clusters import MemberCluster
from gardenbus.common.resources.placement_parts import PolicySnapshot, ResourceBinding
from gardenbus.common.resources.placements import PICK_FIXED, PICK_N, Placement
from gardenbus.common.resources.works import AVAILABLE, DIFF_REPORTED
from gardenbus.fleet.affinity import matching
from gardenbus.fleet.availability import condition_of
from gardenbus.fleet.decisions import SCHEDULED_CONDITION, STATUS, observed_generation
from gardenbus.fleet.eligibility import objection
from gardenbus.fleet.fleet import Fleet, measures, told_namespaces
from gardenbus.fleet.framework import CycleState
from gardenbus.fleet.outcome import FULFILLED, UNFULFILLED, UnexpectedState
from gardenbus.fleet.profile import ADMITTING
from gardenbus.fleet.requirements import Requirements, requirements_of

_ABSENT = "there is no such cluster"


class ClusterChange:
    """What happened to one cluster; made once, and asked of every placement."""

    def __init__(self, old: MemberCluster | None, new: MemberCluster | None, *, was: float, now: float) -> None:
        self._name = (new or old or _NOBODY).name
        self._labels = (old.metadata.labels if old else {}, new.metadata.labels if new else {})
        self._before = Fleet.of((old,), was) if old else None
        self._after = Fleet.of((new,), now) if new else None
        self._has_left = _is_there(old) and not _is_there(new)
        self._eligibility = (objection(old, was) if old else _ABSENT, objection(new, now) if new else _ABSENT)
        self.matters = (
            self._eligibility[0] != self._eligibility[1] or _is_there(old) != _is_there(new) or _differ(old, new)
        )
        """Whether anything changed that a policy could look at."""

    @classmethod
    def of(cls, old: MemberCluster | None, new: MemberCluster | None, *, was: float, now: float) -> Self:
        """From `old` (as of `was`, unix seconds) to `new` (as of `now`); None is a cluster that is not there.

        The same cluster at two times covers heartbeats that went stale.
        """
        return cls(old, new, was=was, now=now)

    def touches(self, placement: Placement, snapshot: PolicySnapshot) -> bool:
        """Whether it may change the decision of a placement, whose policy snapshot is `snapshot`."""
        if not self.matters:
            return False
        fulfilled = _fulfilled(snapshot)
        if fulfilled is None:
            return True
        policy = requirements_of(snapshot.spec.policy)
        if policy.placement_type == PICK_FIXED:
            return self._name in policy.names and (self._has_left or self._eligibility[0] != self._eligibility[1])
        try:
            return self._touches(policy, placement, snapshot, fulfilled=fulfilled)
        except UnexpectedState:
            return True

    def _touches(
        self, policy: Requirements, placement: Placement, snapshot: PolicySnapshot, *, fulfilled: bool
    ) -> bool:
        targets = snapshot.status.target_clusters
        truncated = len(targets) >= STATUS.total
        selected = any(one.selected and one.cluster_name == self._name for one in targets)
        if (selected or truncated) and (self._has_left or self._matched(policy, 0) != self._matched(policy, 1)):
            return True
        if policy.placement_type == PICK_N:
            if fulfilled:
                return False
            if any(self._domain(one.topology_key, 0) != self._domain(one.topology_key, 1) for one in policy.hard):
                return True
        elif selected:
            return False
        namespace = placement.metadata.namespace if placement.is_namespaced else ""
        return _verdict(self._before, policy, namespace) != _verdict(self._after, policy, namespace)

    def _matched(self, policy: Requirements, moment: int) -> bool:
        """Whether it matches what is required always."""
        fleet = (self._before, self._after)[moment]
        return not policy.always or (fleet is not None and bool(matching(policy.always, fleet, 1)))

    def _domain(self, key: str, moment: int) -> str | None:
        return self._labels[moment].get(key)


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

    Where many placements are asked about one change, make one ClusterChange.
    """
    return ClusterChange.of(old, new, was=was, now=now).touches(placement, snapshot)


def binding_may_change(snapshot: PolicySnapshot, old: ResourceBinding | None, new: ResourceBinding | None) -> bool:
    """Whether a binding's change calls for another cycle: it began to be deleted, went, or may replace another."""
    if new is None:
        return old is not None and not old.is_deleting
    if new.is_deleting:
        return old is None or not old.is_deleting
    if not requirements_of(snapshot.spec.policy).always:
        return False
    return old is None or _serves(old) != _serves(new)


def _serves(binding: ResourceBinding) -> tuple[object, ...]:
    """What of a binding counts for whether it can replace another."""
    return (
        binding.spec.state,
        *(
            condition and condition.is_fresh("True", binding.metadata.generation)
            for condition in (condition_of(binding, AVAILABLE), condition_of(binding, DIFF_REPORTED))
        ),
    )


def _verdict(fleet: Fleet | None, policy: Requirements, namespace: str) -> str | None:
    """What is objected to the one cluster of a fleet, whoever else is chosen; None for nothing."""
    if fleet is None:
        return _ABSENT
    filtered = ADMITTING.filter(CycleState(policy, fleet, namespace=namespace))
    return None if filtered.passed else filtered.reason(0)


def _fulfilled(snapshot: PolicySnapshot) -> bool | None:
    """Whether a policy is fulfilled, as it was decided last; None when that is not known."""
    stated = next((each for each in snapshot.status.conditions if each.type == SCHEDULED_CONDITION), None)
    try:
        is_current = snapshot.status.observed_crp_generation == observed_generation(snapshot)
    except UnexpectedState:
        return None
    if stated is None or not is_current or stated.reason not in (FULFILLED, UNFULFILLED):
        return None
    return stated.status == "True"


def _is_there(cluster: MemberCluster | None) -> bool:
    return cluster is not None and not cluster.is_deleting


def _differ(old: MemberCluster | None, new: MemberCluster | None) -> bool:
    if old is None or new is None:
        return old is not new
    return (
        old.metadata.labels != new.metadata.labels
        or old.spec.taints != new.spec.taints
        or measures(old) != measures(new)
        or told_namespaces(old) != told_namespaces(new)
    )


_NOBODY = MemberCluster.from_document({"metadata": {}})
