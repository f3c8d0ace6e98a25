"""Histories of streams on Redis: `ports.stream_history.StreamHistories` over functions/stream_histories.lua."""

import time
from collections.abc import Sequence
from typing import Any

from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.ports.stream_history import StreamEntry, StreamHistory


class RedisStreamHistories:
    """See `ports.stream_history.StreamHistories`."""

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection

    async def observe_stream(
        self, stream: str, created: int, entries: Sequence[StreamEntry] = (), *, last_sequence: int = 0
    ) -> StreamHistory:
        """Remember what was seen."""
        numbers = [number for entry in entries for number in (entry.sequence, entry.at)]
        return await self._call("observe_stream", stream, created, last_sequence, {"entries": numbers})

    async def restart_stream(self, stream: str, created: int, last_sequence: int, *, seen: int) -> StreamHistory:
        """Raise the incarnation."""
        return await self._call("restart_stream", stream, created, last_sequence, {"seen": _digits(seen)})

    async def _call(
        self, function: str, stream: str, created: int, last: int, arguments: dict[str, Any]
    ) -> StreamHistory:
        operation = {"stream": stream, "created": _digits(created), "last": last, "proposed": _digits(time.time_ns())}
        reply = await self._connection.call(function, operation | arguments)
        return StreamHistory(*(int(number) for number in reply[1:]))


def _digits(incarnation: int) -> str:
    return f"{incarnation:020d}"
