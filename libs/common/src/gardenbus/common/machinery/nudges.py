"""Asks a controller to look at objects, from callbacks that must not wait.

An informer's callbacks are plain functions. What they want looked at is kept here, each object once, and published by
`run` as soon as the bus takes it. The message is the relay's own: one per object on the queue, and whatever timer was
set for that object goes with it. A nudge that is lost with this process is made up for when the next one lists.
"""

import asyncio

import structlog

from gardenbus.common.errors import Transient
from gardenbus.common.machinery.timers import Timers
from gardenbus.common.ports.bus import Bus
from gardenbus.common.resources.keys import ObjectKey, Subjects

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

BATCH = 500
"""How many looks are asked for at once; a burst of changes must not make one long call."""

RETRY_SECONDS = 0.5
"""Pause after the bus did not take them."""


class Nudges:
    """Looks that a controller (its queue's word) owes some objects.

    What is asked for within `gather_seconds` goes out together: for looks that many changes ask for, and that may wait.
    """

    def __init__(
        self,
        bus: Bus,
        subjects: Subjects,
        controller: str,
        *,
        retry_seconds: float = RETRY_SECONDS,
        gather_seconds: float = 0.0,
    ) -> None:
        self._bus = bus
        self._subjects = subjects
        self._controller = controller
        self._retry_seconds = retry_seconds
        self._gather_seconds = gather_seconds
        self._timers = Timers(bus, subjects)
        self._owed: dict[ObjectKey, None] = {}
        self._news = asyncio.Event()

    def nudge(self, key: ObjectKey) -> None:
        """Have an object looked at; asked for again before it was published, it is one look."""
        self._owed[key] = None
        self._news.set()

    @property
    def owed(self) -> int:
        """How many objects wait to be published."""
        return len(self._owed)

    async def run(self) -> None:
        """Publish for as long as the process lives; what the bus does not take is tried again."""
        while True:
            await self._news.wait()
            if self._gather_seconds:
                await asyncio.sleep(self._gather_seconds)
            self._news.clear()
            while self._owed:
                await self._publish()

    async def _publish(self) -> None:
        keys = [key for key, _ in zip(self._owed, range(BATCH), strict=False)]
        for key in keys:
            del self._owed[key]
        messages = [
            self._timers.enqueue_message(self._subjects.queue(self._controller, key.namespace, key.name))
            for key in keys
        ]
        try:
            await self._bus.publish_many(messages)
        except Transient as error:
            self._owed = dict.fromkeys(keys) | self._owed
            _log.warning("nudges.kept", controller=self._controller, owed=len(self._owed), reason=error.message)
            await asyncio.sleep(self._retry_seconds)
