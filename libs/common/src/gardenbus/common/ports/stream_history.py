"""Histories of streams in the store: they tell a stream restored from an older copy from the one that was lost.

A stream that went back repeats its sequences with the same `created`. So the store counts *incarnations*: numbers like
`created` (ns since the epoch), raised whenever a stream turns out to be another one or to have gone back. Positions
compare by (incarnation, sequence).
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec


class StreamEntry(msgspec.Struct, frozen=True):
    """A message's place in its stream: its sequence, and when it was stored (µs since the epoch, by the server)."""

    sequence: int
    at: int

    @classmethod
    def of(cls, sequence: int, at: datetime) -> "StreamEntry":
        """Of a message."""
        return cls(sequence, round(at.timestamp() * 1_000_000))


class StreamHistory(msgspec.Struct, frozen=True):
    """A stream as the store knows it.

    `created` is the server's, `sequence` the highest known. The incarnation before this one is `previous`; of it are
    those messages below `start` that were stored by `ended_at` (µs): the copy still had them.
    """

    created: int
    incarnation: int
    previous: int
    start: int
    ended_at: int
    sequence: int

    def incarnation_of(self, entry: StreamEntry) -> int:
        """The incarnation that a message belongs to."""
        is_older = entry.sequence < self.start and entry.at <= self.ended_at
        return self.previous if is_older else self.incarnation


class StreamHistories(Protocol):
    """The store's memory of streams. Raises Unavailable."""

    async def observe_stream(
        self, stream: str, created: int, entries: Sequence[StreamEntry] = (), *, last_sequence: int = 0
    ) -> StreamHistory:
        """Remember what was seen of a stream, and return its history.

        An entry that is younger than the youngest known, at a sequence that was seen before, raises the incarnation; so
        does a younger `created`. An older one changes nothing: the caller may be what is old.
        """
        ...

    async def restart_stream(self, stream: str, created: int, last_sequence: int, *, seen: int) -> StreamHistory:
        """Raise the incarnation: the stream, now at `last_sequence`, is another one or went back.

        Nothing is changed if the incarnation is not `seen` any more: somebody else has raised it.
        """
        ...
