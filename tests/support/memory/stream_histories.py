"""Histories of streams in memory: `ports.stream_history.StreamHistories`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.stream_history import StreamEntry, StreamHistory
from tests.support.memory.copies import copied_table


@dataclass
class _Remembered:
    created: int
    incarnation: int
    previous: int
    start: int = 0
    ended_at: int = 0
    taken: int = 0
    taken_at: int = 0
    last: int = 0

    def raise_incarnation(self, proposed: int, start: int) -> None:
        self.previous, self.incarnation = self.incarnation, max(proposed, self.incarnation + 1)
        self.start, self.ended_at = start, self.taken_at
        self.taken = self.taken_at = self.last = 0

    def advance(self, entries: Sequence[StreamEntry], last: int) -> None:
        for entry in entries:
            if entry.sequence >= self.start or entry.at > self.ended_at:
                self.taken, self.taken_at = max(self.taken, entry.sequence), max(self.taken_at, entry.at)
        self.last = max(self.last, self.taken, last)

    def history(self) -> StreamHistory:
        return StreamHistory(self.created, self.incarnation, self.previous, self.start, self.ended_at, self.last)


class MemoryStreamHistories:
    """See `ports.stream_history.StreamHistories`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._streams: dict[str, _Remembered] = {}

    def copied(self) -> dict[str, Any]:
        """All that is remembered."""
        return copied_table(self._streams)

    def restore(self, copy: dict[str, Any]) -> None:
        """Take over a copy."""
        self._streams = copied_table(copy)

    def observe(self, stream: str, created: int, entries: Sequence[StreamEntry], last_sequence: int) -> StreamHistory:
        """Remember what was seen."""
        known = self._streams.setdefault(stream, _Remembered(created, created, created))
        if created < known.created:
            return known.history()
        if created > known.created:
            known.raise_incarnation(created, 0)
            known.created = created
        else:
            repeated = [entry.sequence for entry in entries if entry.sequence <= known.taken]
            younger = [entry.sequence for entry in entries if entry.sequence in repeated and entry.at > known.taken_at]
            if younger:
                known.raise_incarnation(self._now(), min(younger))
        known.advance(entries, last_sequence)
        return known.history()

    def restart(self, stream: str, created: int, last_sequence: int, *, seen: int) -> StreamHistory:
        """Raise the incarnation."""
        known = self._streams.setdefault(stream, _Remembered(created, created, created))
        if known.incarnation == seen:
            known.raise_incarnation(self._now(), last_sequence + 1)
            known.created = created
        known.advance((), last_sequence)
        return known.history()

    def _now(self) -> int:
        return int(self._clock.now().timestamp() * 1_000_000_000)
