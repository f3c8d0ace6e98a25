"""The landscape's history, followed from the first page on that plots it."""

import asyncio
from contextlib import suppress
from typing import NoReturn

import structlog

from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import NotFound, Transient
from gardenbus.common.ports.bus import Bus, ReplayDone
from gardenbus.common.ports.clock import Clock
from gardenbus.diagnostics.history import NO_STREAM, STREAM, history_subjects, note_on, take_event
from gardenbus.diagnostics.history_record import HistoryRecord

_log = structlog.stdlib.get_logger()

FIRST_READ_SECONDS = 3.0
"""Longest time for which a page waits for what the stream holds."""

RETRY_SECONDS = 30.0
BEING_READ = "the history is being read"
AT_ONCE = 20
"""Points between two pauses for browsers."""


class HistoryCache:
    """The record of the history; `run` follows the stream from the first `opened` on."""

    def __init__(self, bus: Bus, subjects: Subjects, clock: Clock) -> None:
        self._bus = bus
        self._subjects = subjects
        self._clock = clock
        self._wanted = asyncio.Event()
        self._read = asyncio.Event()
        self._problem = ""
        self.record = HistoryRecord()

    async def opened(self) -> str:
        """Wait until the stream is read; returns what a reader has to know, "" where all is well."""
        self._wanted.set()
        if not self._read.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_READ_SECONDS):
                    await self._read.wait()
        if self._problem:
            return self._problem
        return note_on(self.record, self._clock.now()) if self._read.is_set() else BEING_READ

    async def run(self) -> NoReturn:
        """Follow for ever, as soon as a page is opened that plots it."""
        await self._wanted.wait()
        while True:
            try:
                await self._follow()
            except NotFound:
                self._fail(NO_STREAM)
            except Transient as error:
                self._fail(error.message)
            await self._clock.sleep(RETRY_SECONDS)

    def _fail(self, problem: str) -> None:
        if problem != self._problem:
            _log.warning("stream.interrupted", content="history", reason=problem)
        self._problem = problem
        self._read.set()

    async def _follow(self) -> None:
        stream = self._subjects.stream(STREAM)
        await self._bus.position(stream)
        self.record.clear()
        async with self._bus.follow(stream, history_subjects(self._subjects)) as follower:
            number = 0
            async for event in follower:
                if isinstance(event, ReplayDone):
                    self._problem = ""
                    self._read.set()
                take_event(self.record, event, self._subjects)
                number += 1
                if number % AT_ONCE == 0:
                    await asyncio.sleep(0)
