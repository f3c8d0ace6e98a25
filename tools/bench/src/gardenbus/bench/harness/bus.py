"""The bus by itself: Shoots published in batches and taken from a work queue meanwhile, no store and no service."""

import asyncio
import time

from gardenbus.apiserver.app import CONSUMER as REQUESTS_CONSUMER
from gardenbus.bench.comparison import Measurement
from gardenbus.bench.harness.measurement import measuring
from gardenbus.bench.harness.rig import Rig
from gardenbus.bench.manifests.shoots import names, shoot
from gardenbus.common.adapters.nats.jetstream import JetStreamBus
from gardenbus.common.api.document import encode
from gardenbus.common.ports.bus import Message, WorkQueue

BATCH = 500
WAIT_SECONDS = 1.0


class BusMeasurer:
    """Two connections of the measurer's, as of two services: one publishes, the other takes and acknowledges."""

    def __init__(self, rig: Rig, publisher: JetStreamBus, queue: WorkQueue) -> None:
        self._rig = rig
        self._publisher = publisher
        self._queue = queue

    @classmethod
    async def on(cls, rig: Rig) -> "BusMeasurer":
        """On a rig whose apiserver is not running: it takes what would be the apiserver's."""
        taker = await rig.connect("bench-taker")
        queue = await taker.work_queue(rig.subjects.stream("REQUESTS"), REQUESTS_CONSUMER, ">")
        return cls(rig, rig.bus, queue)

    async def measure(self, count: int) -> Measurement:
        """From the first publication until the last acknowledgement was sent."""
        body = encode(shoot("example-0000000", 0, "uniform"))
        messages = [Message(self._rig.subjects.apply, body) for _ in names("bus", count)]
        async with measuring(self._rig, count) as measurement:
            began = time.monotonic()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._publish(messages))
                tasks.create_task(self._take(count))
            measurement.seconds = time.monotonic() - began
        return measurement

    async def _publish(self, messages: list[Message]) -> None:
        for start in range(0, len(messages), BATCH):
            await self._publisher.publish_many(messages[start : start + BATCH])

    async def _take(self, count: int) -> None:
        left = count
        while left > 0:
            taken = await self._queue.fetch(BATCH, WAIT_SECONDS)
            await self._queue.ack_many(taken)
            left -= len(taken)
            self._rig.check_running()
