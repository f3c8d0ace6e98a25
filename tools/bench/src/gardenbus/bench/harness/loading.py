"""Fills a store: what is there before in bulk, pending shoots as anybody would, many at a time."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import chain, islice
from typing import NamedTuple
from uuid import UUID

from gardenbus.bench.comparison import ReportProgress
from gardenbus.bench.harness.measurement import last_sequence
from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.harness.rig import Rig
from gardenbus.bench.manifests.shoots import Mix, basics, names, placed, seed, seed_name, shoot
from gardenbus.common.adapters.redis.records import PARTS, read_record, restored_fields
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Message
from gardenbus.relay.domain.announcements import announcements
from gardenbus.relay.ports.outbox import ObjectEntry, OutboxEntry, OutboxPage, QueueEntry, Restored

AT_ONCE = 48
BULK = 1000
POLL_SECONDS = 0.02
LOAD_TIMEOUT_SECONDS = 300.0
"""Longest standstill of loading: on a busy machine it is slow, and goes on."""

LEAD_SECONDS = LOAD_TIMEOUT_SECONDS
SCHEDULER = "default-scheduler"
_DAY = "2026-01-02T03:04:05Z"


class BenchLandscape(NamedTuple):
    """Objects that are loaded before anything is measured."""

    seeds: int
    placed: int
    mix: Mix = "uniform"


class StoredShoot(NamedTuple):
    """A stored shoot, as far as later steps need it."""

    key: ObjectKey
    uid: str


async def load(rig: Rig, landscape: BenchLandscape, progress: ReportProgress) -> None:
    """Load seeds and placed shoots, and have all of it announced; a relay must be running."""
    await opened(rig)
    await create(rig, basics(landscape.mix))
    await announced(rig)
    seeds = (seed(number, landscape.mix) for number in range(landscape.seeds))
    shoots = (
        placed(name, number, seed_name(number % landscape.seeds), landscape.mix)
        for number, name in enumerate(names("placed", landscape.placed))
    )
    in_all = landscape.seeds + landscape.placed
    await put_in_bulk(rig, chain(seeds, shoots), lambda done: progress("seeds and placed shoots", done, in_all))


async def create(
    rig: Rig, documents: Sequence[Document], report: Callable[[int], None] = lambda _done: None
) -> list[StoredShoot]:
    """Store documents as they are, `AT_ONCE` at a time, in no order."""
    slots = asyncio.Semaphore(AT_ONCE)
    done = 0

    async def one(document: Document) -> StoredShoot:
        nonlocal done
        async with slots:
            stored = await _created(rig, document)
        done += 1
        if done % BULK == 0:
            report(done)
        return StoredShoot(stored.key, stored.uid)

    stored = await asyncio.gather(*(one(document) for document in documents))
    report(done)
    return list(stored)


async def _created(rig: Rig, document: Document) -> StoredObject:
    """Store one document, as soon as the store takes it: its outbox may be full, as the relay is slow."""
    created: list[StoredObject] = []

    async def attempt() -> None:
        stored = await rig.store.create(document)
        assert isinstance(stored, StoredObject), "nothing else writes here"
        created.append(stored)

    await rig.retries.repeat(attempt, "creations")
    return created[0]


async def create_pending(rig: Rig, prefix: str, count: int, mix: Mix, progress: ReportProgress) -> list[StoredShoot]:
    """Store pending shoots and have them queued and announced."""
    documents = [shoot(name, number, mix) for number, name in enumerate(names(prefix, count))]
    stored = await create(rig, documents, lambda done: progress("pending shoots", done, count))
    await announced(rig)
    return stored


async def opened(rig: Rig) -> None:
    """Wait until the relay, which is ready before, has opened the store for writes."""
    deadline = asyncio.get_running_loop().time() + LOAD_TIMEOUT_SECONDS
    while True:
        try:
            await rig.store.activate("nobody", "nothing", 1)
        except Unavailable as error:
            if asyncio.get_running_loop().time() > deadline:
                raise BenchFailed(error.message) from error
            await asyncio.sleep(POLL_SECONDS)
        else:
            return


async def announced(rig: Rig) -> None:
    """Wait until the outbox is empty. Raises BenchFailed when it stands still."""
    moved_at, announced_up_to = time.monotonic(), b""
    while first := await rig.redis.command("XRANGE", rig.redis.key("outbox"), "-", "+", "COUNT", "1"):
        if first[0][0] != announced_up_to:
            moved_at, announced_up_to = time.monotonic(), first[0][0]
        if time.monotonic() - moved_at > LOAD_TIMEOUT_SECONDS:
            raise BenchFailed("the relay does not empty the outbox")
        await asyncio.sleep(POLL_SECONDS)


async def put_in_bulk(rig: Rig, documents: Iterable[Document], report: Callable[[int], None]) -> None:
    """Store seeds and shoots as a repair of the store would, and announce (and queue) them in the relay's place.

    What stands in Redis and on the bus afterwards is what the usual way leaves there; it only takes less time.
    """
    await rig.stop("relay")
    outbox = rig.outbox()
    while not (await outbox.lead(LEAD_SECONDS)).leading:  # noqa: ASYNC110 - the relay's lead ends by itself
        await asyncio.sleep(POLL_SECONDS)
    version = int(await rig.redis.command("GET", rig.redis.key("version")) or 0)
    numbered = _restored(documents, version + 1)
    done = 0
    async with _unsynced(rig):
        announcer = await _Announcer.of(rig)
        before: asyncio.Task[None] | None = None
        while batch := list(islice(numbered, BULK)):
            if not all(await outbox.restore_many(batch)):
                raise BenchFailed("what is to be loaded is in the store already")
            if before is not None:
                await before
            before = asyncio.create_task(announcer.announce(batch))  # while the next ones are stored
            done += len(batch)
            report(done)
            await outbox.lead(LEAD_SECONDS)
        if before is not None:
            await before
    await rig.redis.command("SET", rig.redis.key("version"), version + done + 1)
    await outbox.resign()
    await rig.start("relay")


@asynccontextmanager
async def _unsynced(rig: Rig) -> AsyncGenerator[None]:
    """Let Redis write to its disk once a second for a while."""
    usual = (await rig.redis.command("CONFIG", "GET", "appendfsync"))[1]
    await rig.redis.command("CONFIG", "SET", "appendfsync", "everysec")
    try:
        yield
    finally:
        await rig.redis.command("CONFIG", "SET", "appendfsync", usual)


class _Announcer:
    """Publishes what the relay would, batch after batch."""

    def __init__(self, rig: Rig, last: dict[str, int]) -> None:
        self._rig = rig
        self._last = last

    @classmethod
    async def of(cls, rig: Rig) -> "_Announcer":
        """One that goes on where the streams stand."""
        return cls(rig, {name: await last_sequence(rig, name) for name in ("OBJECTS", "BINDINGS")})

    async def announce(self, batch: Sequence[Restored]) -> None:
        """Announce a batch of objects that have been stored."""
        messages = announcements(_page(batch), self._rig.subjects, announced_unblock_index=0)
        await asyncio.gather(
            self._publish("OBJECTS", messages.changed),
            self._publish("BINDINGS", messages.bindings),
            self._rig.retries.repeat(lambda: self._rig.bus.publish_many(messages.loose), "Events and work"),
        )

    async def _publish(self, stream: str, messages: Sequence[Message]) -> None:
        self._last[stream] = await self._rig.retries.publish_in_order(
            self._rig.bus, self._rig.subjects.stream(stream), messages, after=self._last[stream]
        )


def _restored(documents: Iterable[Document], version: int) -> Iterator[Restored]:
    for number, document in enumerate(documents, version):
        uid = str(UUID(int=number))
        metadata = document["metadata"]
        metadata |= {"uid": uid, "generation": 1, "creationTimestamp": _DAY}
        key = ObjectKey(document["kind"].lower(), metadata.get("namespace", ""), metadata["name"])
        yield Restored(key=key, uid=uid, version=number, document=document)


def _page(batch: Sequence[Restored]) -> OutboxPage:
    """A page of the outbox as it would have been, had each shoot been created just now."""
    entries: list[OutboxEntry] = []
    objects: dict[ObjectKey, StoredObject | None] = {}
    for each in batch:
        assert each.document is not None, "nothing is removed here"
        fields = restored_fields(each.document, each.version) | {"ver": str(each.version)}
        stored = read_record(each.key, [fields.get(name, "").encode() for name in PARTS])
        objects[each.key] = stored
        entries.append(ObjectEntry("", each.key, each.version, each.uid, "added", True, (), 0))
        if stored is not None and each.key.kind == "shoot" and not stored.parts.seed_name:
            entries.append(QueueEntry("", f"scheduling.{SCHEDULER}.{each.key.namespace}.{each.key.name}"))
    return OutboxPage(entries, objects)
