"""Rows in an order that is kept while they change: to add, remove or page costs the same however many there are.

Words are found in their texts as fast as text is searched: each chunk has the texts of its rows joined, from when they
are needed until a row comes, goes or changes its text.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, Generic, TypeVar

RowT = TypeVar("RowT")

LARGEST_CHUNK = 2_000
"""Rows that are moved at the most when one is added."""

MANY = 8
"""Divisor of the rows: where a word is found more often, all lines are looked at one by one."""


class _Chunk(Generic[RowT]):
    """Rows, and the lines of their texts: a text each, a line a row; None until they are needed."""

    __slots__ = ("lines", "rows")

    def __init__(self, rows: list[RowT]) -> None:
        self.rows = rows
        self.lines: list[str] | None = None


class OrderedRows(Generic[RowT]):
    """Rows in chunks, by `order`, which distinguishes any two rows; `texts` are what words are found in."""

    def __init__(self, order: Callable[[RowT], Any], texts: Sequence[Callable[[RowT], str]] = ()) -> None:
        self._order = order
        self._texts = texts
        self._chunks: list[_Chunk[RowT]] = []
        self._count = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    def __iter__(self) -> Iterator[RowT]:
        """Yield all rows in order."""
        return chain.from_iterable(chunk.rows for chunk in self._chunks)

    def put(self, row: RowT) -> None:
        """Add a row, or put it in the place of the one that has the same order."""
        if not self._chunks:
            self._chunks.append(_Chunk([]))
        number, index, is_there = self._find(row)
        chunk = self._chunks[number]
        if is_there:
            if any(text(chunk.rows[index]) != text(row) for text in self._texts):
                chunk.lines = None
            chunk.rows[index] = row
            return
        chunk.rows.insert(index, row)
        chunk.lines = None
        self._count += 1
        if len(chunk.rows) > LARGEST_CHUNK:
            half = len(chunk.rows) // 2
            self._chunks[number : number + 1] = [_Chunk(chunk.rows[:half]), _Chunk(chunk.rows[half:])]

    def replace(self, old: RowT, new: RowT) -> None:
        """Put a row in the place of another, if that is there."""
        if self._order(old) == self._order(new):
            if self._chunks and self._find(old)[2]:
                self.put(new)
        elif self.remove(old):
            self.put(new)

    def remove(self, row: RowT) -> bool:
        """Remove a row; returns whether it was there."""
        if not self._chunks:
            return False
        number, index, is_there = self._find(row)
        if is_there:
            chunk = self._chunks[number]
            del chunk.rows[index]
            chunk.lines = None
            self._count -= 1
            if not chunk.rows:
                del self._chunks[number]
        return is_there

    def page(self, offset: int, limit: int) -> Sequence[RowT]:
        """Return the rows from an offset on."""
        for number, chunk in enumerate(self._chunks):
            if offset < len(chunk.rows):
                following = chain.from_iterable(each.rows for each in islice(self._chunks, number, None))
                return list(islice(following, offset, offset + limit))
            offset -= len(chunk.rows)
        return []

    def page_from_end(self, offset: int, limit: int) -> Sequence[RowT]:
        """Return the rows from an offset on, counted from the end, the last first."""
        end = max(0, self._count - offset)
        start = max(0, end - limit)
        return self.page(start, end - start)[::-1]

    def containing(self, words: Sequence[str], texts: int | None = None) -> Iterator[RowT]:
        """Yield the rows each of whose `words` is found in one of their texts (or of the first `texts`), in order.

        A word that ends in a line break is found at the end of a text.
        """
        for chunk in self._chunks:
            lines = self._lines_of(chunk)[:texts]
            rarest = words[0] if len(words) == 1 else min(words, default="", key=partial(_occurrences, lines))
            others = [word for word in words if word != rarest]
            for number in sorted({number for text in lines for number in lines_with(text, rarest)}):
                row = chunk.rows[number]
                if not others or self._has(row, others, texts):
                    yield row

    def join_texts(self) -> Iterator[None]:
        """Join the texts that are not, a chunk a step, so that the first search finds them joined."""
        for chunk in list(self._chunks):
            self._lines_of(chunk)
            yield

    def _has(self, row: RowT, words: Sequence[str], texts: int | None) -> bool:
        shown = [_line(text(row)) for text in self._texts[:texts]]
        return all(any(word in text for text in shown) for word in words)

    def _lines_of(self, chunk: _Chunk[RowT]) -> list[str]:
        if chunk.lines is None:
            chunk.lines = ["".join([_line(text(row)) for row in chunk.rows]) for text in self._texts]
        return chunk.lines

    def _find(self, row: RowT) -> tuple[int, int, bool]:
        """Return a row's chunk, its place there, and whether a row of the same order is at it."""
        order, place = self._order, self._order(row)
        number = bisect_left(self._chunks, place, key=lambda chunk: order(chunk.rows[-1]) if chunk.rows else place)
        number = min(number, len(self._chunks) - 1)
        rows = self._chunks[number].rows
        index = bisect_left(rows, place, key=order)
        return number, index, index < len(rows) and order(rows[index]) == place


def _line(text: str) -> str:
    """Return a text as one line, whatever stands in it."""
    return text.replace("\n", " ") + "\n"


def _occurrences(texts: Sequence[str], word: str) -> int:
    return sum(text.count(word) for text in texts)


def lines_with(text: str, word: str) -> Iterator[int]:
    """Yield the numbers of the lines of a text that a word is in, from 0 on, in order."""
    line, begin, at = 0, 0, text.find(word)
    if at >= 0 and not word.endswith("\n") and text.count(word) * MANY > text.count("\n"):
        yield from (number for number, each in enumerate(text.split("\n")[:-1]) if word in each)
        return
    while at >= 0:
        line += text.count("\n", begin, at)
        yield line
        line, begin = line + 1, text.find("\n", at) + 1
        at = text.find(word, begin) if begin < len(text) else -1
