"""Histories of streams in memory: `ports.stream_history.StreamHistories`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
        known = (self.created, self.incarnation, self.previous, self.start, self.ended_at, self.last, self.taken)
        return StreamHistory(*known)


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

    def _note_loss(self, stream: str, known: _Remembered, start: int, *, since: str = "") -> None:
        first = max(start, 1)
        if known.last >= first:
            waiting = known.last - max(known.acknowledged, first - 1)
            noticed = timestamp(self._clock.now())
            loss = StreamLoss(stream, first, known.last, waiting, since, known.seen_at, noticed, of_store=False)
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
        known = self._streams.setdefault(stream, _Remembered(created, created, created))
        if created < known.created:
            return known.history()
        if created > known.created:
            self._note_loss(stream, known, 0)
            known.raise_incarnation(created, 0)
            known.created = created
        else:
            repeated = [entry.sequence for entry in entries if entry.sequence <= known.taken]
            younger = [entry.sequence for entry in entries if entry.sequence in repeated and entry.at > known.taken_at]
            if younger:
                self._note_loss(stream, known, min(younger))
                known.raise_incarnation(self._now(), min(younger))
        known.advance(entries, last_sequence, now=timestamp(self._clock.now()), acknowledged=acknowledged)
        return known.history()

    def restart(self, stream: str, created: int, last_sequence: int, *, seen: int, ended_at: str = "") -> StreamHistory:
        """Raise the incarnation."""
        known = self._streams.setdefault(stream, _Remembered(created, created, created))
        if known.incarnation == seen:
            self._note_loss(stream, known, last_sequence + 1, since=ended_at)
            known.raise_incarnation(self._now(), last_sequence + 1)
            known.created = created
        known.advance((), last_sequence, now=timestamp(self._clock.now()))
        return known.history()

    def compare(self, stream: str, created: int, acknowledged: int) -> bool:
        """Note as lost what was acknowledged and is not known here."""
        known = self._streams.get(stream)
        if known is not None and known.created != created:
            return False
        seen = max(known.taken, known.acknowledged) if known else 0
        if acknowledged <= seen:
            return False
        known = self._streams.setdefault(stream, _Remembered(created, created, created))
        now = timestamp(self._clock.now())
        self.losses.append(StreamLoss(stream, seen + 1, acknowledged, 0, known.seen_at, now, now, of_store=True))
        known.taken = acknowledged
        known.advance((), acknowledged, now=now, acknowledged=acknowledged)
        return True

    def _now(self) -> int:
        return int(self._clock.now().timestamp() * 1_000_000_000)
