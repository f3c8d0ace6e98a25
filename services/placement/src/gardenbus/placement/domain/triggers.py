"""Placements that a change of a cluster or a binding affects: those whose decision may come out differently, no other.

| placement | is affected when |
|---|---|
| any that is undecided, or whose decision failed | anything changed that policies read |
| any with a binding on the cluster | it left, or stopped or began to match what is required during execution |
| PickAll | it became feasible, or ceased to be |
| PickFixed | the policy names it, and it came, went, or changed in eligibility |
| PickN that lacks clusters | as for PickAll, or the domains of its hard spread constraints changed |

KubeFleet watches fewer changes (an added taint and a stale heartbeat affect nothing there) and, for those that it
watches, enqueues every PickAll and every unfulfilled placement. Source: `pkg/scheduler/watchers`.
"""

from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.fleet.placement_parts import PolicySnapshot, ResourceBinding
from gardenbus.common.api.fleet.placements import PICK_FIXED, PICK_N, Placement
from gardenbus.common.api.fleet.works import AVAILABLE, DIFF_REPORTED
from gardenbus.common.api.views import condition_in
from gardenbus.fleet.cluster_affinity import matching
from gardenbus.fleet.cycle_result import FULFILLED, UNFULFILLED, UnexpectedState
from gardenbus.fleet.decisions import SCHEDULED_CONDITION, STATUS, observed_generation
from gardenbus.fleet.eligibility import ineligibility_reason
from gardenbus.fleet.fleet import Fleet, property_values, reported_namespaces
from gardenbus.fleet.framework import CycleState
from gardenbus.fleet.profile import PER_CLUSTER_FRAMEWORK
from gardenbus.fleet.requirements import Requirements, requirements_of

_ABSENT = "there is no such cluster"


class ClusterChange:
    """A change of one cluster from `old` (as of `was`, unix seconds) to `new` (as of `now`); None is an absent cluster.

    Made once, and checked against every placement. The same cluster at two times covers heartbeats that went stale.
    """

    def __init__(self, old: MemberCluster | None, new: MemberCluster | None, *, was: float, now: float) -> None:
        self._name = (new or old or _NOBODY).name
        self._labels = (old.metadata.labels if old else {}, new.metadata.labels if new else {})
        self._before = Fleet.of((old,), was) if old else None
        self._after = Fleet.of((new,), now) if new else None
        self._has_left = _is_there(old) and not _is_there(new)
        self._eligibility = (
            ineligibility_reason(old, was) if old else _ABSENT,
            ineligibility_reason(new, now) if new else _ABSENT,
        )
        self.is_relevant = (
            self._eligibility[0] != self._eligibility[1] or _is_there(old) != _is_there(new) or _differ(old, new)
        )
        """True when anything changed that a policy could read."""

    def affects(self, placement: Placement, snapshot: PolicySnapshot) -> bool:
        """Report whether it may change the decision of a placement with this policy snapshot."""
        if not self.is_relevant:
            return False
        fulfilled = _last_fulfilled(snapshot)
        if fulfilled is None:
            return True
        policy = requirements_of(snapshot.spec.policy)
        if policy.placement_type == PICK_FIXED:
            return self._name in policy.names and (self._has_left or self._eligibility[0] != self._eligibility[1])
        try:
            return self._affects(policy, placement, snapshot, fulfilled=fulfilled)
        except UnexpectedState:
            return True

    def _affects(
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
        return _rejection_reason(self._before, policy, namespace) != _rejection_reason(self._after, policy, namespace)

    def _matched(self, policy: Requirements, moment: int) -> bool:
        """Report whether the cluster matches what is required during execution."""
        fleet = (self._before, self._after)[moment]
        return not policy.always or (fleet is not None and bool(matching(policy.always, fleet, 1)))

    def _domain(self, key: str, moment: int) -> str | None:
        return self._labels[moment].get(key)


def binding_may_change(snapshot: PolicySnapshot, old: ResourceBinding | None, new: ResourceBinding | None) -> bool:
    """Report whether a binding's change needs another cycle: it began to be deleted, went, or may replace another."""
    if new is None:
        return old is not None and not old.is_deleting
    if new.is_deleting:
        return old is None or not old.is_deleting
    if not requirements_of(snapshot.spec.policy).always:
        return False
    return old is None or _serving_state(old) != _serving_state(new)


def _serving_state(binding: ResourceBinding) -> tuple[object, ...]:
    """Return the parts of a binding that decide whether it can replace another."""
    return (
        binding.spec.state,
        *(
            condition and condition.is_fresh("True", binding.metadata.generation)
            for condition in (condition_in(binding.status.conditions, kind) for kind in (AVAILABLE, DIFF_REPORTED))
        ),
    )


def _rejection_reason(fleet: Fleet | None, policy: Requirements, namespace: str) -> str | None:
    """Return why the only cluster of a fleet is rejected regardless of other choices; None if it is not."""
    if fleet is None:
        return _ABSENT
    filtered = PER_CLUSTER_FRAMEWORK.filter(CycleState(policy, fleet, namespace=namespace))
    return None if filtered.passed else filtered.reason(0)


def _last_fulfilled(snapshot: PolicySnapshot) -> bool | None:
    """Return whether a policy was fulfilled at its last decision; None when there is no current one."""
    stated = condition_in(snapshot.status.conditions, SCHEDULED_CONDITION)
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
        or property_values(old) != property_values(new)
        or reported_namespaces(old) != reported_namespaces(new)
    )


_NOBODY = MemberCluster.from_document({"metadata": {}})
