"""Histories of streams in memory: `ports.stream_history.StreamHistories`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gardenbus.common.ports.bus import StreamPosition
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.stream_history import StreamEntry, StreamHistory, StreamLoss
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
    seen_at: str = ""
    acknowledged: int = 0

    def raise_incarnation(self, proposed: int, start: int) -> None:
        self.previous, self.incarnation = self.incarnation, max(proposed, self.incarnation + 1)
        self.start, self.ended_at = start, self.taken_at
        self.taken = self.taken_at = self.last = self.acknowledged = 0

    def advance(self, entries: Sequence[StreamEntry], last: int, *, now: str = "", acknowledged: int = 0) -> None:
        before = self.last
        for entry in entries:
            if entry.sequence >= self.start or entry.at > self.ended_at:
                self.taken, self.taken_at = max(self.taken, entry.sequence), max(self.taken_at, entry.at)
        self.last = max(self.last, self.taken, last)
        self.seen_at = now if self.last != before else self.seen_at
        self.acknowledged = max(self.acknowledged, acknowledged)

    def history(self) -> StreamHistory:
        recorded = (self.created, self.incarnation, self.previous, self.start, self.ended_at, self.last, self.taken)
        return StreamHistory(*recorded)


class MemoryStreamHistories:
    """See `ports.stream_history.StreamHistories`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._streams: dict[str, _Remembered] = {}
        self.losses: list[StreamLoss] = []

    def copied(self) -> dict[str, Any]:
        """All that is remembered."""
        return copied_table(self._streams)

    def restore(self, copy: dict[str, Any]) -> None:
        """Take over a copy."""
        self._streams = copied_table(copy)

    def end_of(self, stream: str, position: StreamPosition) -> tuple[int, int]:
        """Incarnation and sequence up to which anything of a stream is known."""
        recorded = self._streams.get(stream)
        if recorded is None:
            return position.created, position.sequence
        is_same = recorded.created == position.created
        return recorded.incarnation, max(recorded.last, position.sequence) if is_same else recorded.last

    def _note_loss(self, stream: str, recorded: _Remembered, start: int, *, since: str = "") -> None:
        first = max(start, 1)
        if recorded.last >= first:
            waiting = recorded.last - max(recorded.acknowledged, first - 1)
            noticed = timestamp(self._clock.now())
            loss = StreamLoss(stream, first, recorded.last, waiting, since, recorded.seen_at, noticed, of_store=False)
            self.losses.append(loss)

    def observe(
        self,
        stream: str,
        created: int,
        entries: Sequence[StreamEntry],
        last_sequence: int,
        *,
        acknowledged: int = 0,
    ) -> StreamHistory:
        """Remember what was seen."""
        recorded = self._streams.setdefault(stream, _Remembered(created, created, created))
        if created < recorded.created:
            return recorded.history()
        if created > recorded.created:
            self._note_loss(stream, recorded, 0)
            recorded.raise_incarnation(created, 0)
            recorded.created = created
        else:
            repeated = [entry.sequence for entry in entries if entry.sequence <= recorded.taken]
            younger = [
                entry.sequence for entry in entries if entry.sequence in repeated and entry.at > recorded.taken_at
            ]
            if younger:
                self._note_loss(stream, recorded, min(younger))
                recorded.raise_incarnation(self._now(), min(younger))
        recorded.advance(entries, last_sequence, now=timestamp(self._clock.now()), acknowledged=acknowledged)
        return recorded.history()

    def restart(self, stream: str, created: int, last_sequence: int, *, seen: int, ended_at: str = "") -> StreamHistory:
        """Raise the incarnation."""
        recorded = self._streams.setdefault(stream, _Remembered(created, created, created))
        if recorded.incarnation == seen:
            self._note_loss(stream, recorded, last_sequence + 1, since=ended_at)
            recorded.raise_incarnation(self._now(), last_sequence + 1)
            recorded.created = created
        recorded.advance((), last_sequence, now=timestamp(self._clock.now()))
        return recorded.history()

    def compare(self, stream: str, created: int, acknowledged: int) -> bool:
        """Note as lost what was acknowledged and is not known here."""
        recorded = self._streams.get(stream)
        if recorded is not None and recorded.created != created:
            return False
        seen = max(recorded.taken, recorded.acknowledged) if recorded else 0
        if acknowledged <= seen:
            return False
        recorded = self._streams.setdefault(stream, _Remembered(created, created, created))
        now = timestamp(self._clock.now())
        self.losses.append(StreamLoss(stream, seen + 1, acknowledged, 0, recorded.seen_at, now, now, of_store=True))
        recorded.taken = acknowledged
        recorded.advance((), acknowledged, now=now, acknowledged=acknowledged)
        return True

    def _now(self) -> int:
        return int(self._clock.now().timestamp() * 1_000_000_000)
