"""How much could not be taken, over all services that put something on the subject for rejected messages."""

from prometheus_client import Counter

REJECTED = Counter(
    "gardenbus_rejected_messages_total",
    "Messages put on the subject for rejected ones, by the reason of the error.",
    ["reason"],
)

HANDLER_FAILED = "HandlerFailed"
"""Work that nobody survived."""
