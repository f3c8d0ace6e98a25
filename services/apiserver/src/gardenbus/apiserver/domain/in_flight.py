"""Limit of what one sender may have in flight here: the bytes of its requests without a response yet.

A body is read as a whole and in one turn of the loop. Whoever sends faster than bodies are read would fill NATS' buffer
for this connection, and the server ends a connection whose buffer is full: for everybody.
"""

import contextlib
from collections import Counter
from collections.abc import Generator

from gardenbus.common.errors import TooManyRequests

MOST_BYTES = 32 * 1024 * 1024


class InFlightLimit:
    """Counts requests in flight by sender; "" are all that name none."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes: Counter[str] = Counter()

    @contextlib.contextmanager
    def counted(self, user: str, size: int) -> Generator[None]:
        """Count a request while it is in flight. Raises TooManyRequests when there are too many; one always goes."""
        if (before := self._bytes[user]) and before + size > self._most_bytes:
            limit = f"{self._most_bytes // 1024**2} MB of requests of {user or 'nobody'!r} are in flight"
            raise TooManyRequests(f"{limit}: wait for their answers, and send this again a second later")
        self._bytes[user] += size
        try:
            yield
        finally:
            self._bytes[user] -= size
            if not self._bytes[user]:
                del self._bytes[user]
