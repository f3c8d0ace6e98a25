"""Metrics of the apiserver, and those of them that it counts for the landscape's history."""

from collections.abc import Mapping, Sequence

from prometheus_client import Counter, Histogram

from gardenbus.common.api import history
from gardenbus.common.controller.dead_letter import REJECTED
from gardenbus.common.controller.process_counts import counted
from gardenbus.common.ports.bus import QueueMessage

REJECTED_CODES = frozenset({"400", "403", "405", "413", "422", "429"})
"""Codes of responses to requests that were rejected: what is not found, or was changed meanwhile, is none."""

REQUEST_SECONDS = Histogram(
    "gardenbus_apiserver_request_duration_seconds", "Time to respond to a request.", ["verb", "code"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)  # fmt: skip
PROCESSED = Counter(
    "gardenbus_apiserver_messages_taken_total", "Messages that were carried out or rejected.", ["intake"]
)
WAIT_SECONDS = Histogram(
    "gardenbus_apiserver_queue_wait_seconds", "From publishing until it was in hand, of each batch's first message.",
    ["intake"], buckets=(0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)  # fmt: skip
UNKNOWN_OBJECTS = Counter(
    "gardenbus_apiserver_unknown_objects_total",
    "Queries of gardenlets for objects that the store neither has nor remembers; they are kept.",
    ["kind"],
)
OVER_BUDGET = Counter(
    "gardenbus_apiserver_over_budget_total",
    "Requests rejected as their user has used up a limit of its budget.",
    ["limit"],
)
MIGRATIONS = Counter(
    "gardenbus_apiserver_migrations_total", "Migrations of control planes that were requested of this process."
)
RETURNED = Counter("gardenbus_apiserver_messages_returned_total", "Messages given back after an error.", ["intake"])


class ConsumerMetrics:
    """Counts the messages of one batch consumer."""

    def __init__(self, name: str) -> None:
        self._processed = PROCESSED.labels(name)
        self._wait_seconds = WAIT_SECONDS.labels(name)
        self._returned = RETURNED.labels(name)  # shown as 0 from the beginning: a rate needs a first value

    def finished(self, messages: Sequence[QueueMessage]) -> None:
        """Messages were handled or rejected."""
        self._processed.inc(len(messages))
        self._wait_seconds.observe(messages[0].queued_ms / 1000)

    def returned(self, messages: Sequence[QueueMessage]) -> None:
        """Messages were released after an unexpected error."""
        self._returned.inc(len(messages))


def request_counts() -> Mapping[str, int]:
    """Rejected requests (with a response, and durable ones, together), and migrations that were requested here."""
    responses = counted(REQUEST_SECONDS, is_counted=lambda labels: labels["code"] in REJECTED_CODES)
    return {
        history.REJECTED: int(responses + counted(REJECTED, is_counted=lambda _: True)),
        history.MIGRATIONS: int(counted(MIGRATIONS, is_counted=lambda _: True)),
    }
