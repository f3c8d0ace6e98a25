"""Decides on the pending shoots of a round in memory, one after the other; each assignment counts for the next."""

from collections.abc import Sequence
from typing import NamedTuple

import structlog

from gardenbus.common.api.garden.scheduling_profiles import PLUGIN_FILTER
from gardenbus.common.api.garden.shoot_groups import NO_GROUP_RULES
from gardenbus.common.ports import tracing
from gardenbus.common.ports.clock import Clock
from gardenbus.scheduler.domain.left_out_seeds import with_left_out
from gardenbus.scheduler.domain.pending_shoots import (
    NO_GROUPS,
    AssignedShoot,
    DecidableShoot,
    FailedShoot,
    ReadShoot,
    UnassignedShoot,
    assigned_shoot,
    decidable_shoot,
    failed_shoot,
)
from gardenbus.scheduler.metrics import SchedulerMetrics
from gardenbus.scheduler.tracing import begin_bind, begin_decision
from gardenbus.scheduler.watch.plugins import Plugins
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.equivalence_classes import SchedulingRequest, skip_reason
from gardenbus.scheduling.results import Unschedulable
from gardenbus.scheduling.snapshot import Landscape, Snapshot
from gardenbus.scheduling.usage_index import UsageIndex

_log = structlog.stdlib.get_logger()


class Decisions(NamedTuple):
    """The decisions of a round. `skipped` belong to other schedulers, `failed` ended in an exception (their reason)."""

    assigned: Sequence[AssignedShoot]
    unassigned: Sequence[UnassignedShoot]
    skipped: Sequence[ReadShoot]
    failed: Sequence[FailedShoot]


class _Unschedulable(NamedTuple):
    """Unschedulable requests of a round with their results. They stay so, as usage only grows in it.

    Those with rules between shoots stay so until a group changes, as a member that comes may let others in; and not at
    all where a domain that becomes full may.
    """

    plain: dict[SchedulingRequest, Unschedulable]
    of_groups: dict[SchedulingRequest, Unschedulable]

    def get(self, request: SchedulingRequest) -> Unschedulable | None:
        """The result of a request; None where none is kept."""
        kept = self.plain if request.rules is NO_GROUP_RULES else self.of_groups
        return kept.get(request)

    def keep(self, request: SchedulingRequest, result: Unschedulable) -> None:
        """Keep the result of a request."""
        if request.rules is NO_GROUP_RULES:
            self.plain[request] = result
        elif not request.rules.ignores_full:
            self.of_groups[request] = result


class Decider:
    """Decides for one scheduler name."""

    def __init__(
        self, *, scheduler_name: str, clock: Clock, metrics: SchedulerMetrics, plugins: Plugins | None
    ) -> None:
        self._scheduler_name = scheduler_name
        self._clock = clock
        self._metrics = metrics
        self._plugins = plugins

    def decide_all(self, undecided: Sequence[ReadShoot], snapshot: Snapshot) -> Decisions:
        """Decide on all of them. A decision that raises is one of its shoot alone."""
        assigned: list[AssignedShoot] = []
        unassigned: list[UnassignedShoot] = []
        unschedulable = _Unschedulable({}, {})
        skipped: list[ReadShoot] = []
        failed: list[FailedShoot] = []
        began = self._clock.monotonic()
        for pending in undecided:
            decision = begin_decision(pending.span)
            try:
                decided = self._decide(pending, snapshot, unschedulable)
                if decision is not tracing.NOT_TRACED:
                    decision.end()
            except Exception as error:  # noqa: BLE001  one shoot's decision must not stop the others'
                decision.end(failed=repr(error))
                _log.error(
                    "decision.failed",
                    shoot=str(pending.key),
                    attempt=pending.failures + 1,
                    exc_info=True,
                    **tracing.fields(pending.span.traceparent),
                )
                self._metrics.exceptions.inc()
                failed.append(failed_shoot(pending, error, len(snapshot.landscape.seeds)))
                continue
            if isinstance(decided, AssignedShoot):
                assigned.append(decided)
            elif isinstance(decided, UnassignedShoot):
                unassigned.append(decided)
            else:
                skipped.append(pending)
        if undecided:
            self._metrics.decision_seconds.observe((self._clock.monotonic() - began) / len(undecided))
        return Decisions(assigned, unassigned, skipped, failed)

    def _decide(
        self, read: ReadShoot, snapshot: Snapshot, unschedulable: _Unschedulable
    ) -> AssignedShoot | UnassignedShoot | None:
        """Decide on one shoot, counting its assignment; None when another scheduler is responsible."""
        pending = prepared_shoot(read, snapshot.landscape)
        request, (left_out, bar, _seen) = pending.request, pending.exclusions
        if skip_reason(pending.shoot, self._scheduler_name):
            return None
        if bar is not None:
            return UnassignedShoot(pending, bar, len(snapshot.landscape.seeds))
        if self._plugins is not None and (problem := self._plugins.problem(request.constraints)):
            return UnassignedShoot(pending, Unschedulable(PLUGIN_FILTER, problem), len(snapshot.landscape.seeds))
        rules, namespace = request.rules, pending.key.namespace
        seen = snapshot.groups.seen(namespace, rules) if rules is not NO_GROUP_RULES else NO_GROUPS
        if left_out:
            rest = Snapshot(snapshot.landscape.without(left_out), UsageIndex(snapshot.usage), snapshot.groups)
            outcome = with_left_out(left_out, decide(request, rest))
        else:
            outcome = unschedulable.get(request) or decide(request, snapshot)
        if isinstance(outcome, Unschedulable):
            if not left_out:
                unschedulable.keep(request, outcome)
            return UnassignedShoot(pending, outcome, len(snapshot.landscape.seeds), seen)
        span = begin_bind(pending.span, outcome.seed)
        assigned = assigned_shoot(pending, outcome, snapshot.landscape, seen, span)
        if outcome.seed != pending.stored.parts.status_seed_name:  # else it counts there already
            snapshot.assume(outcome.seed, request.requests)
            if rules is not NO_GROUP_RULES:
                snapshot.groups.assume(namespace, rules, outcome.seed)
                unschedulable.of_groups.clear()
        return assigned


def prepared_shoot(pending: ReadShoot, landscape: Landscape) -> DecidableShoot:
    """The shoot with its request, as the filters of a landscape read it."""
    return decidable_shoot(pending, landscape.filters, reads_purpose=landscape.reads_purpose)
