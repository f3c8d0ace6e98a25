"""Makes the work queue of each scheduler of one's own that has credentials, and again where QUEUES was made anew.

A scheduler may fetch from its queue, and make no consumer: one that it made could deliver to any subject.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable

import structlog

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.api.queues import QUEUES
from gardenbus.common.errors import NotFound, SettingsInvalid, Unavailable
from gardenbus.common.ports.bus import Bus

STREAM = "QUEUES"
POLL_SECONDS = 15.0
"""Interval at which is checked whether the stream is another one; what has credentials since is made at once."""

RETRY_SECONDS = 1.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class SchedulerQueuesController:
    """Subscribe `changed` to informers of what credentials are kept in. `principals`: all that have some."""

    def __init__(self, bus: Bus, subjects: Subjects, *principals: Callable[[], Iterable[Principal]]) -> None:
        self._bus = bus
        self._subjects = subjects
        self._principals = principals
        self._stream = subjects.stream(STREAM)
        self._created = 0
        self._made: set[str] = set()
        self._changed = asyncio.Event()

    def changed(self, _key: ObjectKey, _old: StoredObject | None, _new: StoredObject | None) -> None:
        """Look for schedulers without a queue."""
        self._changed.set()

    async def run(self) -> None:
        """Make what is missing until cancelled."""
        while True:
            self._changed.clear()
            seconds = POLL_SECONDS
            try:
                await self.reconcile()
            except (NotFound, Unavailable, SettingsInvalid) as error:
                log.warning("scheduler_queues.interrupted", reason=str(error))
                seconds = RETRY_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._changed.wait()

    async def reconcile(self) -> None:
        """Make the queues that are missing. Raises NotFound without the stream, Unavailable, SettingsInvalid."""
        names = {each.name for found in self._principals for each in found() if each.role == "scheduler"}
        created = (await self._bus.position(self._stream)).created if names else self._created
        if created != self._created:
            self._created, self._made = created, set()
        for name in sorted(names - self._made):
            queue = self._subjects.queue_of(f"scheduling.{name}")
            self._made.add(name)
            try:
                await self._bus.work_queue(self._stream, QUEUES["scheduling"].consumer_of(name), queue)
            except SettingsInvalid as error:  # a scheduler of the landscape serves the name, by its bands
                log.warning("scheduler_queues.interrupted", scheduler=name, reason=str(error))
            except Unavailable:
                self._made.discard(name)
                raise
            else:
                log.info("scheduler_queue.made", scheduler=name)
