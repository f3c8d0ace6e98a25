"""Fills a store: seeds and basics as anybody would, placed shoots in bulk, pending ones many at a time."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from gardenbus.cli.bench.manifests import Mix, basics, names, placed, seed, shoot
from gardenbus.cli.bench.rig import BenchFailed, Rig
from gardenbus.common.ports.outbox import Restored
from gardenbus.common.resources.document import Document, StoredObject
from gardenbus.common.resources.keys import ObjectKey

AT_ONCE = 64
BULK = 500
POLL_SECONDS = 0.02
PATIENCE_SECONDS = 300.0
_DAY = "2026-01-02T03:04:05Z"

Progress = Callable[[str, int, int], None]
"""Told of what is done: its name, how much, of how much."""


class Landscape(NamedTuple):
    """What is loaded before anything is measured."""

    seeds: int
    placed: int
    mix: Mix = "uniform"
    capacity: int | None = None


async def load(rig: Rig, landscape: Landscape, progress: Progress) -> None:
    """Load seeds and placed shoots, and have all of it announced; a relay must be running."""
    documents = [*basics(landscape.mix)]
    documents += [seed(number, landscape.mix, capacity=landscape.capacity) for number in range(landscape.seeds)]
    await create(rig, documents, lambda done: progress("seeds", done, landscape.seeds))
    if landscape.placed:
        await _load_placed(rig, landscape, progress)
    await announced(rig)


async def create(
    rig: Rig, documents: Sequence[Document], told: Callable[[int], None] = lambda _done: None
) -> list[StoredObject]:
    """Store documents, `AT_ONCE` at a time, in no order."""
    slots = asyncio.Semaphore(AT_ONCE)
    done = 0

    async def one(document: Document) -> StoredObject:
        nonlocal done
        async with slots:
            stored = await rig.store.create(document)
        done += 1
        if done % BULK == 0:
            told(done)
        assert isinstance(stored, StoredObject), "nothing else writes here"
        return stored

    stored = await asyncio.gather(*(one(document) for document in documents))
    told(done)
    return list(stored)


async def create_pending(
    rig: Rig, prefix: str, count: int, mix: Mix, progress: Progress, *, impossible: bool = False
) -> list[StoredObject]:
    """Store pending shoots and have them queued and announced."""
    documents = [shoot(name, number, mix, impossible=impossible) for number, name in enumerate(names(prefix, count))]
    stored = await create(rig, documents, lambda done: progress("pending shoots", done, count))
    await announced(rig)
    return stored


async def announced(rig: Rig) -> None:
    """Wait until the outbox is empty."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while int(await rig.redis.command("XLEN", rig.redis.key("outbox"))):
        if asyncio.get_running_loop().time() > deadline:
            raise BenchFailed("the relay does not empty the outbox")
        await asyncio.sleep(POLL_SECONDS)


async def _load_placed(rig: Rig, landscape: Landscape, progress: Progress) -> None:
    """Put placed shoots back as a repair would, without news (the relay steps aside meanwhile), then announce them."""
    await rig.stop("relay")
    outbox = rig.outbox()
    while not (await outbox.lead(PATIENCE_SECONDS)).leading:  # noqa: ASYNC110 - the relay's lead ends by itself
        await asyncio.sleep(POLL_SECONDS)
    version = int(await rig.redis.command("GET", rig.redis.key("version")) or 0)
    wanted = _placed_shoots(landscape, version + 1)
    done = 0
    while batch := list(islice(wanted, BULK)):
        await asyncio.gather(*(outbox.restore(each) for each in batch))
        done += len(batch)
        progress("placed shoots", done, landscape.placed)
    await outbox.open(version + landscape.placed, 0)
    await rig.redis.command("SET", rig.redis.key("version"), version + landscape.placed + 1)
    await outbox.reannounce(version)
    await outbox.resign()
    await rig.start("relay")


def _placed_shoots(landscape: Landscape, version: int) -> Iterable[Restored]:
    for number, name in enumerate(names("placed", landscape.placed)):
        document = placed(name, number, f"seed-{number % landscape.seeds:05}", landscape.mix)
        uid = str(UUID(int=number + 1))
        document["metadata"] |= {
            "uid": uid,
            "generation": 1,
            "creationTimestamp": _DAY,
            "resourceVersion": str(version + number),
        }
        key = ObjectKey("shoot", document["metadata"]["namespace"], name)
        yield Restored(key=key, uid=uid, version=version + number, document=document)
