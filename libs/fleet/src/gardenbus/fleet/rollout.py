"""The next step of a rollout: the bindings to bind, to update, and to delete.

A step is decided on the current bindings, within their budgets, and can be carried out in any order and in part: each
of its writes alone keeps the budgets, and the rest is decided again.

- Failed and outdated Bound bindings are updated regardless of the budget: nothing is lost by it. They may become ready,
  so they count against the additions first (KubeFleet exceeds maxSurge there).
- The budget of removals goes to Unscheduled bindings first, then to outdated Bound ones.
- The budget of additions turns Scheduled bindings Bound.
- Where none of this is possible, Unscheduled bindings go whose removal costs nothing: they were never placed, they
  failed, their cluster is gone, or no cluster has to be ready. KubeFleet waits for ever there.
- Where that is not possible either, and there are fewer clusters than wanted, outdated Bound bindings are updated by
  a budget of those that were found. KubeFleet waits for more clusters there.

Source: KubeFleet's `pkg/controllers/rollout/controller.go`.
"""

from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import NamedTuple

import msgspec

from gardenbus.common.api.conditions import FALSE, conditions_of, get_condition
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.placement_parts import BOUND, SCHEDULED, UNSCHEDULED, ResourceBinding
from gardenbus.common.api.fleet.placements import Placement, RollingUpdate
from gardenbus.fleet.availability import (
    ROLLOUT_STARTED,
    has_failed,
    is_diff_reported,
    is_true,
    may_be_placed,
    readiness,
)
from gardenbus.fleet.budgets import BindingCounts, RolloutBudget, budget_of, target_of
from gardenbus.fleet.cycle_result import FAILED, UNFULFILLED, UnexpectedState
from gardenbus.fleet.eligibility import instant
from gardenbus.fleet.rejection import condition_type

ROLLING_UPDATE = "RollingUpdate"

CLEANUP_SECONDS = 5.0
"""Recheck interval while an earlier binding still occupies a cluster."""

CLEANUP_GRACE_SECONDS = 60.0
"""Grace period in which such a cluster holds up all bindings; after it, only its own."""


class RolloutStep(msgspec.Struct, frozen=True):
    """One step. All are names of bindings, in order."""

    strategies: tuple[str, ...] = ()
    """Bindings with another apply strategy than the placement: updated first, the rest at the next reconcile."""

    bind: tuple[str, ...] = ()
    """Scheduled bindings to make Bound, with the latest resources."""

    update: tuple[str, ...] = ()
    """Bound bindings to give the latest resources."""

    delete: tuple[str, ...] = ()
    """Unscheduled bindings to delete."""

    waiting: tuple[str, ...] = ()
    """Scheduled or outdated bindings that have to wait: their RolloutStarted becomes False."""

    started: tuple[str, ...] = ()
    """Current Bound bindings without the condition yet: their RolloutStarted becomes True."""

    recheck_after: float | None = None
    """Seconds after which time alone may allow more; None where only an event can."""

    reason: str = ""
    """Reason for an empty step."""

    @property
    def spends(self) -> bool:
        """True when it uses any of a budget."""
        return bool(self.bind or self.update or self.delete)


class _Latest(NamedTuple):
    """The latest resources, and the bindings whose overrides are not the latest: both decide what is outdated."""

    resources: str
    stale: Collection[str]


class _SortedBindings(msgspec.Struct):
    """The bindings of a placement, by possible action."""

    chosen: int = 0
    ready: int = 0
    leaving: int = 0
    can_be_ready: int = 0
    bindable: list[str] = []
    outdated: list[str] = []
    failed: list[str] = []
    removable: list[str] = []
    removable_freely: list[str] = []
    silent: list[str] = []
    waits: list[float] = []
    all_ready: bool = True


def plan(  # noqa: PLR0913  (each is an input of its own)
    placement: Placement,
    latest_resource_snapshot_name: str,
    bindings: Sequence[ResourceBinding],
    now: float,
    *,
    gone: Collection[str] = (),
    stale: Collection[str] = (),
    lacks_clusters: bool = False,
) -> RolloutStep:
    """Decide the next step at `now` (unix seconds).

    The snapshot's name is that of the first part of the latest group; "" while there is none. `gone` are clusters that
    are no longer in the fleet; `stale`: bindings (by name) with other overrides than there are now; `lacks_clusters`:
    the scheduler has found fewer than wanted.
    Raises UnexpectedState when two living bindings are of one cluster, or one was rolled out while another was leaving;
    InvalidResource when a limit is no number.
    """
    if placement.spec.strategy.type != ROLLING_UPDATE:
        return RolloutStep(reason="others roll it out")
    bindings = sorted(bindings, key=lambda each: each.name)
    if strategies := _other_strategies(placement, bindings):
        return RolloutStep(strategies=strategies)
    held, is_within_grace = _held(bindings, now)
    if held and is_within_grace:
        return RolloutStep(recheck_after=CLEANUP_SECONDS, reason="clusters are still being left by earlier bindings")
    if not latest_resource_snapshot_name:
        return RolloutStep(reason="there are no resources yet")
    latest = _Latest(latest_resource_snapshot_name, stale)
    sorted_ = _sort(placement, latest, bindings, now, gone=gone)
    return _step(placement, sorted_, held, lacks_clusters=lacks_clusters)


def lacks_clusters(placement: Document) -> bool:
    """Report whether a placement's current policy found fewer clusters than wanted, or cannot be evaluated.

    False while the decision is pending: it may find more.
    """
    condition = get_condition(conditions_of(placement), condition_type(placement))
    if condition is None or condition.get("observedGeneration") != section(placement, "metadata").get("generation"):
        return False
    return condition.get("status") == FALSE and condition.get("reason") in (UNFULFILLED, FAILED)


def _other_strategies(placement: Placement, bindings: Iterable[ResourceBinding]) -> tuple[str, ...]:
    wanted = placement.spec.strategy.apply_strategy
    return tuple(each.name for each in bindings if not each.is_deleting and each.spec.apply_strategy != wanted)


def _held(bindings: Sequence[ResourceBinding], now: float) -> tuple[frozenset[str], bool]:
    """Return the living bindings on clusters that another is leaving, and whether all wait for these clusters."""
    leaving: dict[str, float] = {}
    living: dict[str, ResourceBinding] = {}
    for each in bindings:
        cluster = each.spec.target_cluster
        if each.is_deleting:
            deleted_at = instant(each.metadata.deletion_timestamp or "")
            leaving[cluster] = max(leaving.get(cluster, -inf), now if deleted_at == -inf else deleted_at)
        elif cluster in living:
            raise UnexpectedState(f"bindings {living[cluster].name} and {each.name} are both of cluster {cluster}")
        else:
            living[cluster] = each
    held = [each for cluster, each in living.items() if cluster in leaving]
    for each in held:
        if may_be_placed(each):
            cluster = each.spec.target_cluster
            raise UnexpectedState(f"binding {each.name} was handed out while another one was leaving cluster {cluster}")
    is_within_grace = any(now - leaving[each.spec.target_cluster] < CLEANUP_GRACE_SECONDS for each in held)
    return frozenset(each.name for each in held), is_within_grace


def _sort(
    placement: Placement,
    latest: _Latest,
    bindings: Iterable[ResourceBinding],
    now: float,
    *,
    gone: Collection[str],
) -> _SortedBindings:
    found = _SortedBindings()
    period = placement.spec.strategy.rolling_update.unavailable_period_seconds
    for each in bindings:
        if each.spec.state == SCHEDULED:
            found.chosen += 1
            if not each.is_deleting:
                found.bindable.append(each.name)
            continue
        if each.spec.state not in (BOUND, UNSCHEDULED):
            raise UnexpectedState(f"binding {each.name} has the unknown state {each.spec.state!r}")
        _count(found, each, readiness_period=period, now=now)
        if each.is_deleting:
            continue
        if each.spec.state == BOUND:
            _sort_bound(found, each, latest)
        else:
            found.removable.append(each.name)
            if has_failed(each) or not may_be_placed(each) or each.spec.target_cluster in gone:
                found.removable_freely.append(each.name)
    return found


def _count(found: _SortedBindings, binding: ResourceBinding, *, readiness_period: float, now: float) -> None:
    """Count a binding that was rolled out."""
    ready = readiness(binding, unavailable_period_seconds=readiness_period, now=now)
    found.chosen += binding.spec.state == BOUND
    found.ready += ready.is_ready
    found.leaving += ready.is_ready and binding.is_deleting
    found.can_be_ready += not has_failed(binding) and not is_diff_reported(binding)
    found.all_ready = found.all_ready and ready.is_ready
    if ready.wait_seconds is not None:
        found.waits.append(ready.wait_seconds)


def _sort_bound(found: _SortedBindings, binding: ResourceBinding, latest: _Latest) -> None:
    if binding.spec.resource_snapshot_name == latest.resources and binding.name not in latest.stale:
        if not is_true(binding, ROLLOUT_STARTED):
            found.silent.append(binding.name)
    elif has_failed(binding):
        found.failed.append(binding.name)
    else:
        found.outdated.append(binding.name)


def _step(placement: Placement, found: _SortedBindings, held: Collection[str], *, lacks_clusters: bool) -> RolloutStep:
    rolling = placement.spec.strategy.rolling_update
    counts = BindingCounts(target_of(placement, found.chosen), found.ready, found.leaving, found.can_be_ready)
    budget = budget_of(counts, max_unavailable=rolling.max_unavailable, max_surge=rolling.max_surge)
    removals, additions = max(0, budget.removals), max(0, budget.additions - len(found.failed))
    removed = found.removable[:removals]
    updated = found.outdated[: removals - len(removed)]
    bound = [name for name in found.bindable if name not in held][:additions]
    if not (found.failed or removed or updated or bound):
        removed = _removable_regardless(found, budget)
        updated = _updatable_regardless(found, counts, rolling) if lacks_clusters and not removed else []
    done = {*updated, *bound}
    waiting = tuple(sorted(name for name in (*found.outdated, *found.bindable) if name not in done))
    is_under_way = bool(waiting or found.failed or found.removable or done)
    return RolloutStep(
        bind=tuple(bound),
        update=tuple(sorted((*found.failed, *updated))),
        delete=tuple(removed),
        waiting=waiting,
        started=tuple(found.silent),
        recheck_after=_recheck(found, rolling.unavailable_period_seconds, held) if is_under_way else None,
        reason="" if is_under_way else "all bindings are up to date",
    )


def _removable_regardless(found: _SortedBindings, budget: RolloutBudget) -> list[str]:
    """Return the bindings to remove when the budgets allow nothing."""
    return found.removable if budget.least <= 0 else found.removable_freely


def _updatable_regardless(found: _SortedBindings, counts: BindingCounts, rolling: RollingUpdate) -> list[str]:
    """Return the bindings to update of a placement that lacks clusters, when the budgets allow nothing."""
    if found.chosen >= counts.target:
        return []
    smaller = msgspec.structs.replace(counts, target=found.chosen)
    budget = budget_of(smaller, max_unavailable=rolling.max_unavailable, max_surge=rolling.max_surge)
    return found.outdated[: max(0, budget.removals)]


def _recheck(found: _SortedBindings, period_seconds: float, held: Collection[str]) -> float:
    waits = [period_seconds, *found.waits, *([CLEANUP_SECONDS] if held else [])]
    return max(1.0, min(waits))
