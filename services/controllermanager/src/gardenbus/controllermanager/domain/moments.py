"""Instants at which objects are due, in memory: a timer on the bus for each of all objects would be too many.

Every replica keeps them, from its cache; what several enqueue is one message on the queue.
"""

import heapq
from collections.abc import Iterator
from datetime import datetime

from gardenbus.common.api.keys import ObjectKey


class Moments:
    """An instant for each object, the soonest first."""

    def __init__(self) -> None:
        self._at: dict[ObjectKey, datetime] = {}
        self._heap: list[tuple[datetime, ObjectKey]] = []

    def __len__(self) -> int:
        return len(self._at)

    def set(self, key: ObjectKey, at: datetime) -> None:
        """Set the instant of an object, in the place of the one before."""
        if self._at.get(key) != at:
            self._at[key] = at
            heapq.heappush(self._heap, (at, key))

    def forget(self, key: ObjectKey) -> None:
        """Drop an object."""
        self._at.pop(key, None)

    def due(self, now: datetime) -> Iterator[ObjectKey]:
        """Take out the objects whose instant has come."""
        while self._heap and self._heap[0][0] <= now:
            at, key = heapq.heappop(self._heap)
            if self._at.get(key) == at:
                del self._at[key]
                yield key
