"""Prometheus metrics of a gardenlet process, summed over all its seeds."""

from prometheus_client import Counter, Gauge, Histogram

ACTIVE = Gauge("gardenbus_gardenlet_active_seeds", "Seeds whose Lease this process holds.")
IN_FLIGHT = Gauge("gardenbus_gardenlet_shoots_in_work", "Shoots that are worked on now.")
REPORTS = Counter("gardenbus_gardenlet_reports_sent_total", "Reports that the bus has taken.")
REPORTS_DELAYED = Counter("gardenbus_gardenlet_reports_delayed_total", "Reports put back because the bus was away.")
LEASE_ROUNDS = Counter(
    "gardenbus_gardenlet_lease_rounds_total",
    "Rounds of the heartbeat by result: active (renewed or taken), standby (another one is), missed.",
    ["result"],
)
for _result in ("active", "standby", "missed"):
    LEASE_ROUNDS.labels(_result)
OPERATION_SECONDS = Histogram(
    "gardenbus_gardenlet_operation_seconds",
    "Duration of an operation on a shoot in this process, by operation (Create, Reconcile, Delete, Migrate, Restore) "
    "and result: succeeded, error (tried again), failed (given up), held (waits for the garden), stopped.",
    ["operation", "result"],
    buckets=(0.25, 1, 5, 15, 30, 60, 120, 300, 600, 1800),
)
ETCD_BACKUPS = Counter(
    "gardenbus_gardenlet_etcd_backups_total", "Backups of shoots' etcds, by kind: full, delta.", ["kind"]
)
for _kind in ("full", "delta"):
    ETCD_BACKUPS.labels(_kind)
ETCD_BACKUP_FAILURES = Counter(
    "gardenbus_gardenlet_etcd_backup_failures_total", "Attempts to back up a shoot's etcd that have failed."
)

ETCD_DEFRAGMENTATIONS = Counter(
    "gardenbus_gardenlet_etcd_defragmentations_total",
    "Defragmentations of shoots' etcds, by result: done, failed.",
    ["result"],
)
for _result in ("done", "failed"):
    ETCD_DEFRAGMENTATIONS.labels(_result)

_UNFINISHED = frozenset({"error", "failed", "held", "stopped"})


def observe_operation(operation: str, outcome: str, seconds: float) -> None:
    """Observe the duration of an operation by its result."""
    result = outcome if outcome in _UNFINISHED else "succeeded"
    OPERATION_SECONDS.labels(operation, result).observe(seconds)
