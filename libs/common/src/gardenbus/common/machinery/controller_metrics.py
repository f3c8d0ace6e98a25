"""A controller's metrics, under the names that client-go's workqueue and controller-runtime use."""

from prometheus_client import Counter, Gauge, Histogram

_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

DEPTH = Gauge("workqueue_depth", "Work that waited behind what was last fetched.", ["name"])
ADDS = Counter("workqueue_adds_total", "Work taken from the queue.", ["name"])
RETRIES = Counter("workqueue_retries_total", "Work put back with backoff.", ["name"])
QUEUE_SECONDS = Histogram("workqueue_queue_duration_seconds", "Waiting in the queue.", ["name"], buckets=_SECONDS)
WORK_SECONDS = Histogram("workqueue_work_duration_seconds", "In hand.", ["name"], buckets=_SECONDS)
UNFINISHED_SECONDS = Gauge("workqueue_unfinished_work_seconds", "Age of all work in hand, added up.", ["name"])
LONGEST_SECONDS = Gauge("workqueue_longest_running_processor_seconds", "Age of the oldest work in hand.", ["name"])

RECONCILES = Counter(
    "controller_runtime_reconcile_total",
    "Looks, by result: success, error, requeue, requeue_after.",
    ["controller", "result"],
)
ERRORS = Counter("controller_runtime_reconcile_errors_total", "Looks that failed.", ["controller"])
TERMINAL_ERRORS = Counter(
    "controller_runtime_terminal_reconcile_errors_total", "Looks that fail until the object changes.", ["controller"]
)
RECONCILE_SECONDS = Histogram(
    "controller_runtime_reconcile_time_seconds", "Duration of a look.", ["controller"], buckets=_SECONDS
)
MAX_CONCURRENT = Gauge("controller_runtime_max_concurrent_reconciles", "Places for work in hand.", ["controller"])
ACTIVE = Gauge("controller_runtime_active_workers", "Places in use.", ["controller"])
