"""Durable requests end the same however they are divided into batches, each prepared while another one is in hand."""

import asyncio
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.apiserver.access.audit_log import AuditLog
from gardenbus.apiserver.access.authorizer import Authorizer
from gardenbus.apiserver.messages.durable_requests import EARLIER_SECONDS, LAST_WAIT, DurableRequestHandler
from gardenbus.apiserver.registry.read_cache import ManifestCache
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document, StoredObject, encode
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.controller.batch_consumer import BatchConsumer, BatchSettings
from gardenbus.common.controller.dead_letter import DeadLetter
from gardenbus.common.ports.bus import Message, WorkQueue
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.clock import SystemClock
from tests.support.clocks import FakeClock
from tests.support.eventually import HANG_SECONDS
from tests.support.memory.bus import MemoryBus
from tests.support.memory.store import MemoryStore

NAMES = ("a", "b", "c")
SUBJECTS = Subjects()

Request = tuple[str, dict[str, str] | None]
"""An object's name, and what it shall hold (None: it shall go)."""


class CountingStore(MemoryStore):
    """Notes the names of what is read, and how often. The next read, if held, returns what was there when it began."""

    def __init__(self, clock: Clock, *, is_open: bool) -> None:
        super().__init__(clock, is_open=is_open)
        self.read: list[str] = []
        self.reads = 0

    async def get_many(self, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
        self.read += [key.name for key in keys]
        self.reads += 1
        return await super().get_many(keys)


class Consuming:
    """The requests' intake on a bus and a store in memory."""

    def __init__(self, clock: Clock | None = None, *, is_authorizing: bool = False) -> None:
        clock = clock or SystemClock()
        self.is_authorizing = is_authorizing
        self.store, self.bus = CountingStore(clock, is_open=True), MemoryBus(clock)
        self.clock = clock

    async def publish(self, requests: list[Request]) -> None:
        """Publish all."""
        for name, data in requests:
            subject = SUBJECTS.delete if data is None else SUBJECTS.apply
            await self.bus.publish(Message(subject, encode(a_configmap(name, data))))

    def handler(self, queue: WorkQueue, dead_letter: DeadLetter) -> DurableRequestHandler:
        """The handler of what the queue holds."""
        return DurableRequestHandler(
            bus=self.bus,
            store=self.store,
            clock=self.clock,
            subjects=SUBJECTS,
            queue=queue,
            writer=Writer(self.store, self.clock),
            manifests=ManifestCache(self.store),
            dead_letter=dead_letter,
            authorizer=Authorizer(self.store, AuditLog(self.clock), is_enforced=self.is_authorizing),
            consumer="apiserver",
            concurrency=10,
        )

    async def ready(self) -> tuple[WorkQueue, DurableRequestHandler]:
        """The queue and its handler, which knows where the stream is."""
        queue = await self.bus.work_queue("REQUESTS", "apiserver", ">")
        handler = self.handler(queue, DeadLetter(Connections(self.store, self.bus, SUBJECTS), reporter="x"))
        await handler.reader.refresh()
        return queue, handler

    async def process(self, requests: list[Request], batch: int, wait_seconds: float = 0.01) -> None:
        """Publish all, then take them."""
        await self.publish(requests)
        await self.consume(batch, wait_seconds)

    async def consume(self, batch: int, wait_seconds: float = 0.01) -> None:
        """Take what was published."""
        queue = await self.bus.work_queue("REQUESTS", "apiserver", ">")
        dead_letter = DeadLetter(Connections(self.store, self.bus, SUBJECTS), reporter="apiserver")
        handler = self.handler(queue, dead_letter)
        consumer = BatchConsumer(
            "requests",
            queue,
            handler.handle,
            reject=dead_letter.reject_poison,
            clock=self.clock,
            settings=BatchSettings(batch=batch, wait_seconds=wait_seconds),
        )
        running = asyncio.create_task(consumer.run())
        async with asyncio.timeout(HANG_SECONDS):
            while (await self.bus.acknowledged_floor("REQUESTS", "apiserver")).sequence < self.bus.server.stream(
                "REQUESTS"
            ).last_sequence:
                await asyncio.sleep(0.001)
        await consumer.stop()
        await running

    async def outcomes(self) -> dict[str, dict[str, str]]:
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
        consuming = Consuming()
        await consuming.process(given_, batch)
        return await consuming.outcomes()

    assert asyncio.run(ended()) == {name: data for name, data in dict(given_).items() if data is not None}


async def test_a_deletion_waits_for_the_creation_that_a_dead_replica_had_fetched() -> None:
    """The creation comes back to the replica in which the deletion waits for it, and stands behind it."""
    consuming = Consuming(FakeClock())
    await consuming.publish([("a", {"x": "1"})])
    dead = await consuming.bus.work_queue("REQUESTS", "apiserver", ">")
    assert len(await dead.fetch(1, 0)) == 1
    await consuming.process([("a", None)], batch=1, wait_seconds=30)
    assert await consuming.outcomes() == {}


async def test_a_batch_is_read_in_one_round_trip_with_what_belongs_to_it() -> None:
    consuming = Consuming()
    await consuming.publish([("a", {"x": "1"}), ("b", {"x": "2"})])
    queue, handler = await consuming.ready()
    messages = await queue.fetch(10, 0)
    await handler.handle(messages)
    assert (consuming.store.read, consuming.store.reads) == (["a", "b", "garden"], 1)
    assert await consuming.outcomes() == {"a": {"x": "1"}, "b": {"x": "2"}}


async def test_a_message_in_which_something_is_not_permitted_is_one_dead_letter_and_nothing_of_it_is_written() -> None:
    consuming = Consuming(is_authorizing=True)
    headers = {"Nats-Request-Info": '{"acc": "OUT", "user": "eve"}'}
    items = [a_configmap(name, {"x": "1"}) for name in NAMES]
    for body in ({"apiVersion": "v1", "kind": "List", "items": items}, items[0]):
        await consuming.bus.publish(Message(SUBJECTS.as_user("eve", "apply"), encode(body), headers))
    await consuming.publish([("b", {"x": "2"})])
    await consuming.consume(10)
    assert await consuming.outcomes() == {"b": {"x": "2"}}
    assert consuming.bus.server.stream("REJECTED").last_sequence == 2


async def test_one_request_that_does_not_end_keeps_all_that_wait_for_it_no_longer_than_one() -> None:
    consuming = Consuming(FakeClock())
    queue, handler = await consuming.ready()
    await consuming.publish([("a", {"x": "1"}), *[("b", None)] * 20])
    stuck, *behind = await queue.fetch(100, 0)
    for _ in range(LAST_WAIT - 1):
        for each in behind:
            await handler.handle([each])
        behind = [each for each in await queue.fetch(100, 0) if each.message.sequence != stuck.message.sequence]
        assert len(behind) == 20
    for each in behind:
        await handler.handle([each])
    assert consuming.clock.monotonic() < (LAST_WAIT + 1) * EARLIER_SECONDS
    assert {each.message.sequence for each in await queue.fetch(100, 0)} <= {stuck.message.sequence}
