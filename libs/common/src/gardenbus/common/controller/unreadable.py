"""Messages of a stream that a follower cannot read: anybody may have published them, and they must stop nobody."""

from collections.abc import Generator
from contextlib import contextmanager

import structlog
from prometheus_client import Counter

from gardenbus.common.errors import GardenbusError, Transient
from gardenbus.common.ports.bus import StreamMessage

UNREADABLE = Counter(
    "gardenbus_unreadable_messages_total", "Messages of followed streams that were skipped as unreadable."
)

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@contextmanager
def skip_unreadable(message: StreamMessage, raised: type[GardenbusError] = Transient) -> Generator[None]:
    """Skip, count and log a message whose handling fails; only errors of the type `raised` pass."""
    try:
        yield
    except raised:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it holds, the messages behind it count
        UNREADABLE.inc()
        _log.warning("message.unreadable", subject=message.subject, sequence=message.sequence, reason=repr(error)[:300])
