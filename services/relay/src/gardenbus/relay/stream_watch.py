"""Watches the streams that others fill, and reports what is lost of them: they went back, or the store did after them.

What has been lost is noted in the store by whoever raises a stream's incarnation (`stream_history`). A relay observes
the ends of REQUESTS and REPORTS, and how far they were acknowledged, with each renewal of its lead, so that a loss
names the messages; EVENTS and REJECTED now and then. It reports each loss once: log, Event on the Namespace `garden`,
metric.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime

import structlog

from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey, Subjects
from gardenbus.common.controller.stream_incarnation import StreamIncarnation
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import EventRecord
from gardenbus.common.ports.stream_history import LOSS_SHOWN_FOR, StreamLoss
from gardenbus.relay import metrics
from gardenbus.relay.ports.outbox import Outbox

_log = structlog.stdlib.get_logger()

LANDSCAPE = ObjectKey("namespace", "", GARDEN_NAMESPACE)
"""Object of Events about the landscape as a whole."""

_WORK, _OTHERS = ("REQUESTS", "REPORTS"), ("EVENTS", "REJECTED")


class StreamWatch:
    """See the module. `consumer` is the apiserver's, on the streams that it takes work from."""

    def __init__(self, outbox: Outbox, bus: Bus, subjects: Subjects, clock: Clock, *, consumer: str) -> None:
        self._outbox = outbox
        self._bus = bus
        self._clock = clock
        self._consumer = consumer
        self._streams = {name: subjects.stream(name) for name in (*_WORK, *_OTHERS)}
        self._incarnations = {name: StreamIncarnation(bus, outbox, stream) for name, stream in self._streams.items()}
        self.requests = self._incarnations["REQUESTS"]

    async def observe(self) -> None:
        """Observe the streams of work. Raises NotFound when one is gone, Unavailable."""
        await asyncio.gather(*map(self._observe_work, _WORK))

    async def observe_all(self) -> None:
        """Observe all streams, and report what was lost. Raises NotFound, Unavailable."""
        await self.observe()
        await asyncio.gather(*(self._incarnations[name].position() for name in _OTHERS))
        await self._report()

    async def compare(self) -> None:
        """Note what was acknowledged and a store, which is about to be opened, has not seen. Raises Unavailable."""
        for name in _WORK:
            stream = self._streams[name]
            position = await self._bus.position(stream)
            await self._outbox.compare_stream(stream, position.created, await self._acknowledged(stream))

    async def _observe_work(self, name: str) -> None:
        await self._incarnations[name].position(acknowledged=await self._acknowledged(self._streams[name]))

    async def _acknowledged(self, stream: str) -> int:
        try:
            return (await self._bus.acknowledged_floor(stream, self._consumer)).sequence
        except NotFound:  # no apiserver has ever run
            return 0

    async def _report(self) -> None:
        losses = await self._outbox.stream_losses()
        for loss in losses:
            event = EventRecord(LANDSCAPE, "", "Warning", "MessagesLost", loss.text, "relay", "Restore")
            if await self._outbox.report_loss(loss, event):
                _log.error("messages.lost", stream=loss.stream, first=loss.first, last=loss.last, reason=loss.text)
        for stream in self._streams.values():
            metrics.LOST_MESSAGES.labels(stream).set(_lost_lately(losses, stream, self._clock.now()))


def _lost_lately(losses: Sequence[StreamLoss], stream: str, now: datetime) -> int:
    return sum(
        loss.last - loss.first + 1
        for loss in losses
        if loss.stream == stream and now - datetime.fromisoformat(loss.noticed_at) < LOSS_SHOWN_FOR
    )
