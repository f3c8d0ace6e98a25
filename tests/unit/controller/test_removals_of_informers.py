"""What an informer remembers of removed objects: enough that none comes back, and no more than that."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from gardenbus.common.api.document import encode
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.controller import informer as informer_module
from gardenbus.common.controller.informer import Informer
from gardenbus.common.ports.bus import TOMBSTONE_TTL, Message
from tests.support.builders import a_seed, merged
from tests.support.manual_clock import ManualClock
from tests.support.memory.bus import MemoryBus
from tests.support.memory.store import MemoryStore

SUBJECTS = Subjects()


@dataclass
class Announced:
    """An informer, and changes that are announced to it as a test says."""

    clock: ManualClock
    bus: MemoryBus
    informer: Informer

    async def change(self, name: str, version: int) -> None:
        created = {"metadata": {"creationTimestamp": "2026-01-02T03:04:05Z", "generation": 1}}
        await self._announce(name, version, encode(merged(a_seed(name), created)), "modified")

    async def removal(self, name: str, version: int) -> None:
        await self._announce(name, version, b"", "deleted")

    async def _announce(self, name: str, version: int, body: bytes, verb: str) -> None:
        headers = {
            Header.VERSION: str(version),
            Header.VERB: verb,
            Header.UID: name,
            Header.UNBLOCK_INDEX: str(version),
        }
        await self.bus.publish(Message(SUBJECTS.changed(ObjectKey("seed", "", name)), body, headers))

    async def names(self, *, seen: int) -> set[str]:
        """The objects that it has once it has handled the announcement of a version."""
        assert await self.informer.wait_for_unblock_index(seen, 5)
        return {key.name for key in self.informer.objects("seed")}

    @property
    def remembered(self) -> int:
        return len(self.informer._removed)  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
async def announced() -> AsyncIterator[Announced]:
    async with an_informer() as of_test:
        yield of_test


@asynccontextmanager
async def an_informer() -> AsyncGenerator[Announced]:
    clock = ManualClock()
    bus = MemoryBus(clock)
    informer = Informer(MemoryStore(clock), bus, SUBJECTS, ["seed"])
    await informer.start()
    try:
        yield Announced(clock, bus, informer)
    finally:
        await informer.stop()


async def test_an_older_version_that_comes_late_brings_no_object_back(announced: Announced) -> None:
    await announced.change("aws", 1)
    await announced.removal("aws", 5)
    announced.clock.advance(TOMBSTONE_TTL.total_seconds() - 1)
    await announced.removal("other", 6)
    await announced.change("aws", 4)
    await announced.change("last", 7)

    assert await announced.names(seen=7) == {"last"}


async def test_an_object_that_is_there_again_is_no_longer_removed(announced: Announced) -> None:
    await announced.removal("aws", 5)
    await announced.change("aws", 6)
    await announced.change("aws", 4)
    await announced.change("last", 7)

    assert await announced.names(seen=7) == {"aws", "last"}
    assert announced.informer.objects("seed")[ObjectKey("seed", "", "aws")].version == 6
    assert announced.remembered == 0


async def test_removals_are_forgotten_with_their_tombstones(announced: Announced) -> None:
    for hour in range(1, 4):
        for number in range(100):
            version = hour * 1000 + number * 2
            await announced.change(f"short-lived-{version}", version)
            await announced.removal(f"short-lived-{version}", version + 1)
        assert await announced.names(seen=hour * 1000 + 199) == set()
        assert announced.remembered == 100
        announced.clock.advance(TOMBSTONE_TTL.total_seconds() + 1)

    await announced.change("last", 9000)
    assert await announced.names(seen=9000) == {"last"}
    assert announced.remembered == 0


async def test_many_removals_are_not_all_remembered(announced: Announced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer_module, "MOST_REMOVALS", 10)
    for version in range(1, 51):
        await announced.removal(f"short-lived-{version}", version)
    await announced.change("last", 51)

    assert await announced.names(seen=51) == {"last"}
    assert announced.remembered == 10
    await announced.change("short-lived-50", 49)
    await announced.change("last", 52)
    assert await announced.names(seen=52) == {"last"}
