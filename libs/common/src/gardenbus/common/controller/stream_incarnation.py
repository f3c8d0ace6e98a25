"""Determines which incarnation of a stream a message or position is of, and notices when the stream went back."""

import asyncio
import math
from collections.abc import Sequence

import structlog

from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Bus, QueueMessage, StreamMessage, StreamPosition
from gardenbus.common.ports.clock import timestamp
from gardenbus.common.ports.stream_history import StreamEntry, StreamHistories, StreamHistory

DEPOSED_SECONDS = 15.0
"""Longest time for which a leader of a stream goes on responding after another one was elected."""

_log = structlog.stdlib.get_logger()


class StreamIncarnation:
    """One stream's. Two things raise its incarnation, whoever sees them first.

    - A message that is younger than every one known, at a sequence that was seen before (`of`, `refresh`).
    - A last sequence below one that was known before it was read, or an older `created` (`position`).
    """

    def __init__(self, bus: Bus, histories: StreamHistories, stream: str) -> None:
        self._bus = bus
        self._histories = histories
        self._stream = stream
        self._created = 0
        self._incarnation = 0
        self._behind_since = self._behind_at = -math.inf
        self._connections, self._compared = 1, 0

    async def refresh(self) -> None:
        """Compare the stream with what was observed of it: at the start, after each reconnect. Raises Unavailable."""
        self._connections += 1
        await self._compare()

    async def _compare(self) -> None:
        """Notice a stream that went back and has grown past all that was observed since.

        Whoever takes a message observes it before it is acknowledged. So what stands where the last one observed
        stood is there yet, or was observed too; what comes behind it alone shows nothing.
        """
        connection = self._connections
        await self.position()
        history = await self._observe_entries(())
        found = await self._bus.first_from(self._stream, history.observed) if history.observed else None
        if found is not None and found.sequence == history.observed:
            self._note(await self._observe_entries([StreamEntry.of(found.sequence, found.at)]))
        self._compared = max(self._compared, connection)

    async def position(self, *, acknowledged: int = 0) -> StreamPosition:
        """The stream's incarnation (as `created`) and last sequence. Raises Unavailable.

        `acknowledged`: up to where its consumer has acknowledged it, for a report of what is lost with it.
        """
        position = await self._bus.position(self._stream)
        history = await self._observe(position, acknowledged)
        if _is_behind(position, history):  # or another position was observed in between
            position = await self._bus.position(self._stream)
            if _is_behind(position, history):
                await self._check_leader()
                ended_at = await self._bus.last_stored_at(self._stream)
                history = await self._histories.restart_stream(
                    self._stream,
                    position.created,
                    position.sequence,
                    seen=history.incarnation,
                    ended_at=timestamp(ended_at) if ended_at else "",
                )
                self._note(history)
        self._behind_at = -math.inf
        self._created = position.created
        return StreamPosition(history.incarnation, position.sequence)

    async def _check_leader(self) -> None:
        """Raise Unavailable while who says that the stream went back may be a leader that another one has replaced.

        One that was cut off has not what was stored since, and responds until it hears of the other. In a stream with
        several copies it is believed once nobody has reported anything else for as long as that can take. After as
        long without a query another one may be cut off now.
        """
        if await self._bus.copies(self._stream) == 1:
            return
        now = asyncio.get_running_loop().time()
        if now - self._behind_at > DEPOSED_SECONDS:
            self._behind_since = now
        self._behind_at = now
        if now - self._behind_since < DEPOSED_SECONDS:
            raise Unavailable(f"stream {self._stream} ends below what is known of it: another server may lead it")

    async def of(self, messages: Sequence[QueueMessage]) -> list[int]:
        """The incarnation that each of these messages belongs to. Raises Unavailable.

        What was held over a loss of the connection may stand in the stream no more. In one that went back before, the
        stream is read: what it has not is of the incarnation before, and not observed.
        """
        while self._compared < self._connections:
            await self._compare()
        entries = [StreamEntry.of(each.message.sequence, each.message.at) for each in messages]
        observed = [entry for entry, each in zip(entries, messages, strict=True) if not each.is_held_over]
        history = await self._observe_entries(observed)
        held_over = [entry for entry, each in zip(entries, messages, strict=True) if each.is_held_over]
        lost = await self._lost(held_over, history)
        present = [
            entry for entry in held_over if entry not in lost and history.incarnation_of(entry) == history.incarnation
        ]
        if present:
            before, history = history, await self._observe_entries(present)
            if history.incarnation != before.incarnation:
                lost = await self._lost(held_over, history)
        self._note(history)
        return [history.incarnation_of(entry, is_lost=entry in lost) for entry in entries]

    async def _lost(self, entries: Sequence[StreamEntry], history: StreamHistory) -> set[StreamEntry]:
        """Those of some entries that the stream has no more; none while it has never gone back, as nothing differs."""
        if history.incarnation == history.previous:
            return set()
        are_lost = await asyncio.gather(*map(self._is_lost, entries))
        return {entry for entry, is_lost in zip(entries, are_lost, strict=True) if is_lost}

    async def _is_lost(self, entry: StreamEntry) -> bool:
        found = await self._bus.first_from(self._stream, entry.sequence)
        if found is None and (await self._bus.position(self._stream)).sequence < entry.sequence:
            await self._check_leader()
        return found is None or StreamEntry.of(found.sequence, found.at) != entry

    async def of_stored(self, messages: Sequence[StreamMessage]) -> list[int]:
        """The incarnation that each of these messages, just read from the stream, belongs to. Raises Unavailable."""
        if not self._created:
            await self.position()
        entries = [StreamEntry.of(each.sequence, each.at) for each in messages]
        history = await self._observe_entries(entries)
        return [history.incarnation_of(entry) for entry in entries]

    async def _observe_entries(self, entries: Sequence[StreamEntry]) -> StreamHistory:
        history = await self._histories.observe_stream(self._stream, self._created, entries)
        if history.created != self._created:
            await self.position()
            history = await self._histories.observe_stream(self._stream, self._created, entries)
        return history

    async def _observe(self, position: StreamPosition, acknowledged: int) -> StreamHistory:
        history = await self._histories.observe_stream(
            self._stream, position.created, last_sequence=position.sequence, acknowledged=acknowledged
        )
        self._note(history)
        return history

    def _note(self, history: StreamHistory) -> None:
        if self._incarnation and history.incarnation != self._incarnation:
            _log.warning(
                "stream.restarted", stream=self._stream, incarnation=history.incarnation, before=history.previous
            )
        self._incarnation = history.incarnation


def _is_behind(position: StreamPosition, history: StreamHistory) -> bool:
    """True if a stream is older than what is remembered of it."""
    return (position.created, position.sequence) < (history.created, history.sequence)
