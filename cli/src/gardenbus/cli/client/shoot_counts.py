"""Shoots by state, and those that are busy, kept current by the OBJECTS stream; of others hardly anything is kept."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

from gardenbus.cli.output.summaries import ShootSummary, summarize_shoot
from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.garden.busy_shoots import is_busy
from gardenbus.common.api.garden.rows import ShootState
from gardenbus.common.api.keys import Header, Subjects
from gardenbus.common.controller.unreadable import skip_unreadable
from gardenbus.common.errors import Transient
from gardenbus.common.ports.bus import Bus, FollowEvent, FollowRestarted, ReplayDone, StreamMessage

RETRY_SECONDS = 0.5

_decode = json_decoder(dict[str, Any])


class ShootCounts:
    """Numbers of shoots by state, and the busy ones; `is_current` once all that there were have been read.

    A shoot is busy while its operation goes on or is in trouble, and while it has no seed.
    """

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._bus = bus
        self._subjects = subjects
        self._states: dict[str, ShootState] = {}
        self._busy: dict[str, ShootSummary] = {}
        self.states: Counter[ShootState] = Counter()
        self.current = asyncio.Event()

    @property
    def read(self) -> int:
        """Number of shoots known so far."""
        return len(self._states)

    @property
    def busy(self) -> Mapping[str, ShootSummary]:
        """The busy shoots, by subject."""
        return self._busy

    async def run(self) -> None:
        """Follow for ever, through outages."""
        while True:
            with contextlib.suppress(Transient):
                await self._follow()
            await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self) -> None:
        filters = [self._subjects.changed_kind("shoot")]
        async with self._bus.follow(self._subjects.stream("OBJECTS"), filters, last_per_subject=True) as follower:
            async for event in follower:
                self.on_event(event)

    def on_event(self, event: FollowEvent) -> None:
        """Apply one event."""
        match event:
            case ReplayDone():
                self.current.set()
            case FollowRestarted():
                for each in (self._states, self._busy, self.states):
                    each.clear()
                self.current.clear()
            case StreamMessage() if event.marker is None:
                with skip_unreadable(event):
                    self._note(event)
            case StreamMessage():
                pass

    def _note(self, message: StreamMessage) -> None:
        name = message.subject
        is_gone = message.headers.get(Header.VERB) == "deleted"
        shoot = None if is_gone else summarize_shoot(_decode(message.body))
        if (before := self._states.pop(name, None)) is not None:
            self.states[before] -= 1
        self._busy.pop(name, None)
        if shoot is None:
            return
        self._states[name] = shoot.state
        self.states[shoot.state] += 1
        if is_busy(shoot.state, shoot.seed):
            self._busy[name] = shoot
