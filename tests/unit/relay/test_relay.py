"""The relay on memory adapters: poison, doubt, and who leads."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.controller import stream_incarnation
from gardenbus.common.errors import BadRequest, Conflict, Unavailable
from gardenbus.common.ports.bus import Message, StreamMessage
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Creation
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.relay.held_page import FEW_ENTRIES, PLACING_SECONDS, READ_AGAIN_MAX
from gardenbus.relay.relay import Relay, RelaySettings
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.memory.bus import MemoryBus
from tests.support.memory.outbox import MemoryOutbox
from tests.support.memory.store import MemoryStore
from tests.support.scheduling import SchedulerUnderTest, stocked

SUBJECTS = Subjects()


class DyingOutbox(MemoryOutbox):
    """Ends its relay before or after one call, as a kill does."""

    def __init__(self, store: MemoryStore, *, dies_at: str, is_done: bool) -> None:
        super().__init__(store, leader="dying")
        call = getattr(self, dies_at)

        async def die(*args: Any) -> None:
            if is_done:
                await call(*args)
            self.trim = self._nothing  # type: ignore[method-assign]
            raise asyncio.CancelledError

        setattr(self, dies_at, die)

    async def _nothing(self, *_args: Any) -> None: ...


class ChoosyBus(MemoryBus):
    """Refuses messages for their content, and loses its answers, on demand."""

    rejected = ""
    responses_to_lose = 0

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.wholes: list[bool] = []

    async def publish_batch(
        self, stream: str, messages: Sequence[Message], *, expected_last_sequence: int, whole: bool = False
    ) -> int:
        self.wholes.append(whole)
        publish = super().publish_batch
        for number, message in enumerate(messages):
            if self.rejected and self.rejected in message.subject and message.body:
                if whole or len(messages) == 1:
                    raise BadRequest("incomplete batch")
                await publish(stream, messages[:number], expected_last_sequence=expected_last_sequence)
                raise Conflict("not all were stored")
        last = await publish(stream, messages, expected_last_sequence=expected_last_sequence, whole=whole)
        if self.responses_to_lose:
            self.responses_to_lose -= 1
            raise Unavailable("no response in time")
        return last


@contextlib.asynccontextmanager
async def running(
    store: MemoryStore,
    bus: MemoryBus,
    name: str = "one",
    *,
    outbox: MemoryOutbox | None = None,
    holds_pages: bool = True,
) -> AsyncGenerator[Relay]:
    relay = Relay(
        outbox or MemoryOutbox(store, leader=name),
        bus,
        SUBJECTS,
        SystemClock(),
        RelaySettings(idle_seconds=0.03, lead_ttl_seconds=0.5, holds_pages=holds_pages),
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

    await eventually(there, every=0.01)


async def eventually_empty(store: MemoryStore) -> None:
    async def is_empty() -> None:
        assert not store.state.outbox

    await eventually(is_empty, every=0.01)


async def test_one_entry_that_the_stream_refuses_is_announced_without_its_body_and_blocks_nobody() -> None:
    clock = SystemClock()
    store, bus = MemoryStore(clock), ChoosyBus(clock)
    bus.rejected = "poison"
    objects = [await store.create(a_seed(name)) for name in ("a", "b", "poison", "c", "d")]
    async with running(store, bus):
        for stored in objects:
            await announced(bus, stored)
    poisoned = await bus.last("OBJECTS", "garden.changed.seed._.poison")
    assert poisoned is not None
    assert poisoned.body == b""
    assert Header.TOO_LARGE in poisoned.headers


async def test_an_entry_that_is_refused_later_on_is_found_by_batches_that_are_stored_whole_or_not_at_all() -> None:
    clock = SystemClock()
    store, bus = MemoryStore(clock), ChoosyBus(clock)
    bus.rejected = "poison"
    async with running(store, bus):
        await announced(bus, await store.create(a_seed("first")))
        await announced(bus, await store.create(a_seed("second")))
        assert bus.wholes[0], "nobody knows yet where the stream stands"
        assert not bus.wholes[-1]
        # one call of the store, so that they come on one page
        created = await store.create_many([Creation(a_seed(name)) for name in ("a", "b", "poison", "c", "d")])
        for stored in created:
            await announced(bus, stored)
        await announced(bus, await store.create(a_seed("last")))
        assert not bus.wholes[-1]
    poisoned = await bus.last("OBJECTS", "garden.changed.seed._.poison")
    assert poisoned is not None
    assert Header.TOO_LARGE in poisoned.headers


async def test_a_batch_whose_outcome_is_unknown_is_announced_again_and_the_last_value_is_the_newest() -> None:
    clock = SystemClock()
    store, bus = MemoryStore(clock), ChoosyBus(clock)
    async with running(store, bus):
        await announced(bus, await store.create(a_seed("first")))
        bus.responses_to_lose = 2
        for number in range(20):
            await announced(bus, await store.create(a_shoot(f"s{number}")))


class BusWithoutObjects(MemoryBus):
    """Stores nothing in OBJECTS for a while."""

    rejections = 3

    async def publish_batch(
        self, stream: str, messages: Sequence[Message], *, expected_last_sequence: int, whole: bool = False
    ) -> int:
        if stream == "OBJECTS" and self.rejections:
            self.rejections -= 1
            assert not await self.subjects("BINDINGS", ">"), "a seed was shown what the bus cannot bring back yet"
            raise Unavailable("no response in time")
        return await super().publish_batch(stream, messages, expected_last_sequence=expected_last_sequence, whole=whole)


async def test_a_seed_is_shown_nothing_that_a_store_which_goes_back_could_not_be_told_by_the_bus() -> None:
    """Or it would run what the store, repaired from OBJECTS, has elsewhere."""
    clock = SystemClock()
    store, bus = MemoryStore(clock), BusWithoutObjects(clock)
    async with running(store, bus):
        await announced(bus, await store.create(a_seed("s1")))
        assert not bus.rejections
        assert await bus.subjects("BINDINGS", ">")


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


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("dies_at", ["restore_many", "open", "reannounce", "requeue_pending"])
async def test_a_relay_that_dies_while_it_brings_a_store_back_leaves_nothing_undone(
    dies_at: str, is_done: bool
) -> None:
    clock = SystemClock()
    store, bus = MemoryStore(clock), MemoryBus(clock)
    copy = store.copied()
    async with running(store, bus):
        await announced(bus, await store.create(a_seed()))
        shoot = await store.create(a_shoot())
        assert isinstance(shoot, StoredObject)
        await announced(bus, shoot)
        await eventually_empty(store)
    work = SUBJECTS.scheduling("default-scheduler", shoot.key)
    await bus.purge("QUEUES", work)
    copy["positions"] = {}
    store.restore_copy(copy)
    dying = Relay(DyingOutbox(store, dies_at=dies_at, is_done=is_done), bus, SUBJECTS, clock)
    await asyncio.gather(asyncio.create_task(dying.run()), return_exceptions=True)
    async with running(store, bus, "two"):

        async def is_queued() -> None:
            assert await bus.last("QUEUES", work) is not None

        await eventually(is_queued, every=0.01)


class LosingOutbox(MemoryOutbox):
    """Its store comes back as an older copy before or after one call of a relay that leads, once."""

    def __init__(self, store: MemoryStore, copy: dict[str, Any], *, loses_at: str, is_done: bool) -> None:
        super().__init__(store, leader="one")
        self.has_lost = False
        call = getattr(self, loses_at)

        async def lose(*args: Any, **named: Any) -> Any:
            if not is_done:
                self._lose(store, copy)
            result = await call(*args, **named)
            if is_done:
                self._lose(store, copy)
            return result

        setattr(self, loses_at, lose)

    def _lose(self, store: MemoryStore, copy: dict[str, Any]) -> None:
        if not self.has_lost:
            self.has_lost = True
            store.restore_copy(copy)


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize(
    "loses_at", ["lead", "positions", "compare_stream", "restore_many", "open", "requeue_pending", "trim", "obsolete"]
)
async def test_a_store_that_goes_back_while_a_relay_compares_it_with_the_bus_is_repaired_all_the_same(
    loses_at: str, is_done: bool
) -> None:
    clock = SystemClock()
    store, bus = MemoryStore(clock), MemoryBus(clock)
    empty = store.copied()
    async with running(store, bus):
        seed, shoot = await store.create(a_seed()), await store.create(a_shoot())
        await announced(bus, seed)
        await announced(bus, shoot)
        await eventually_empty(store)
    assert isinstance(shoot, StoredObject)
    store.restore_copy(store.copied())
    outbox = LosingOutbox(store, empty, loses_at=loses_at, is_done=is_done)
    relay = Relay(outbox, bus, SUBJECTS, clock, RelaySettings(idle_seconds=0.02, lead_ttl_seconds=0.5))
    task = asyncio.create_task(relay.run())

    async def is_repaired() -> None:
        assert outbox.has_lost
        assert store.state.is_open
        found = await store.get(shoot.key)
        assert found is not None
        assert (found.uid, found.version) == (shoot.uid, shoot.version)

    try:
        await eventually(is_repaired, every=0.01)
        await announced(bus, await store.create(a_project()))
        assert await bus.last("OBJECTS", SUBJECTS.changed(shoot.key)) is not None
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_nothing_of_a_store_that_went_back_is_announced_before_it_was_compared_with_the_bus() -> None:
    """It would take the place of what the bus has in higher versions, which is all that is left of them."""
    clock = SystemClock()
    store, bus = MemoryStore(clock), MemoryBus(clock)
    store.open()
    created = await store.create(a_seed())
    assert isinstance(created, StoredObject)
    copy = store.copied()
    async with running(store, bus):
        await announced(bus, created)
        document = created.document()
        document["metadata"]["labels"] = {"tier": "gold"}
        changed = await store.update(created, document)
        assert isinstance(changed, StoredObject)
        await announced(bus, changed)
        await eventually_empty(store)
        store.restore_copy(copy)

        async def is_repaired() -> None:
            assert store.state.is_open
            assert not store.state.outbox

        await eventually(is_repaired, every=0.01)
        found = await store.get(created.key)
        assert found is not None
        assert found.document()["metadata"]["labels"] == {"tier": "gold"}
        await announced(bus, changed)


class UncountedOutbox(MemoryOutbox):
    """The outbox of a store whose shoots an older version has written: so many pages of them."""

    pages = 3

    async def count_older(self) -> bool:
        self.pages -= self.pages > 0
        return self.pages > 0


async def test_shoots_of_an_older_version_are_counted_while_the_relay_announces() -> None:
    clock = SystemClock()
    store, bus = MemoryStore(clock), MemoryBus(clock)
    outbox = UncountedOutbox(store)
    relay = Relay(outbox, bus, SUBJECTS, clock, RelaySettings(idle_seconds=60, lead_ttl_seconds=300))
    task = asyncio.create_task(relay.run())
    try:
        await announced(bus, await store.create(a_seed("meanwhile")))

        async def is_counted() -> None:
            assert outbox.pages == 0

        await eventually(is_counted, every=0.01)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class CountingOutbox(MemoryOutbox):
    """Counts how often everything is announced again."""

    reannounced = 0

    async def reannounce(self, above_version: int) -> None:
        self.reannounced += 1
        await super().reannounce(above_version)


async def test_a_cluster_that_went_back_is_announced_to_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it may be a leader that another one has replaced, nothing is announced, nor queued to be."""
    monkeypatch.setattr(stream_incarnation, "DEPOSED_SECONDS", 0.5)
    clock = SystemClock()
    store, bus = MemoryStore(clock), MemoryBus(clock)
    bus.server.copies = 3
    copy = bus.server.copy_streams()
    seed = await store.create(a_seed())
    async with running(store, bus):
        await bus.publish(Message(SUBJECTS.apply))
        await announced(bus, seed)
        await eventually_empty(store)
    bus.server.restore_streams(copy)
    outbox = CountingOutbox(store)
    relay = Relay(outbox, bus, SUBJECTS, clock, RelaySettings(idle_seconds=0.02, lead_ttl_seconds=HANG_SECONDS))
    task = asyncio.create_task(relay.run())
    try:
        await announced(bus, seed)
        assert outbox.reannounced == 1
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class IncomparableBus(MemoryBus):
    """Reads no pages, as where the identity service is of an older version and does not permit it yet."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.tried = self.recovered = 0

    async def ensure_streams(self) -> None:
        self.recovered += 1
        await super().ensure_streams()

    async def messages_from(
        self, stream: str, subject_filter: str, sequence: int, limit: int
    ) -> Sequence[StreamMessage]:
        self.tried += 1
        raise Unavailable("no response in time")


async def test_announcements_go_on_where_what_was_announced_cannot_be_compared() -> None:
    clock = SystemClock()
    store, bus = MemoryStore(clock), IncomparableBus(clock)
    first = await store.create(a_seed("first"))
    async with running(store, bus):
        await announced(bus, first)
        await eventually_empty(store)
    bus.tried = bus.recovered = 0
    async with running(store, bus, "two"):
        for number in range(3):
            await announced(bus, await store.create(a_seed(f"seed-{number}")))
            await eventually_empty(store)
        assert (bus.tried, bus.recovered) == (1, 1)


class PutOff(MemoryOutbox):
    """Notes how often an announcement is put off; with a scheduler, that binds what it is told of meanwhile."""

    def __init__(self, store: MemoryStore, scheduler: SchedulerUnderTest | None = None) -> None:
        super().__init__(store, leader="one")
        self._scheduler = scheduler
        self.times = 0

    async def wait(self, seconds: float) -> None:
        if seconds > PLACING_SECONDS:
            return await super().wait(seconds)
        self.times += 1
        if self._scheduler is None:
            return await asyncio.sleep(seconds)
        await self._scheduler.informer.refresh()
        await self._scheduler.bind_early("a", "b")
        return None


async def last_change(bus: MemoryBus, name: str) -> tuple[int, str, bool]:
    """Messages about a shoot, the verb of the last one, and whether that has a seed."""
    subject = SUBJECTS.changed(ObjectKey("shoot", "garden-dev", name))

    async def there() -> StreamMessage:
        last = await bus.last("OBJECTS", subject)
        assert last is not None
        return last

    last = await eventually(there, every=0.01)
    position = await bus.position("OBJECTS")
    return position.sequence, last.headers[Header.VERB], b'"seedName"' in last.body


async def test_a_new_shoot_is_announced_once_it_has_its_seed_and_never_queued() -> None:
    store = await stocked(a_cloudprofile(), a_project(), a_seed())
    bus, outbox = MemoryBus(SystemClock()), PutOff(store, SchedulerUnderTest(store))
    async with running(store, bus, outbox=outbox):
        await eventually_empty(store)
        before = (await bus.position("OBJECTS")).sequence
        await store.create(a_shoot("a"))
        assert await last_change(bus, "a") == (before + 1, "added", True)
        await eventually_empty(store)
    assert outbox.times == 1
    assert (await bus.position("QUEUES")).sequence == 0
    assert list(await bus.subjects("BINDINGS", "garden.binding.>")) == ["garden.binding.aws-eu1.garden-dev.a"]


async def test_where_no_shoot_gets_its_seed_the_next_ones_are_announced_at_once() -> None:
    store = await stocked(a_cloudprofile(), a_project(), a_seed())
    bus, outbox = MemoryBus(SystemClock()), PutOff(store)
    async with running(store, bus, outbox=outbox):
        await eventually_empty(store)
        await store.create(a_shoot("a"))
        assert (await last_change(bus, "a"))[1:] == ("added", False)
        await eventually_empty(store)
        times = outbox.times
        assert times > 0
        await store.create(a_shoot("b"))
        assert (await last_change(bus, "b"))[1:] == ("added", False)
        await eventually_empty(store)
        assert outbox.times == times
    assert len(await bus.subjects("QUEUES", "garden.queue.scheduling.>")) == 2


async def test_a_relay_that_holds_no_pages_announces_a_shoot_as_it_was_created() -> None:
    store = await stocked(a_cloudprofile(), a_project(), a_seed())
    bus, outbox = MemoryBus(SystemClock()), PutOff(store, SchedulerUnderTest(store))
    async with running(store, bus, outbox=outbox, holds_pages=False):
        await eventually_empty(store)
        await store.create(a_shoot("a"))
        assert (await last_change(bus, "a"))[1:] == ("added", False)
        await eventually_empty(store)
    assert outbox.times == 0
    assert len(await bus.subjects("QUEUES", "garden.queue.scheduling.>")) == 1


async def test_reads_that_other_writes_used_up_say_nothing_of_schedulers() -> None:
    class Disturbed(PutOff):
        async def wait(self, seconds: float) -> None:
            if seconds <= PLACING_SECONDS:
                self.times += 1
                return
            await super().wait(seconds)

    store = await stocked(a_cloudprofile(), a_project(), a_seed())
    bus, outbox = MemoryBus(SystemClock()), Disturbed(store)
    async with running(store, bus, outbox=outbox):
        await eventually_empty(store)
        for number in (1, 2):
            await store.create(a_shoot(f"s{number}"))
            await eventually_empty(store)
            assert outbox.times == number * READ_AGAIN_MAX, "the next shoot's page is put off as well"


async def test_a_page_of_many_entries_is_not_put_off() -> None:
    store = await stocked(a_cloudprofile(), a_project(), a_seed())
    bus, outbox = MemoryBus(SystemClock()), PutOff(store)
    async with running(store, bus, outbox=outbox):
        await eventually_empty(store)
        await store.create_many([Creation(a_shoot(f"s{number}")) for number in range(FEW_ENTRIES // 2 + 1)])
        await eventually_empty(store)
    assert outbox.times == 0
