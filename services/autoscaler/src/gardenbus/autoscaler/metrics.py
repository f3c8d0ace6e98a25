"""Prometheus metrics of the autoscaler."""

from prometheus_client import Counter, Gauge

DESIRED = Gauge("gardenbus_autoscaler_desired_replicas", "Replicas that an autoscaler wants.", ["autoscaler"])
CURRENT = Gauge("gardenbus_autoscaler_current_replicas", "Replicas that its set has.", ["autoscaler"])
MIN = Gauge("gardenbus_autoscaler_min_replicas", "Replicas that it never goes below.", ["autoscaler"])
MAX = Gauge("gardenbus_autoscaler_max_replicas", "Replicas that it never goes above.", ["autoscaler"])
PENDING = Gauge("gardenbus_autoscaler_pending_shoots", "Waiting shoots that would fit a new seed.", ["autoscaler"])
RESCALED = Counter(
    "gardenbus_autoscaler_rescaled_total",
    "Times that this process changed a set, by direction: up, down.",
    ["autoscaler", "direction"],
)
REJECTED_CHANGES = Counter("gardenbus_autoscaler_refused_total", "Times that a change was rejected.", ["autoscaler"])


def forget(autoscaler: str) -> None:
    """Drop the gauges of an autoscaler."""
    for gauge in (DESIRED, CURRENT, MIN, MAX, PENDING):
        gauge.clear() if not autoscaler else _remove(gauge, autoscaler)


def _remove(gauge: Gauge, autoscaler: str) -> None:
    try:
        gauge.remove(autoscaler)
    except KeyError:
        return
