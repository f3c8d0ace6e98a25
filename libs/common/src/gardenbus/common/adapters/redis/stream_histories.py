"""Histories of streams on Redis: `ports.stream_history.StreamHistories` over functions/stream_histories.lua."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.ports.clock import timestamp
from gardenbus.common.ports.stream_history import StreamEntry, StreamHistory, StreamLoss

_decode_loss = msgspec.json.Decoder(StreamLoss).decode


class RedisStreamHistories:
    """See `ports.stream_history.StreamHistories`."""

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection

    async def observe_stream(
        self,
        stream: str,
        created: int,
        entries: Sequence[StreamEntry] = (),
        *,
        last_sequence: int = 0,
        acknowledged: int = 0,
    ) -> StreamHistory:
        """Remember what was seen; it counts with what is written by it: without that nothing relies on it."""
        numbers = [number for entry in entries for number in (entry.sequence, entry.at)]
        seen = {"entries": numbers, "acknowledged": acknowledged}
        return await self._call("observe_stream", stream, created, last_sequence, seen, confirm=False)

    async def restart_stream(
        self, stream: str, created: int, last_sequence: int, *, seen: int, ended_at: str = ""
    ) -> StreamHistory:
        """Raise the incarnation."""
        stated = {"seen": _digits(seen), "ended_at": ended_at}
        return await self._call("restart_stream", stream, created, last_sequence, stated)

    async def stream_losses(self) -> Sequence[StreamLoss]:
        """Read the losses."""
        return tuple(map(_decode_loss, await self._connection.call("losses", {}, read_only=True)))

    async def _call(
        self, function: str, stream: str, created: int, last: int, arguments: dict[str, Any], *, confirm: bool = True
    ) -> StreamHistory:
        now = time.time_ns()
        operation = {
            "stream": stream,
            "created": _digits(created),
            "last": last,
            "proposed": _digits(now),
            "now": timestamp(datetime.fromtimestamp(now / 1e9, UTC)),
        }
        reply = await self._connection.call(function, operation | arguments, confirm=confirm)
        return StreamHistory(*(int(number) for number in reply[1:]))


def _digits(incarnation: int) -> str:
    return f"{incarnation:020d}"
