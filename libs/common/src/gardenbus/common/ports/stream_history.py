"""Histories of streams in the store: they distinguish a stream restored from an older copy from the one that was lost.

A stream that went back repeats its sequences with the same `created`. So the store counts *incarnations*: numbers like
`created` (ns since the epoch), raised whenever a stream turns out to be another one or to have gone back. Positions
compare by (incarnation, sequence).
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

LOSS_SHOWN_FOR = timedelta(days=7)
"""Time for which a loss is reported as a finding."""


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

    `created` is the server's, `sequence` the highest known, `observed` the highest of the messages that were seen. The
    incarnation before this one is `previous`; of it are those messages below `start` that were stored by `ended_at`
    (µs): the copy still had them. So are those that a consumer holds and the stream has no more: what was fetched last,
    perhaps nobody has observed.
    """

    created: int
    incarnation: int
    previous: int
    start: int
    ended_at: int
    sequence: int
    observed: int

    def incarnation_of(self, entry: StreamEntry, *, is_lost: bool = False) -> int:
        """The incarnation that a message belongs to. `is_lost`: the stream has it no more."""
        is_older = is_lost or (entry.sequence < self.start and entry.at <= self.ended_at)
        return self.previous if is_older else self.incarnation


_WORK = ("REQUESTS", "REPORTS")
"""Streams whose messages are carried out: nobody acknowledges those of others."""


class StreamLoss(msgspec.Struct, frozen=True):
    """Messages that a stream has lost as it went back, or (`of_store`) a store that did after they were acknowledged.

    Of a store that was restored from a backup nobody knows which messages: its `stream` is "".

    `waiting` is how many of them, the last ones, nobody had acknowledged. `since` and `till`: when the last message
    before and the last of them were stored, "" where that is not known.
    """

    stream: str
    first: int
    last: int
    waiting: int
    since: str
    till: str
    noticed_at: str
    of_store: bool

    @property
    def loss_id(self) -> str:
        """Identity among all losses."""
        return f"{self.stream} {self.first} {self.last} {self.noticed_at}"

    @property
    def text(self) -> str:
        """The loss in a sentence."""
        if not self.stream:
            return (
                f"the store was restored from a backup of {self.since}: what was written after that, until "
                f"{self.till}, is gone, unless the bus still had it"
            )
        span = f"{self.first} to {self.last}" if self.last > self.first else f"{self.first}"
        stored = "".join(f" {word} {at}" for word, at in (("after", self.since), ("until", self.till)) if at)
        if self.of_store:
            return (
                f"messages {span} of {self.stream} (acknowledged{stored}) were carried out in a store that was lost: "
                "what was not announced of them is gone"
            )
        waiting = f"; {self.waiting} of them, from {self.last - self.waiting + 1} on, had not been carried out"
        is_shown = self.waiting and self.stream.endswith(_WORK)
        return f"{self.stream} has lost messages {span} (stored{stored}){waiting if is_shown else ''}"


class StreamHistories(Protocol):
    """The store's memory of streams. Raises Unavailable."""

    async def observe_stream(
        self,
        stream: str,
        created: int,
        entries: Sequence[StreamEntry] = (),
        *,
        last_sequence: int = 0,
        acknowledged: int = 0,
    ) -> StreamHistory:
        """Remember what was seen of a stream, and return its history. It lasts once a later write of the caller does.

        `acknowledged`: up to where its consumer has acknowledged it.

        An entry that is younger than the youngest known, at a sequence that was seen before, raises the incarnation; so
        does a younger `created`. An older one changes nothing: the caller may be what is old.
        """
        ...

    async def restart_stream(
        self, stream: str, created: int, last_sequence: int, *, seen: int, ended_at: str = ""
    ) -> StreamHistory:
        """Raise the incarnation: the stream, now at `last_sequence`, is another one or went back.

        Nothing is changed if the incarnation is not `seen` any more: somebody else has raised it. `ended_at`: when its
        last message was stored.
        """
        ...

    async def stream_losses(self) -> Sequence[StreamLoss]:
        """List the latest losses, oldest first. They are noted by whoever raises an incarnation."""
        ...
