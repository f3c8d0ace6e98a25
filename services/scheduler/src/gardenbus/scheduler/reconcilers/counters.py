"""What the scheduler counts. Names follow the workqueue's and Gardener's habits."""

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram


class Counters:
    """One scheduler's counters in a registry."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.outcomes = Counter(
            "gardenbus_scheduler_outcomes",
            "Shoots by what became of them: bound, parked, done, conflict, failed, rejected.",
            ("outcome",),
            registry=registry,
        )
        self.refusals = Counter(
            "gardenbus_scheduler_refusals",
            "Refusals by the rule after which no seed was left.",
            ("rule",),
            registry=registry,
        )
        self.exceptions = Counter(
            "gardenbus_scheduler_exceptions",
            "Decisions that ended in an exception; their shoots stay queued.",
            registry=registry,
        )
        self.woken = Counter(
            "gardenbus_scheduler_woken", "Waiting shoots that were queued again after a gain.", registry=registry
        )
        self.batch_seconds = Histogram(
            "gardenbus_scheduler_batch_seconds",
            "Time from a batch in hand to its last acknowledgement.",
            registry=registry,
        )
