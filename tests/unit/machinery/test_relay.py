"""The relay on memory adapters: poison, doubt, and who leads."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence

from gardenbus.common.adapters.memory_bus import MemoryBus
from gardenbus.common.adapters.memory_outbox import MemoryOutbox
from gardenbus.common.adapters.memory_store import MemoryStore
from gardenbus.common.errors import BadRequest, Unavailable
from gardenbus.common.machinery.relay import Relay, RelaySettings
from gardenbus.common.ports.bus import Message
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.document import StoredObject
from gardenbus.common.resources.keys import Header, Subjects
from gardenbus.common.runtime.clock import SystemClock
from tests.support.builders import a_seed, a_shoot
from tests.support.eventually import eventually

SUBJECTS = Subjects()


class ChoosyBus(MemoryBus):
    """Refuses batches for their content, and loses its answers, on demand."""

    refused = ""
    answers_to_lose = 0

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.batches: list[int] = []

    async def publish_batch(self, stream: str, messages: Sequence[Message], *, expected_last_sequence: int) -> int:
        if self.refused and any(self.refused in message.subject and message.body for message in messages):
            raise BadRequest("incomplete batch")
        last = await super().publish_batch(stream, messages, expected_last_sequence=expected_last_sequence)
        if stream == SUBJECTS.stream("OBJECTS"):
            self.batches.append(len(messages))
        if self.answers_to_lose:
            self.answers_to_lose -= 1
            raise Unavailable("no answer in time")
        return last


@contextlib.asynccontextmanager
async def running(
    store: MemoryStore, bus: MemoryBus, name: str = "one", gather_seconds: float = 0.01, gather_rate: float = 2000.0
) -> AsyncGenerator[Relay]:
    relay = Relay(
        MemoryOutbox(store, leader=name),
        bus,
        SUBJECTS,
        SystemClock(),
        RelaySettings(idle_seconds=0.02, lead_ttl_seconds=0.5, gather_seconds=gather_seconds, gather_rate=gather_rate),
    )
    task = asyncio.create_task(relay.run())
    try:
        yield relay
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def announced(bus: MemoryBus, stored: StoredObject | object) -> None:
    assert isinstance(stored, StoredObject)

    async def there() -> None:
        last = await bus.last("OBJECTS", SUBJECTS.changed(stored.key))
        assert last is not None
        assert last.headers[Header.VERSION] == str(stored.version)

    await eventually(there, within=5, every=0.01)


async def test_one_entry_that_the_stream_refuses_is_announced_without_its_body_and_blocks_nobody() -> None:
    clock = SystemClock()
    store, bus = MemoryStore(clock), ChoosyBus(clock)
    bus.refused = "poison"
    objects = [await store.create(a_seed(name)) for name in ("a", "b", "poison", "c", "d")]
    async with running(store, bus):
        for stored in objects:
            await announced(bus, stored)
    poisoned = await bus.last("OBJECTS", "garden.changed.seed._.poison")
    assert poisoned is not None
    assert poisoned.body == b""
    assert Header.TOO_LARGE in poisoned.headers


async def test_a_batch_whose_outcome_is_unknown_is_announced_again_and_the_last_value_is_the_newest() -> None:
    clock = SystemClock()
    store, bus = MemoryStore(clock), ChoosyBus(clock)
    async with running(store, bus):
        await announced(bus, await store.create(a_seed("first")))
        bus.answers_to_lose = 2
        for number in range(20):
            await announced(bus, await store.create(a_shoot(f"s{number}")))


async def test_only_one_of_two_relays_leads_and_the_other_follows_when_it_ends() -> None:
    clock = SystemClock()
    store, bus = MemoryStore(clock), ChoosyBus(clock)
    async with running(store, bus, "two-waits") as second:
        await announced(bus, await store.create(a_seed("a")))
        async with running(store, bus, "one-tries") as first:
            await announced(bus, await store.create(a_seed("b")))
            assert [first.leading, second.leading] == [False, True]
    async with running(store, bus, "one-tries"):
        await announced(bus, await store.create(a_seed("c")))


async def test_while_many_changes_come_the_next_ones_go_out_together() -> None:
    clock = SystemClock()
    store, bus = MemoryStore(clock), ChoosyBus(clock)
    await store.create(a_seed("first"))
    async with running(store, bus, gather_seconds=0.5, gather_rate=10.0):
        await eventually(lambda: _has_sent(bus, 1), within=5, every=0.01)
        for number in range(RelaySettings().gather_from):
            await store.create(a_seed(f"early-{number}"))
        await eventually(lambda: _has_sent(bus, 2), within=5, every=0.01)
        for number in range(4):
            await store.create(a_seed(f"late-{number}"))
            await asyncio.sleep(0.01)
        await announced(bus, await store.create(a_seed("last")))
    assert bus.batches == [1, RelaySettings().gather_from, 5]


async def test_many_changes_that_came_in_a_long_time_hold_nothing_up() -> None:
    clock = SystemClock()
    store, bus = MemoryStore(clock), ChoosyBus(clock)
    async with running(store, bus, gather_seconds=60, gather_rate=1e9):
        for turn in range(3):
            names = [f"s{turn}-{number}" for number in range(RelaySettings().gather_from)]
            created = [await store.create(a_seed(name)) for name in names]
            await announced(bus, created[-1])
    assert sum(bus.batches) == 3 * RelaySettings().gather_from


async def test_one_change_after_another_goes_out_at_once() -> None:
    clock = SystemClock()
    store, bus = MemoryStore(clock), ChoosyBus(clock)
    async with running(store, bus, gather_seconds=60):
        for number in range(5):
            await announced(bus, await store.create(a_seed(f"s{number}")))
    assert bus.batches == [1] * 5


async def _has_sent(bus: ChoosyBus, batches: int) -> None:
    assert len(bus.batches) >= batches
