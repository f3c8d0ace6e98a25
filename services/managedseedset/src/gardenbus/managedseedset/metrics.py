"""Prometheus metrics of managedseedset."""

from prometheus_client import Counter, Gauge

ACTIONS = Counter(
    "gardenbus_managedseedset_actions_total",
    "Actions carried out, by what they were (apply, patch, delete, bind, mark, unmark) and the kind they were about.",
    ["action", "kind"],
)
REJECTIONS = Counter(
    "gardenbus_managedseedset_refusals_total", "Actions that were rejected, by the error's reason.", ["reason"]
)
REPLICAS = Gauge("gardenbus_managedseedset_replicas", "Replicas of a set.", ["set"])
READY_REPLICAS = Gauge("gardenbus_managedseedset_ready_replicas", "Those of them that are ready.", ["set"])
DESIRED_REPLICAS = Gauge("gardenbus_managedseedset_wanted_replicas", "Replicas that a set shall have.", ["set"])
DRAINS_PLANNED = Counter("gardenbus_managedseedset_drains_planned_total", "Plans made for draining a seed.")


def forget(name: str) -> None:
    """Drop the gauges of a set that is gone."""
    for gauge in (REPLICAS, READY_REPLICAS, DESIRED_REPLICAS):
        gauge.remove(name)
