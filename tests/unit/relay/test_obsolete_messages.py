"""Comparison of what is announced with the store, page by page, on memory adapters."""

from unittest.mock import AsyncMock

import pytest

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.errors import NotFound, Unavailable
from gardenbus.common.ports.bus import Message, StreamPosition
from gardenbus.relay.obsolete_messages import COMPARED_TOGETHER, ObsoleteMessages, shown_on
from gardenbus.relay.ports.outbox import Shown
from tests.support.builders import a_project, a_seed
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus
from tests.support.memory.outbox import MemoryOutbox
from tests.support.memory.store import MemoryStore

SUBJECTS = Subjects()
GONE = SUBJECTS.binding("s1", "garden-dev", "gone")


class Comparison:
    """Obsolete messages of a store and a bus in memory."""

    def __init__(self) -> None:
        clock = FakeClock()
        self.store, self.bus = MemoryStore(clock), MemoryBus(clock)
        self.messages = ObsoleteMessages(MemoryOutbox(self.store), self.bus, SUBJECTS)

    async def publish(self, subject: str, verb: str = "modified") -> int:
        return await self.bus.publish(Message(subject, b"{}", {Header.VERB: verb}))

    async def positions(self) -> dict[str, StreamPosition]:
        return {name: await self.bus.position(name) for name in ("OBJECTS", "BINDINGS")}

    async def run(self) -> int:
        """All steps; returns their number."""
        steps = 0
        while self.messages.is_pending:
            await self.messages.step()
            steps += 1
        return steps


async def test_only_what_was_announced_before_and_is_no_tombstone_is_removed() -> None:
    each = Comparison()
    seed = await each.store.create(a_seed("s1"))
    assert isinstance(seed, StoredObject)
    await each.publish(SUBJECTS.changed(seed.key))
    await each.publish(SUBJECTS.changed(ObjectKey("seed", "", "gone")))
    await each.publish(GONE)
    tombstone = SUBJECTS.binding("s1", "garden-dev", "waiting-to-be-obeyed")
    await each.publish(tombstone, "deleted")
    unreadable = "garden.view.s1.of-a-later-version._.x"
    await each.publish(unreadable)
    each.messages.begin(await each.positions())
    later = SUBJECTS.binding("s1", "garden-dev", "announced-since")
    await each.publish(later)
    await each.run()
    assert set(await each.bus.subjects("OBJECTS", ">")) == {SUBJECTS.changed(seed.key)}
    assert set(await each.bus.subjects("BINDINGS", ">")) == {tombstone, unreadable, later}


async def test_it_is_compared_once_after_each_connection() -> None:
    each = Comparison()
    each.messages.begin({})
    assert not each.messages.is_pending, "nothing was ever announced"
    each.messages.begin(await each.positions())
    assert await each.run() == 2
    each.messages.begin(await each.positions())
    assert not each.messages.is_pending
    each.messages.require()
    await each.publish(GONE)
    each.messages.begin(await each.positions())
    await each.run()
    assert await each.bus.last("BINDINGS", GONE) is None


async def test_a_comparison_that_was_interrupted_goes_on_where_it_was() -> None:
    each = Comparison()
    await each.publish(GONE)
    each.messages.begin(await each.positions())
    await each.messages.step()
    each.bus.cut()
    with pytest.raises(Unavailable):
        await each.messages.step()
    await each.bus.mend()
    assert await each.run() == 1
    assert await each.bus.last("BINDINGS", GONE) is None


async def test_a_stream_that_is_gone_is_compared_anew_when_it_is_there_again(monkeypatch: pytest.MonkeyPatch) -> None:
    each = Comparison()
    each.messages.begin(await each.positions())
    await each.messages.step()
    monkeypatch.setattr(each.bus, "messages_from", AsyncMock(side_effect=NotFound("stream not found")))
    with pytest.raises(NotFound):
        await each.messages.step()
    monkeypatch.undo()
    await each.publish(GONE)
    each.messages.begin(await each.positions())
    assert await each.run() == 2
    assert await each.bus.last("BINDINGS", GONE) is None


async def test_many_are_compared_page_by_page() -> None:
    each = Comparison()
    for number in range(COMPARED_TOGETHER + 1):
        project = await each.store.create(a_project(f"p{number}"))
        assert isinstance(project, StoredObject)
        await each.publish(SUBJECTS.changed(project.key))
    each.messages.begin(await each.positions())
    assert await each.run() == 3
    assert len(await each.bus.subjects("OBJECTS", ">")) == COMPARED_TOGETHER + 1


async def test_a_stream_that_is_another_one_by_now_is_left_alone() -> None:
    each = Comparison()
    each.messages.begin(await each.positions())
    each.bus.server.recreate("BINDINGS")
    await each.publish(GONE)
    await each.run()
    assert await each.bus.last("BINDINGS", GONE) is not None


@pytest.mark.parametrize(
    ("subject", "shown"),
    [
        ("garden.changed.shoot.garden-dev.a", Shown(ObjectKey("shoot", "garden-dev", "a"))),
        ("garden.changed.seed._.s1", Shown(ObjectKey("seed", "", "s1"))),
        ("garden.binding.s1.garden-dev.a", Shown(ObjectKey("shoot", "garden-dev", "a"), "s1")),
        ("garden.view.s1.seed._.s1", Shown(ObjectKey("seed", "", "s1"), "s1")),
        ("garden.view.s1.shootstate.garden-dev.a", Shown(ObjectKey("shootstate", "garden-dev", "a"), "s1")),
        ("garden.view.s1.secret.garden-dev.a", None),
        ("garden.view.s1.seed", None),
        ("garden.binding.s1", None),
        ("garden.changed", None),
    ],
)
def test_a_subject_names_its_object_and_its_seed(subject: str, shown: Shown | None) -> None:
    assert shown_on(subject, SUBJECTS) == shown
