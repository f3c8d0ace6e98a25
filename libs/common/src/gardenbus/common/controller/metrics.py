"""Controller metrics, under the names of client-go's workqueue and of controller-runtime."""

from prometheus_client import Counter, Gauge, Histogram

_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

DEPTH = Gauge("workqueue_depth", "Messages that waited behind the last fetch.", ["name"])
ADDS = Counter("workqueue_adds_total", "Messages fetched from the queue.", ["name"])
RETRIES = Counter("workqueue_retries_total", "Messages requeued with backoff.", ["name"])
QUEUE_SECONDS = Histogram("workqueue_queue_duration_seconds", "Waiting in the queue.", ["name"], buckets=_SECONDS)
WORK_SECONDS = Histogram(
    "workqueue_work_duration_seconds", "From fetch to acknowledgement.", ["name"], buckets=_SECONDS
)
UNFINISHED_SECONDS = Gauge("workqueue_unfinished_work_seconds", "Age of all messages in flight, added up.", ["name"])
LONGEST_SECONDS = Gauge("workqueue_longest_running_processor_seconds", "Age of the oldest message in flight.", ["name"])

RECONCILES = Counter(
    "controller_runtime_reconcile_total",
    "Reconciles, by result: success, error, requeue, requeue_after.",
    ["controller", "result"],
)
ERRORS = Counter("controller_runtime_reconcile_errors_total", "Reconciles that failed.", ["controller"])
TERMINAL_ERRORS = Counter(
    "controller_runtime_terminal_reconcile_errors_total",
    "Reconciles that fail until the object changes.",
    ["controller"],
)
RECONCILE_SECONDS = Histogram(
    "controller_runtime_reconcile_time_seconds", "Duration of a reconcile.", ["controller"], buckets=_SECONDS
)
MAX_CONCURRENT = Gauge(
    "controller_runtime_max_concurrent_reconciles", "Limit of concurrent reconciles.", ["controller"]
)
ACTIVE = Gauge("controller_runtime_active_workers", "Concurrent reconciles.", ["controller"])
