"""What the store in memory offers to tests besides being a store."""

import math

import pytest

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Conflict
from gardenbus.common.ports.store import EventRecord
from tests.support.builders import a_project, merged
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore
from tests.support.stores import in_memory, stored


async def test_it_refuses_as_many_updates_as_it_was_told_to() -> None:
    store = MemoryStore(FakeClock(), conflicts=2)
    project = stored(await store.create(a_project()))
    changed = merged(project.document(), {"spec": {"x": 1}})
    for _ in range(2):
        with pytest.raises(Conflict):
            await store.update(project, changed)
    assert await store.get(project.key) == project
    assert stored(await store.update(project, changed)).generation == 2
    store.redis.conflicts = math.inf
    for _ in range(10):
        with pytest.raises(Conflict):
            await store.update(stored(await store.get(project.key)), project.document())


async def test_an_update_of_nothing_is_no_conflict() -> None:
    store = MemoryStore(FakeClock(), conflicts=math.inf)
    project = stored(await store.create(a_project()))
    assert await store.update(project, project.document()) == project


async def test_an_event_is_new_again_ten_minutes_after_the_last() -> None:
    kit = in_memory()
    await kit.open()
    event = EventRecord(ObjectKey("project", "", "dev"), "uid", "Normal", "Tested", "hello", "tester")
    for seconds in (0, 599, 600):
        kit.clock.advance(seconds)
        await kit.store.record_event(event)
    assert [entry.count for entry in await kit.events()] == [1, 2, 1]
