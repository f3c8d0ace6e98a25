"""What the next step of a rollout is: which bindings are handed to an agent, brought up to date, or removed.

A step is decided on the bindings as they are, within the budgets that they leave, and can be carried out in any order
and in part: each of its writes alone keeps the budgets, and what is left is decided again.

- Bound bindings that failed and are outdated are brought up to date whatever the budget: nothing is lost by it. They
  may come to serve by it, so they are taken from the additions first (KubeFleet goes beyond maxSurge there).
- The budget of removals goes to Unscheduled bindings first, then to outdated Bound ones.
- The budget of additions turns Scheduled bindings Bound.
- Where none of this is possible, Unscheduled bindings go that take nothing away: they were never placed, they failed,
  their cluster is gone, or nobody asks for any cluster to serve. KubeFleet waits for ever there.
- Where that is not possible either, and there are fewer clusters than wanted, outdated Bound bindings are brought up
  to date by a budget of those that were found. KubeFleet waits for more clusters there.

Source: KubeFleet's `pkg/controllers/rollout/controller.go`.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from math import inf

import msgspec

from gardenbus.common.resources.conditions import FALSE, conditions_of, get_condition
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.placement_parts import BOUND, SCHEDULED, UNSCHEDULED, ResourceBinding
from gardenbus.common.resources.placements import Placement, RollingUpdate
from gardenbus.fleet.availability import (
    ROLLOUT_STARTED,
    has_failed,
    is_diff_reported,
    is_true,
    may_be_placed,
    readiness,
)
from gardenbus.fleet.budgets import Budget, Counts, budget_of, target_of
from gardenbus.fleet.outcome import FAILED, UNFULFILLED, UnexpectedState
from gardenbus.fleet.refusal import condition_type

ROLLING_UPDATE = "RollingUpdate"

CLEANUP_SECONDS = 5.0
"""How long to wait for a cluster that an earlier binding still has."""

CLEANUP_PATIENCE_SECONDS = 60.0
"""For so long all bindings wait for such a cluster; then only those that are on it."""


class Rollout(msgspec.Struct, frozen=True):
    """One step. All are names of bindings, in order."""

    strategies: tuple[str, ...] = ()
    """Their way of applying is not the placement's: change that first, everything else is for the next look."""

    bind: tuple[str, ...] = ()
    """Scheduled: make them Bound, with the latest resources."""

    update: tuple[str, ...] = ()
    """Bound: give them the latest resources."""

    delete: tuple[str, ...] = ()
    """Unscheduled: delete them."""

    waiting: tuple[str, ...] = ()
    """Scheduled, or Bound and outdated, but not now: their RolloutStarted is False."""

    started: tuple[str, ...] = ()
    """Bound and up to date, but they do not say so yet: their RolloutStarted is True."""

    recheck_after: float | None = None
    """Seconds after which time alone may allow more; None where only news can."""

    reason: str = ""
    """Why nothing is done, where nothing is."""

    @property
    def spends(self) -> bool:
        """Whether it takes anything out of a budget."""
        return bool(self.bind or self.update or self.delete)


class _Sorted(msgspec.Struct):
    """The bindings of a placement, by what can be done with them."""

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


def plan(
    placement: Placement,
    latest_resource_snapshot_name: str,
    bindings: Sequence[ResourceBinding],
    now: float,
    *,
    gone: Collection[str] = (),
    lacks_clusters: bool = False,
) -> Rollout:
    """Decide the next step at `now` (unix seconds).

    The snapshot's name is that of the first part of the latest group; "" while there is none. `gone` are clusters that
    are no longer in the fleet; `lacks_clusters`: the scheduler has said that there are not as many as are wanted.
    Raises UnexpectedState when two living bindings are of one cluster, or one was handed out while another was leaving;
    InvalidResource when a limit is no number.
    """
    if placement.spec.strategy.type != ROLLING_UPDATE:
        return Rollout(reason="others roll it out")
    bindings = sorted(bindings, key=lambda each: each.name)
    if strategies := _other_strategies(placement, bindings):
        return Rollout(strategies=strategies)
    held, is_patient = _held(bindings, now)
    if held and is_patient:
        return Rollout(recheck_after=CLEANUP_SECONDS, reason="clusters are still being left by earlier bindings")
    if not latest_resource_snapshot_name:
        return Rollout(reason="there are no resources yet")
    sorted_ = _sort(placement, latest_resource_snapshot_name, bindings, now, gone=gone)
    return _step(placement, sorted_, held, lacks_clusters=lacks_clusters)


def lacks_clusters(placement: Document) -> bool:
    """Whether a placement tells that its present policy finds fewer clusters than it wants, or cannot be evaluated.

    A decision that is still to come may find more: until then it is not known.
    """
    condition = get_condition(conditions_of(placement), condition_type(placement))
    if condition is None or condition.get("observedGeneration") != section(placement, "metadata").get("generation"):
        return False
    return condition.get("status") == FALSE and condition.get("reason") in (UNFULFILLED, FAILED)


def _other_strategies(placement: Placement, bindings: Iterable[ResourceBinding]) -> tuple[str, ...]:
    wanted = placement.spec.strategy.apply_strategy
    return tuple(each.name for each in bindings if not each.is_deleting and each.spec.apply_strategy != wanted)


def _held(bindings: Sequence[ResourceBinding], now: float) -> tuple[frozenset[str], bool]:
    """The living bindings on clusters that another one is leaving, and whether to wait for all of these clusters."""
    leaving: dict[str, float] = {}
    living: dict[str, ResourceBinding] = {}
    for each in bindings:
        cluster = each.spec.target_cluster
        if each.is_deleting:
            leaving[cluster] = max(leaving.get(cluster, -inf), _unix(each.metadata.deletion_timestamp, now))
        elif cluster in living:
            raise UnexpectedState(f"bindings {living[cluster].name} and {each.name} are both of cluster {cluster}")
        else:
            living[cluster] = each
    held = [each for cluster, each in living.items() if cluster in leaving]
    for each in held:
        if may_be_placed(each):
            cluster = each.spec.target_cluster
            raise UnexpectedState(f"binding {each.name} was handed out while another one was leaving cluster {cluster}")
    is_patient = any(now - leaving[each.spec.target_cluster] < CLEANUP_PATIENCE_SECONDS for each in held)
    return frozenset(each.name for each in held), is_patient


def _sort(
    placement: Placement,
    latest: str,
    bindings: Iterable[ResourceBinding],
    now: float,
    *,
    gone: Collection[str],
) -> _Sorted:
    found = _Sorted()
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


def _count(found: _Sorted, binding: ResourceBinding, *, readiness_period: float, now: float) -> None:
    """Count one that was handed out."""
    ready = readiness(binding, unavailable_period_seconds=readiness_period, now=now)
    found.chosen += binding.spec.state == BOUND
    found.ready += ready.is_ready
    found.leaving += ready.is_ready and binding.is_deleting
    found.can_be_ready += not has_failed(binding) and not is_diff_reported(binding)
    found.all_ready = found.all_ready and ready.is_ready
    if ready.wait_seconds is not None:
        found.waits.append(ready.wait_seconds)


def _sort_bound(found: _Sorted, binding: ResourceBinding, latest: str) -> None:
    if binding.spec.resource_snapshot_name == latest:
        if not is_true(binding, ROLLOUT_STARTED):
            found.silent.append(binding.name)
    elif has_failed(binding):
        found.failed.append(binding.name)
    else:
        found.outdated.append(binding.name)


def _step(placement: Placement, found: _Sorted, held: Collection[str], *, lacks_clusters: bool) -> Rollout:
    rolling = placement.spec.strategy.rolling_update
    counts = Counts(target_of(placement, found.chosen), found.ready, found.leaving, found.can_be_ready)
    budget = budget_of(counts, max_unavailable=rolling.max_unavailable, max_surge=rolling.max_surge)
    removals, additions = max(0, budget.removals), max(0, budget.additions - len(found.failed))
    removed = found.removable[:removals]
    updated = found.outdated[: removals - len(removed)]
    bound = [name for name in found.bindable if name not in held][:additions]
    if not (found.failed or removed or updated or bound):
        removed = _harmless(found, budget)
        updated = _of_those_found(found, counts, rolling) if lacks_clusters and not removed else []
    done = {*updated, *bound}
    waiting = tuple(sorted(name for name in (*found.outdated, *found.bindable) if name not in done))
    is_under_way = bool(waiting or found.failed or found.removable or done)
    return Rollout(
        bind=tuple(bound),
        update=tuple(sorted((*found.failed, *updated))),
        delete=tuple(removed),
        waiting=waiting,
        started=tuple(found.silent),
        recheck_after=_recheck(found, rolling.unavailable_period_seconds, held) if is_under_way else None,
        reason="" if is_under_way else "all bindings are up to date",
    )


def _harmless(found: _Sorted, budget: Budget) -> list[str]:
    """Whom to remove when the budgets allow nothing."""
    return found.removable if budget.least <= 0 else found.removable_freely


def _of_those_found(found: _Sorted, counts: Counts, rolling: RollingUpdate) -> list[str]:
    """Whom to bring up to date of a placement that lacks clusters, when the budgets allow nothing."""
    if found.chosen >= counts.target:
        return []
    smaller = msgspec.structs.replace(counts, target=found.chosen)
    budget = budget_of(smaller, max_unavailable=rolling.max_unavailable, max_surge=rolling.max_surge)
    return found.outdated[: max(0, budget.removals)]


def _recheck(found: _Sorted, period_seconds: float, held: Collection[str]) -> float:
    waits = [period_seconds, *found.waits, *([CLEANUP_SECONDS] if held else [])]
    return max(1.0, min(waits))


def _unix(instant: str | None, otherwise: float) -> float:
    try:
        return datetime.fromisoformat(instant or "").timestamp()
    except ValueError:
        return otherwise
