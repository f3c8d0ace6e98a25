"""Metrics of the Kubernetes API."""

from prometheus_client import Counter, Gauge, Histogram

REQUEST_SECONDS = Histogram(
    "gardenbus_kubeapi_request_duration_seconds", "Time to respond to a request, watches aside.", ["verb", "code"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)  # fmt: skip

WATCHES = Gauge("gardenbus_kubeapi_watches", "Watches that go on.")
OBJECTS = Gauge("gardenbus_kubeapi_cached_objects", "Objects in the watch cache.")
SLOW = Counter("gardenbus_kubeapi_slow_watches_total", "Watches that were ended because their clients did not read.")
REJECTED = Counter("gardenbus_kubeapi_rejected_requests_total", "Requests that were rejected for being too many.")
