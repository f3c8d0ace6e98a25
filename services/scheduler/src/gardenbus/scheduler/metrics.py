"""Prometheus metrics of the scheduler. Names follow kube-scheduler's and the workqueue's.

A decision takes some 70 µs a shoot: everything is counted once a batch or round, or once an unschedulable shoot.
"""

from collections import Counter as Count
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from gardenbus.common.api.history import PLACED, placement_counter
from gardenbus.common.ports.clock import parse_timestamp
from gardenbus.common.ports.store import BindOutcome
from gardenbus.scheduling.results import Assignment

_DECISION_SECONDS = (0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.1)
_BATCH_SECONDS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_PLUGIN_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
_WAIT_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class SchedulerMetrics:
    """The metrics of one scheduler, in a registry."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self._registry = registry
        self._add_counts()
        self._add_plugins()
        self._add_times()

    def _add_counts(self) -> None:
        counter = partial(Counter, registry=self._registry)
        self.attempts = counter(
            "gardenbus_scheduler_attempts_total",
            "Attempts to place a shoot, by result: bound, unschedulable (with backoff), conflict (decided "
            "again), again (a cluster event came meanwhile), error, obsolete (placed, gone or not ours).",
            ("result",),
        )
        for result in ("bound", "unschedulable", "conflict", "again", "error", "obsolete"):
            self.attempts.labels(result)
        self.bind_conflicts = counter(
            "gardenbus_scheduler_bind_conflicts_total",
            "Assignments that the store did not carry out, by its response: changed, full, seed-changed, seed-gone, …",
            ("reason",),
        )
        self.unschedulable = counter(
            "gardenbus_scheduler_refusals_total",
            "Unschedulable attempts, by the filter after which no seed was left.",
            ("rule",),
        )
        self.exceptions = counter(
            "gardenbus_scheduler_exceptions_total", "Decisions that ended in an exception; their shoots stay queued."
        )
        self.hinted_shoots = counter(
            "gardenbus_scheduler_hinted_shoots_total",
            "Shoots of the apiserver's hints, by result: bound (before their message came), behind (cluster events are "
            "not in the cache yet), queued (left to their message for another reason).",
            ("result",),
        )
        for result in ("bound", "behind", "queued"):
            self.hinted_shoots.labels(result)
        self.unblocked = counter(
            "gardenbus_scheduler_woken_total", "Unschedulable shoots that were queued again after a cluster event."
        )

        self.decisions = counter(
            "gardenbus_scheduler_decisions_total",
            "Shoots that were bound, by the profile that chose their seed.",
            ("profile",),
        )
        self.placed = counter(
            "gardenbus_scheduler_placed_shoots_total",
            "Shoots that were bound, by the time since their creation: the least of these seconds that it is within.",
            ("within",),
        )
        self.score_points = counter(
            "gardenbus_scheduler_score_points_total",
            "Weighted scores of the seeds that were chosen, by profile and plug-in: they say which score decides.",
            ("profile", "plugin"),
        )

    def _add_plugins(self) -> None:
        self.plugin_errors = Counter(
            "gardenbus_scheduler_plugin_errors_total",
            "Requests to plug-ins without a reply that counts in time, by reason: silent (none came), invalid (it "
            "cannot be meant), late (it counts from then on), dropped (a bind was not reported to it).",
            ("plugin", "reason"),
            registry=self._registry,
        )
        self.plugin_hung_calls = Gauge(
            "gardenbus_scheduler_plugin_hung_calls",
            "Calls of an installed plug-in that have not returned in their time; with three of them it is given up.",
            ("plugin",),
            registry=self._registry,
        )
        self.plugin_seconds = Histogram(
            "gardenbus_scheduler_plugin_request_seconds",
            "Time of a request to a plug-in until its reply.",
            ("plugin",),
            buckets=_PLUGIN_SECONDS,
            registry=self._registry,
        )

    def _add_times(self) -> None:
        histogram, gauge = partial(Histogram, registry=self._registry), partial(Gauge, registry=self._registry)
        self.decision_seconds = histogram(
            "gardenbus_scheduler_decision_seconds",
            "Time of deciding on one shoot: the average of each round of a batch.",
            buckets=_DECISION_SECONDS,
        )
        self.batch_seconds = histogram(
            "gardenbus_scheduler_batch_seconds",
            "Time from a batch in hand to its last acknowledgement.",
            buckets=_BATCH_SECONDS,
        )
        self.batch_shoots = histogram(
            "gardenbus_scheduler_batch_shoots", "Shoots in a batch.", buckets=(1, 5, 25, 100, 250, 500, 1000, 5000)
        )
        self.wait_seconds = histogram(
            "gardenbus_scheduler_queue_wait_seconds",
            "Time in the queue, of the shoot in each batch that waited longest.",
            buckets=_WAIT_SECONDS,
        )
        self.depth = gauge(
            "gardenbus_scheduler_queue_depth",
            "Work that waited behind what was last fetched, by queue and profile of the scheduler.",
            ("queue", "profile"),
        )
        self.in_flight = gauge(
            "gardenbus_scheduler_batch_age_seconds",
            "How long the batch in hand has been so, by profile; 0 without one.",
            ("profile",),
        )

    def count_placed(self, created: Iterable[str], now: datetime) -> None:
        """Count shoots that were bound, by their creation times (RFC 3339); one that cannot be read is left out."""
        for text, shoots in Count(created).items():
            at = parse_timestamp(text)
            if at is not None:
                counter = placement_counter((now - at).total_seconds())
                self.placed.labels(counter.removeprefix(PLACED)).inc(shoots)

    def placed_shoots(self) -> Mapping[str, int]:
        """The shoots that were bound, as the history counts them."""
        samples = [sample for family in self.placed.collect() for sample in family.samples]
        return {
            f"{PLACED}{sample.labels['within']}": int(sample.value)
            for sample in samples
            if sample.name.endswith("_total")
        }

    def count_profile(self, profile: str, bound: Sequence[Assignment]) -> None:
        """Count shoots that were bound by a profile, with the points that its scores gave their seeds."""
        self.decisions.labels(profile).inc(len(bound))
        points: Count[str] = Count()
        for each in bound:
            for score in each.scores:
                points[score.name] += score.points
        for plugin, count in points.items():
            self.score_points.labels(profile, plugin).inc(count)

    def count_hinted(self, shoots: int, bound: int) -> None:
        """Count shoots of hints that were decided on; only those that were bound are attempts."""
        self.attempts.labels("bound").inc(bound)
        self.hinted_shoots.labels("bound").inc(bound)
        self.hinted_shoots.labels("queued").inc(shoots - bound)

    def count_binds(self, outcomes: Iterable[BindOutcome]) -> None:
        """Count the outcomes of a round's binds."""
        counts = Count(outcomes)
        bound = counts.pop("bound", 0)
        self.attempts.labels("bound").inc(bound)
        self.attempts.labels("conflict").inc(counts.total())
        for reason, count in counts.items():
            self.bind_conflicts.labels(reason).inc(count)
