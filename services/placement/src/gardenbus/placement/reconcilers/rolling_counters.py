"""What is counted of rollouts, evictions and Works, for Prometheus."""

from prometheus_client import Counter

ROLLED = Counter("gardenbus_placement_rolled_total", "Bindings written by rollouts.", ["action"])
EVICTIONS = Counter("gardenbus_placement_evictions_total", "Evictions by how they ended.", ["outcome"])
WORKS = Counter("gardenbus_placement_works_total", "Works written.", ["action"])
