"""The response of `explain placement`: decisions, bindings, and the changes that would reschedule. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from gardenbus.cli.fleet.decisions import named
from gardenbus.cli.fleet.placement_state import PlacementState
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.output.console import counted
from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.placement_parts import (
    BINDING_CLEANUP,
    BOUND,
    PREVIOUS_STATE,
    SCHEDULED,
    WORK_CLEANUP,
    PolicySnapshot,
    ResourceBinding,
)
from gardenbus.common.api.fleet.placements import PICK_ALL, PICK_FIXED, PICK_N, Placement, RollingUpdate
from gardenbus.common.api.fleet.rows import decision_rows
from gardenbus.common.api.fleet.works import APPLIED, AVAILABLE, DIFF_REPORTED
from gardenbus.common.api.views import condition_in
from gardenbus.common.errors import InvalidResource
from gardenbus.fleet.availability import STEPS, WORK_SYNCHRONIZED, is_true, readiness
from gardenbus.fleet.binding_states import state_of
from gardenbus.fleet.cycle_result import FAILED, UnexpectedState
from gardenbus.fleet.rejection import INVALID, INVALID_SELECTORS, PlacementRejection, recorded_rejection, rejection_of
from gardenbus.fleet.rollout import RolloutStep, lacks_clusters, plan

_BACKOFF = "after a while, twice as long each time: the last reconcile failed"

_UNREPORTED = {
    WORK_SYNCHRONIZED: "its Works to be made",
    APPLIED: "its agent to apply them",
    AVAILABLE: "its agent to report them available",
}
"""Awaited events, by the condition that is not reported before."""


def explanation(state: PlacementState, now: float) -> Document:
    """The response as a document; `now` is unix seconds. Raises InvalidResource when a part of it cannot be read."""
    rejection = recorded_rejection(state.placement)
    try:
        placement = Placement.from_document(state.placement)
    except InvalidResource as error:
        return _unreadable(state, rejection or rejection_of(error))
    snapshot = PolicySnapshot.from_document(state.snapshot) if state.snapshot else None
    bindings = [ResourceBinding.from_document(binding) for binding in state.bindings]
    steps, trouble = _next_steps(placement, state, bindings, now)
    update = placement.spec.strategy.rolling_update
    rolling = _Rolling(update, state.resources, steps, trouble, now)
    decided = _decided(snapshot) if rejection is None else _rejected(rejection)
    return {
        "placement": f"{placement.metadata.namespace}/{placement.metadata.name}".removeprefix("/"),
        "kind": placement.kind,
        "policy": ", ".join(policy_words(placement)),
        "clusters": len(state.clusters),
        "snapshot": snapshot.metadata.name if snapshot else None,
        "isCurrent": _is_current(placement, snapshot),
        **decided,
        "selected": _selected(state.placement),
        "decisions": decision_rows(snapshot.status.target_clusters if snapshot else ()),
        "bindings": [_binding(binding, rolling) for binding in bindings],
        "rollout": {
            "strategy": placement.spec.strategy.type,
            "maxUnavailable": update.max_unavailable,
            "maxSurge": update.max_surge,
            "resources": state.resources or None,
            "message": trouble or steps.reason,
            "looksAgainInSeconds": steps.recheck_after,
        },
        "conditions": as_mapping(state.placement.get("status")).get("conditions") or [],
        "looksAgainWhen": list(occasions(placement, fulfilled=decided["fulfilled"], reason=decided["reason"])),
    }


def policy_words(placement: Placement) -> Iterator[str]:
    """The policy's parts, in a few words each."""
    policy = placement.policy
    match policy.placement_type:
        case "PickN":
            yield f"PickN, {policy.number_of_clusters} clusters"
        case "PickFixed":
            yield f"PickFixed: {named(policy.cluster_names)}"
        case _:
            yield "PickAll"
    affinity = policy.cluster_affinity
    if affinity.required and affinity.required.cluster_selector_terms:
        yield counted(len(affinity.required.cluster_selector_terms), "required term")
    if affinity.required_always and affinity.required_always.cluster_selector_terms:
        yield f"{counted(len(affinity.required_always.cluster_selector_terms), 'term')} required always"
    if affinity.preferred and policy.placement_type == PICK_N:
        yield counted(len(affinity.preferred), "preferred term")
    for constraint in policy.topology_spread_constraints:
        how = "must" if constraint.is_hard else "should"
        yield f"{how} spread over {constraint.topology_key} (max skew {constraint.max_skew})"
    if policy.tolerations:
        yield counted(len(policy.tolerations), "toleration")


def occasions(placement: Placement, *, fulfilled: bool | None, reason: str) -> Iterator[str]:
    """Changes that let the scheduler reconcile a placement again."""
    policy = placement.policy
    if reason in (FAILED, INVALID, INVALID_SELECTORS):
        yield _BACKOFF
    yield "its policy or its number of clusters changes"
    yield "a cluster that it is on leaves the fleet, or an eviction takes it off one"
    if policy.cluster_affinity.required_always:
        yield "a cluster that it is on stops to match what is required always"
    if policy.placement_type == PICK_FIXED:
        yield "a cluster that it names comes, goes, becomes eligible, or ceases to be"
    elif policy.placement_type == PICK_ALL or not fulfilled:
        yield "a cluster begins to fit, or ceases to: by its labels, taints, properties, health, or heartbeat"
        if policy.placement_type == PICK_N and policy.topology_spread_constraints:
            yield "a cluster's label that clusters are spread over changes"
    else:
        yield "(clusters that come or change do not: it has as many as it wants, and nothing moves)"


def _unreadable(state: PlacementState, rejection: PlacementRejection) -> Document:
    """Response for a placement that cannot be parsed: the error, and its bindings."""
    metadata = as_mapping(state.placement.get("metadata"))
    return {
        "placement": f"{metadata.get('namespace') or ''}/{metadata.get('name')}".removeprefix("/"),
        "kind": state.placement.get("kind"),
        "policy": "cannot be read",
        "clusters": len(state.clusters),
        "snapshot": None,
        "isCurrent": False,
        **_rejected(rejection),
        "selected": None,
        "decisions": [],
        "bindings": [
            {
                "name": as_mapping(binding.get("metadata")).get("name"),
                "cluster": as_mapping(binding.get("spec")).get("targetCluster"),
                "state": as_mapping(binding.get("spec")).get("state"),
                "previousState": None,
                "policySnapshot": as_mapping(binding.get("spec")).get("schedulingPolicySnapshotName"),
                "resourceSnapshot": as_mapping(binding.get("spec")).get("resourceSnapshotName"),
                "conditions": {},
                "waitsFor": "the placement to be mended",
            }
            for binding in state.bindings
        ],
        "rollout": None,
        "conditions": as_mapping(state.placement.get("status")).get("conditions") or [],
        "looksAgainWhen": ["it is applied with what is wrong corrected", _BACKOFF],
    }


def _rejected(rejection: PlacementRejection) -> dict[str, Any]:
    return {"fulfilled": False, "reason": rejection.reason, "message": rejection.message}


def _selected(placement: Document) -> int | None:
    """Number of selected resources by its status; None while the status has none."""
    status = as_mapping(placement.get("status"))
    return len(status.get("selectedResources") or ()) if status.get("observedResourceIndex") else None


def _next_steps(
    placement: Placement, state: PlacementState, bindings: Sequence[ResourceBinding], now: float
) -> tuple[RolloutStep, str]:
    """Next step of its rollout, or the error that hides it."""
    cluster_names = set(state.clusters)
    gone = {each.spec.target_cluster for each in bindings} - cluster_names
    try:
        lacking = lacks_clusters(state.placement)
        return plan(placement, state.resources, bindings, now, gone=gone, lacks_clusters=lacking), ""
    except (UnexpectedState, InvalidResource) as error:
        return RolloutStep(), error.message


def _is_current(placement: Placement, snapshot: PolicySnapshot | None) -> bool:
    return snapshot is not None and snapshot.status.observed_crp_generation >= placement.metadata.generation


def _decided(snapshot: PolicySnapshot | None) -> dict[str, Any]:
    condition = (
        next((each for each in snapshot.status.conditions if each.type == "Scheduled"), None) if snapshot else None
    )
    if condition is None:
        return {"fulfilled": None, "reason": "", "message": "it has not been decided yet"}
    return {"fulfilled": condition.status == "True", "reason": condition.reason, "message": condition.message}


class _Rolling(NamedTuple):
    """Everything that a binding's progress depends on."""

    update: RollingUpdate
    latest: str
    steps: RolloutStep
    trouble: str
    now: float


def _binding(binding: ResourceBinding, rolling: _Rolling) -> dict[str, Any]:
    return {
        "name": binding.name,
        "cluster": binding.spec.target_cluster,
        "state": state_of(binding),
        "previousState": binding.metadata.annotations.get(PREVIOUS_STATE),
        "policySnapshot": binding.spec.scheduling_policy_snapshot_name,
        "resourceSnapshot": binding.spec.resource_snapshot_name or None,
        "conditions": {each.type: each.status for each in binding.status.conditions},
        "waitsFor": _waits_for(binding, rolling),
    }


def _waits_for(binding: ResourceBinding, rolling: _Rolling) -> str:
    """The next event that a binding needs; "" when nothing is left to do."""
    steps, name = rolling.steps, binding.name
    if binding.is_deleting:
        return _to_go(binding)
    if rolling.trouble:
        return rolling.trouble
    if name in steps.strategies:
        return "nothing: its apply strategy is updated next"
    if binding.spec.state == BOUND:
        return _bound(binding, rolling)
    if binding.spec.state == SCHEDULED:
        if name in steps.bind:
            return "nothing: it is handed to its cluster next"
        return f"room for one more (maxSurge {rolling.update.max_surge})" if name in steps.waiting else steps.reason
    if name in steps.delete:
        return "nothing: it is removed next"
    return steps.reason or f"others that serve in its place (maxUnavailable {rolling.update.max_unavailable})"


def _to_go(binding: ResourceBinding) -> str:
    finalizers = binding.metadata.finalizers
    if WORK_CLEANUP in finalizers:
        return "its Works to be taken off the cluster"
    return "the scheduler to let go of it" if BINDING_CLEANUP in finalizers else f"finalizers: {', '.join(finalizers)}"


def _bound(binding: ResourceBinding, rolling: _Rolling) -> str:
    if binding.name in rolling.steps.update:
        return f"nothing: it gets {rolling.latest} next"
    if binding.name in rolling.steps.waiting:
        return f"its turn to get {rolling.latest} (maxUnavailable {rolling.update.max_unavailable})"
    if is_true(binding, DIFF_REPORTED):
        return ""
    for kind in STEPS:
        condition = condition_in(binding.status.conditions, kind)
        is_observed = condition is not None and condition.observed_generation == binding.metadata.generation
        if condition is not None and is_observed and condition.status != "True":
            return f"{kind}: {condition.message or condition.reason}"
        if not is_observed and kind in _UNREPORTED:
            return _UNREPORTED[kind]
    period = float(rolling.update.unavailable_period_seconds)
    left = readiness(binding, unavailable_period_seconds=period, now=rolling.now).wait_seconds
    return "" if left is None else f"{left:.0f}s to pass: its availability cannot be determined"


def encoded(response: Document) -> Document:
    """The response with builtin types only, for JSON and YAML."""
    return msgspec.to_builtins(response)
