"""Prometheus metrics."""

from prometheus_client import Counter, Gauge, Histogram

CYCLES = Counter("gardenbus_placement_cycles_total", "Scheduling cycles by how they ended.", ["outcome"])
CYCLE_SECONDS = Histogram(
    "gardenbus_placement_cycle_seconds",
    "How long a scheduling cycle takes, from its decision to its last write.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
BINDINGS = Counter("gardenbus_placement_bindings_total", "Bindings written by scheduling cycles.", ["action"])
SNAPSHOTS = Counter(
    "gardenbus_placement_snapshots_total", "Snapshots that were made, of policies, resources and overrides.", ["of"]
)
CLUSTERS = Gauge("gardenbus_placement_clusters", "Member clusters that are known here.")
STATUSES = Counter("gardenbus_placement_statuses_total", "Statuses of placements that were written.")
ROLLED = Counter("gardenbus_placement_rolled_total", "Bindings written by rollouts.", ["action"])
EVICTIONS = Counter("gardenbus_placement_evictions_total", "Evictions by how they ended.", ["outcome"])
WORKS = Counter("gardenbus_placement_works_total", "Works written.", ["action"])
