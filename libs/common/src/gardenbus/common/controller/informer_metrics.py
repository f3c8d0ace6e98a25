"""Informer metrics. The label `informer` is the kinds that it caches, joined by hyphens."""

from prometheus_client import Counter, Gauge, Histogram

OBJECTS = Gauge("gardenbus_informer_objects", "Objects in an informer's cache.", ["informer"])
LAG_SECONDS = Histogram(
    "gardenbus_informer_lag_seconds",
    "Time from a change's announcement on the bus until an informer has applied it.",
    ["informer"],
    buckets=(0.005, 0.025, 0.1, 0.5, 1, 5, 30),
)
SILENT_SECONDS = Gauge(
    "gardenbus_informer_silent_seconds", "Time since an informer received a change or a heartbeat.", ["informer"]
)
LISTS = Counter("gardenbus_informer_lists_total", "Times that an informer read its whole list.", ["informer"])
