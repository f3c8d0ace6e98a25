"""An informer whose store comes back on an older copy."""

import asyncio

import pytest

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import Subjects
from gardenbus.common.controller import informer as informer_module
from gardenbus.common.controller.informer import Informer
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.relay.relay import Relay, RelaySettings
from tests.support.builders import a_seed, merged
from tests.support.cancelling import assert_cancellable
from tests.support.eventually import eventually
from tests.support.memory.bus import MemoryBus
from tests.support.memory.outbox import MemoryOutbox
from tests.support.memory.store import MemoryStore


@pytest.mark.parametrize("is_changed_since", [True, False])
async def test_it_forgets_what_was_lost_with_the_store_before_it_was_announced(
    monkeypatch: pytest.MonkeyPatch, is_changed_since: bool
) -> None:
    monkeypatch.setattr(informer_module, "REOPENED_SECONDS", 30.0 if is_changed_since else 0.02)
    clock = SystemClock()
    store, bus = MemoryStore(clock), MemoryBus(clock)
    kept = await store.create(a_seed("kept"))
    assert isinstance(kept, StoredObject)
    copy = store.copied()
    await store.create(a_seed("lost"))
    await store.update(kept, merged(kept.document(), {"metadata": {"labels": {"is": "lost"}}}))
    informer = Informer(store, bus, Subjects(), ["seed"])
    await informer.start()
    store.restore_copy(copy)
    relay = Relay(MemoryOutbox(store), bus, Subjects(), clock, RelaySettings(idle_seconds=0.02))
    running = asyncio.create_task(relay.run())

    async def is_open() -> None:
        assert store.state.is_open

    await eventually(is_open)
    if is_changed_since:
        await store.create(a_seed("new"))

    async def agrees() -> None:
        cached = {key.name: each.version for key, each in informer.objects("seed").items()}
        assert cached == {key.name: row.stored.version for key, row in store.state.rows.items()}

    await eventually(agrees)
    await informer.stop()
    running.cancel()
    await asyncio.wait({running})


async def test_an_informer_that_is_cancelled_while_it_starts_or_stops_leaves_no_task() -> None:
    clock = SystemClock()
    store, bus = MemoryStore(clock), MemoryBus(clock)
    await store.create(a_seed("kept"))

    async def life() -> None:
        informer = Informer(store, bus, Subjects(), ["seed"])
        try:
            await informer.start()
        finally:
            await informer.stop()

    assert await assert_cancellable(life) > 2
