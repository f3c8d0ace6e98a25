"""Enqueues objects for a controller, from callbacks that must not wait.

An informer's callbacks are plain functions. The objects that they enqueue are kept here, each once, and published by
`run` as soon as the bus accepts them. The message is the relay's own: one per object on the queue, and whatever timer
was set for that object goes with it. What is lost with this process is enqueued again when the next one lists.
"""

import asyncio
from collections.abc import Iterable

import structlog

from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.controller.timers import Timers
from gardenbus.common.controller.wait import RETRY_SECONDS
from gardenbus.common.errors import Transient
from gardenbus.common.ports.bus import Bus

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

BATCH = 500
"""Objects published at once; a burst of changes must not make one long call."""


class Enqueuer:
    """Objects to enqueue for a controller (its queue's word).

    What is enqueued within `gather_seconds` goes out together: a debounce for reconciles that many changes cause.
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
        self._pending: dict[ObjectKey, None] = {}
        self._added = asyncio.Event()

    def enqueue(self, key: ObjectKey) -> None:
        """Enqueue an object; enqueued again before it was published, it is one message."""
        self._pending[key] = None
        self._added.set()

    def enqueue_all(self, keys: Iterable[ObjectKey]) -> None:
        """Enqueue objects."""
        for key in keys:
            self.enqueue(key)

    @property
    def pending(self) -> int:
        """Objects that wait to be published."""
        return len(self._pending)

    async def run(self) -> None:
        """Publish until cancelled; what fails is tried again."""
        while True:
            await self._added.wait()
            if self._gather_seconds:
                await asyncio.sleep(self._gather_seconds)
            self._added.clear()
            while self._pending:
                await self._publish()

    async def _publish(self) -> None:
        keys = [key for key, _ in zip(self._pending, range(BATCH), strict=False)]
        for key in keys:
            del self._pending[key]
        messages = [
            self._timers.enqueue_message(self._subjects.queue(self._controller, key.namespace, key.name))
            for key in keys
        ]
        try:
            await self._bus.publish_many(messages)
        except Transient as error:
            self._pending = dict.fromkeys(keys) | self._pending
            _log.warning(
                "enqueue.postponed", controller=self._controller, pending=len(self._pending), reason=error.message
            )
            await asyncio.sleep(self._retry_seconds)
