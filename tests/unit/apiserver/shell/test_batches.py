"""Durable requests end the same however they are divided into batches, each prepared while another one is in hand."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.apiserver.reconcilers.intake import Intake
from gardenbus.apiserver.reconcilers.reads import Library
from gardenbus.apiserver.reconcilers.rejecting import Rejections
from gardenbus.apiserver.reconcilers.requests import Requests
from gardenbus.apiserver.reconcilers.writing import Writer
from gardenbus.common.adapters.memory_bus import MemoryBus
from gardenbus.common.adapters.memory_store import MemoryStore
from gardenbus.common.ports.bus import Message
from gardenbus.common.resources.document import Document, encode
from gardenbus.common.resources.keys import ObjectKey, Subjects
from gardenbus.common.runtime.clock import SystemClock

NAMES = ("a", "b", "c")
SUBJECTS = Subjects()

Request = tuple[str, dict[str, str] | None]
"""An object's name, and what it shall hold (None: it shall go)."""


class Taking:
    """The requests' intake on a bus and a store in memory."""

    def __init__(self) -> None:
        clock = SystemClock()
        self.store, self.bus = MemoryStore(clock, is_open=True), MemoryBus(clock)
        self.clock = clock

    async def take(self, requests: list[Request], batch: int) -> None:
        """Publish all, then take them."""
        for name, data in requests:
            subject = SUBJECTS.delete if data is None else SUBJECTS.apply
            await self.bus.publish(Message(subject, encode(a_configmap(name, data))))
        queue = await self.bus.work_queue("REQUESTS", "apiserver", ">")
        rejections = Rejections(self.bus, self.store, SUBJECTS)
        handler = Requests(
            bus=self.bus,
            store=self.store,
            clock=self.clock,
            subjects=SUBJECTS,
            queue=queue,
            writer=Writer(self.store, self.clock),
            library=Library(self.store),
            rejections=rejections,
            consumer="apiserver",
            concurrency=10,
        )
        intake = Intake("requests", queue, handler.handle, rejections, self.clock, batch=batch, prepare=handler.prepare)
        running = asyncio.create_task(intake.run(deliveries_max=5, wait_seconds=0.01))
        async with asyncio.timeout(20):
            while (await self.bus.acknowledged_floor("REQUESTS", "apiserver")).sequence < len(requests):
                await asyncio.sleep(0.001)
        await intake.stop()
        await running

    async def standing(self) -> dict[str, dict[str, str]]:
        """What is stored."""
        found = [(name, await self.store.get(ObjectKey("configmap", "garden", name))) for name in NAMES]
        return {name: stored.document()["data"] for name, stored in found if stored is not None}


def a_configmap(name: str, data: dict[str, str] | None) -> Document:
    metadata = {"name": name, "namespace": "garden"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {}}


contents = st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"), min_size=1)
requests = st.tuples(st.sampled_from(NAMES), st.none() | contents)


@settings(max_examples=40, deadline=None)
@given(st.lists(requests, min_size=1, max_size=12), st.integers(1, 5))
def test_the_last_request_on_each_object_decides_in_batches_of_any_size(given_: list[Request], batch: int) -> None:
    async def ended() -> dict[str, dict[str, str]]:
        taking = Taking()
        await taking.take(given_, batch)
        return await taking.standing()

    assert asyncio.run(ended()) == {name: data for name, data in dict(given_).items() if data is not None}
