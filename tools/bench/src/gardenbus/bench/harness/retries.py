"""Retries with servers on a busy machine: what is not acknowledged in time is requested again while the disk has room.

A server that is slow and one that cannot write look the same from outside: neither acknowledges. Whoever started it can
tell, as its files are on a disk that he can look at.
"""

import asyncio
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Bus, Message

RETRY_SECONDS = 300.0
"""Longest time of one step in all."""

PAUSE_SECONDS = 1.0
"""Between two attempts; and how long a stream has to stand still before what is missing is taken as lost."""

LEAST_FREE_MB = 100.0
"""With less room than this a disk counts as full."""


class BenchFailed(Exception):
    """A measurement failed; the message names what was missing."""


class AnnouncedTwice(BenchFailed):
    """More messages came than were to: what was not acknowledged in the time of a publish is announced again."""


class Retries:
    """Repeats steps to which servers do not respond. `files`: a directory on the disk that they write to."""

    def __init__(
        self,
        files: Path,
        *,
        seconds: float = RETRY_SECONDS,
        pause_seconds: float = PAUSE_SECONDS,
        least_free_mb: float = LEAST_FREE_MB,
    ) -> None:
        self._files = files
        self._seconds = seconds
        self._pause_seconds = pause_seconds
        self._least_free_mb = least_free_mb

    async def repeat(self, step: Callable[[], Awaitable[None]], what: str) -> None:
        """Carry a step out, again while a server is away. Raises BenchFailed when its disk is full or time is up."""
        began = time.monotonic()
        while True:
            try:
                return await step()
            except Unavailable as error:
                self._check_disk(what)
                seconds = time.monotonic() - began
                if seconds > self._seconds:
                    raise BenchFailed(f"{what}: not acknowledged for {seconds:.0f} s: {error.message}") from error
                sys.stderr.write(f"{what}: not acknowledged in time, tried again ({seconds:.0f} s)\n")
            await asyncio.sleep(self._pause_seconds)

    async def publish_in_order(self, bus: Bus, stream: str, messages: Sequence[Message], *, after: int) -> int:
        """Store messages in order, each once, where nobody else publishes; returns the last one's sequence.

        What was not acknowledged may have been stored nevertheless: the stream's position says how much of it.
        """
        end, stands_at = after + len(messages), after
        is_first = True

        async def rest() -> None:
            nonlocal stands_at, is_first
            if not is_first:
                stands_at = await self._settled(bus, stream)
            is_first = False
            if stands_at < end:
                await bus.publish_batch(stream, messages[stands_at - after :], expected_last_sequence=stands_at)

        await self.repeat(rest, f"{len(messages)} messages on {stream}")
        return end

    async def _settled(self, bus: Bus, stream: str) -> int:
        """Position of a stream once it stands still: messages may still be on their way."""
        stood_at = -1
        while (stands_at := (await bus.position(stream)).sequence) != stood_at:
            stood_at = stands_at
            await asyncio.sleep(self._pause_seconds)
        return stands_at

    def _check_disk(self, what: str) -> None:
        free_mb = shutil.disk_usage(self._files).free / 1e6
        if free_mb < self._least_free_mb:
            raise BenchFailed(f"{what}: the disk of {self._files} is full ({free_mb:.0f} MB free): make room")
