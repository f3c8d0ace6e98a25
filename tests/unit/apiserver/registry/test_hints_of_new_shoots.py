"""Hints that an apiserver sends of the shoots that it created."""

import asyncio

from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import Subjects
from gardenbus.common.api.scheduling_hints import SHOOTS_MAX, decode_hint
from gardenbus.common.controller.scheduling_hints import HintSender
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus
from tests.support.scheduling import stocked

SUBJECTS = Subjects()


class Hints:
    """An apiserver's writer, and what its schedulers receive."""

    async def start(self, *documents: Document) -> "Hints":
        self.store, self.bus = await stocked(*documents), MemoryBus(FakeClock())
        self.writer = Writer(self.store, FakeClock())
        self.writer.on_created = HintSender(self.bus, SUBJECTS).created
        self.received: list[tuple[str, list[str]]] = []
        for name in ("default-scheduler", "mine"):
            await self.bus.subscribe(
                SUBJECTS.scheduling_hint(name), name, lambda body, name=name: self.receive(name, body)
            )
        return self

    def receive(self, scheduler_name: str, body: bytes) -> None:
        self.received.append((scheduler_name, [f"{shoot.namespace}/{shoot.name}" for shoot in decode_hint(body)]))

    async def apply(self, *documents: Document) -> None:
        for document in documents:
            await self.writer.apply(document, ReadCache(self.store, ManifestCache(self.store)), user="ann")
        await asyncio.sleep(0)


BASE = (a_cloudprofile(), a_project(), a_seed())


async def test_new_shoots_of_one_moment_are_named_to_their_schedulers_in_one_message_each() -> None:
    hints = await Hints().start(*BASE)
    await hints.apply(a_shoot("a"), a_shoot("b", spec={"schedulerName": "mine"}), a_shoot("c"))
    assert sorted(hints.received) == [
        ("default-scheduler", ["garden-dev/a", "garden-dev/c"]),
        ("mine", ["garden-dev/b"]),
    ]
    await hints.apply(a_shoot("d"))
    assert hints.received[2:] == [("default-scheduler", ["garden-dev/d"])]


async def test_nothing_is_said_of_other_objects_and_other_changes() -> None:
    hints = await Hints().start(*BASE, a_shoot("old"))
    await hints.apply(
        merged(a_shoot("old"), {"metadata": {"labels": {"a": "b"}}}),
        a_seed("s2"),
        a_shoot("placed", spec={"seedName": "aws-eu1"}),
    )
    assert hints.received == []


async def test_one_message_names_no_more_than_one_call_binds() -> None:
    hints = await Hints().start(*BASE)
    await hints.apply(*(a_shoot(f"s{number}") for number in range(SHOOTS_MAX + 20)))
    ((_, named),) = hints.received
    assert len(named) == SHOOTS_MAX
