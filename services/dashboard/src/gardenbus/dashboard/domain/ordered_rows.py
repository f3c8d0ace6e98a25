"""Rows in an order that is kept while they change: to add, remove or page costs the same however many there are."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Generic, TypeVar

RowT = TypeVar("RowT")

LARGEST_CHUNK = 2_000
"""Rows that are moved at the most when one is added."""


class OrderedRows(Generic[RowT]):
    """Rows in chunks, by `order`, which tells any two rows apart."""

    def __init__(self, order: Callable[[RowT], Any]) -> None:
        self._order = order
        self._chunks: list[list[RowT]] = []
        self._count = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    def __iter__(self) -> Iterator[RowT]:
        """Yield all rows in order."""
        return chain.from_iterable(self._chunks)

    def put(self, row: RowT) -> None:
        """Add a row, or put it in the place of the one that has the same order."""
        if not self._chunks:
            self._chunks.append([])
        number, index, is_there = self._find(row)
        chunk = self._chunks[number]
        if is_there:
            chunk[index] = row
            return
        chunk.insert(index, row)
        self._count += 1
        if len(chunk) > LARGEST_CHUNK:
            half = len(chunk) // 2
            self._chunks[number : number + 1] = [chunk[:half], chunk[half:]]

    def replace(self, old: RowT, new: RowT) -> None:
        """Put a row in the place of another, if that is there."""
        if self.remove(old):
            self.put(new)

    def remove(self, row: RowT) -> bool:
        """Remove a row; returns whether it was there."""
        if not self._chunks:
            return False
        number, index, is_there = self._find(row)
        if is_there:
            chunk = self._chunks[number]
            del chunk[index]
            self._count -= 1
            if not chunk:
                del self._chunks[number]
        return is_there

    def page(self, offset: int, limit: int) -> Sequence[RowT]:
        """Return the rows from an offset on."""
        for number, chunk in enumerate(self._chunks):
            if offset < len(chunk):
                following = chain.from_iterable(islice(self._chunks, number, None))
                return list(islice(following, offset, offset + limit))
            offset -= len(chunk)
        return []

    def page_from_end(self, offset: int, limit: int) -> Sequence[RowT]:
        """Return the rows from an offset on, counted from the end, the last first."""
        end = max(0, self._count - offset)
        start = max(0, end - limit)
        return self.page(start, end - start)[::-1]

    def _find(self, row: RowT) -> tuple[int, int, bool]:
        """Return a row's chunk, its place there, and whether a row of the same order is at it."""
        order, place = self._order, self._order(row)
        number = bisect_left(self._chunks, place, key=lambda chunk: order(chunk[-1]) if chunk else place)
        number = min(number, len(self._chunks) - 1)
        chunk = self._chunks[number]
        index = bisect_left(chunk, place, key=order)
        return number, index, index < len(chunk) and order(chunk[index]) == place
