"""Reports outcomes of decisions on shoots: a log line each, the end of its spans, and metrics."""

from collections.abc import Sequence
from typing import Any

import structlog

from gardenbus.common.ports import tracing
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import BindOutcome
from gardenbus.scheduler.domain.decision_log import DecisionLogFields
from gardenbus.scheduler.domain.pending_shoots import AssignedShoot, DecidableShoot, UnassignedShoot
from gardenbus.scheduler.metrics import SchedulerMetrics

_log = structlog.stdlib.get_logger()

FINISHED = ("bound", "gone", "scheduled", "deleting")
"""Outcomes of a bind after which there is nothing left to decide."""

RESULTS = {"parked": "unschedulable", "again": "again"}
"""Metric labels of the store's outcomes of marking; after any other the shoot is obsolete."""


class OutcomeReports:
    """Reports for one scheduler name."""

    def __init__(self, *, scheduler_name: str, clock: Clock, metrics: SchedulerMetrics) -> None:
        self._scheduler_name = scheduler_name
        self._clock = clock
        self._metrics = metrics
        self._log_fields = DecisionLogFields()

    def count(self, assigned: Sequence[AssignedShoot], outcomes: Sequence[BindOutcome]) -> None:
        """Count what was bound: by the profile, with the points that its scores gave, and by how long it took."""
        bound = [each for each, outcome in zip(assigned, outcomes, strict=True) if outcome == "bound"]
        self._metrics.count_profile(self._scheduler_name, [each.assignment for each in bound])
        created = [each.pending.stored.created_at for each in bound]
        self._metrics.count_placed(created, self._clock.now())

    def bound(self, assigned: AssignedShoot, outcome: BindOutcome) -> None:
        """Report the outcome of a bind."""
        pending, assignment = assigned.pending, assigned.assignment
        if pending.span is not tracing.NOT_TRACED:
            assigned.span.end(outcome=outcome)
            if outcome in FINISHED:
                pending.span.end(outcome=outcome, seed=assignment.seed)
        _log.info(
            "shoot.scheduled" if outcome == "bound" else "shoot.superseded",
            outcome=outcome,
            **self._log_fields.assignment(pending.request, assignment),
            **self._log_fields_of(pending),
        )

    def unschedulable(self, unassigned: UnassignedShoot, outcome: str, attempts: int) -> None:
        """Report the outcome of marking a shoot unschedulable, and its attempts."""
        if outcome != "again" and unassigned.pending.span is not tracing.NOT_TRACED:
            unassigned.pending.span.end(outcome=outcome, rule=unassigned.result.rule)
        self._metrics.attempts.labels(RESULTS.get(outcome, "obsolete")).inc()
        if outcome == "parked":
            self._metrics.unschedulable.labels(unassigned.result.rule).inc()
        _log.info(
            "shoot.unschedulable",
            outcome=outcome,
            attempt=attempts,
            **self._log_fields.unschedulable(unassigned.pending.request, unassigned.result, unassigned.candidates),
            **self._log_fields_of(unassigned.pending),
        )

    def _log_fields_of(self, pending: DecidableShoot) -> dict[str, Any]:
        return {
            "shoot": str(pending.key),
            "uid": pending.stored.uid,
            "deliveries": pending.queued.deliveries,
            "queued_ms": round(pending.queued.queued_ms),
            "duration_ms": round((self._clock.monotonic() - pending.received_at) * 1000, 1),
            **tracing.fields(pending.span.traceparent),
        }
