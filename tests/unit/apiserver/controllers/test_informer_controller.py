"""Controllers that an informer feeds: order and retries."""

import asyncio

import pytest

from gardenbus.apiserver.controllers.informer_controller import (
    REJECTED_RETRY_SECONDS,
    InformerController,
)
from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.wait import RETRY_SECONDS
from gardenbus.common.errors import Conflict, Unavailable
from tests.support.clocks import FakeClock
from tests.support.eventually import HANG_SECONDS


class Recording(InformerController):
    """Records what it reconciles; each call returns (or raises) the next of its results, in the end False."""

    KINDS = ("shoot",)

    def __init__(self, clock: FakeClock, *results: bool | Exception) -> None:
        super().__init__(clock)
        self.results = list(results)
        self.names: list[str] = []

    def on_change(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None, /) -> None:
        del old, new
        self.enqueue(key)

    async def reconcile(self, key: ObjectKey) -> bool:
        self.names.append(key.name)
        result = self.results.pop(0) if self.results else False
        if isinstance(result, Exception):
            raise result
        return result


def keys(*names: str) -> list[ObjectKey]:
    return [ObjectKey("shoot", "garden", name) for name in names]


async def test_it_reconciles_each_once_in_the_order_of_the_keys() -> None:
    controller = Recording(FakeClock())
    for key in keys("c", "a", "b", "a"):
        controller.on_change(key, None, None)
    assert await controller.reconcile_due()
    assert controller.names == ["a", "b", "c"]


async def test_after_a_conflict_it_looks_again_at_once() -> None:
    controller = Recording(FakeClock(), Conflict("another was faster"))
    controller.enqueue(*keys("a", "b"))
    assert not await controller.reconcile_due()
    assert await controller.reconcile_due()
    assert controller.names == ["a", "b", "a"]


async def test_while_a_server_is_away_it_tries_nothing_and_forgets_nothing() -> None:
    clock = FakeClock()
    controller = Recording(clock, Unavailable("away"))
    controller.enqueue(*keys("a", "b"))
    assert not await controller.reconcile_due()
    assert controller.names == ["a"]
    clock.advance(RETRY_SECONDS)
    assert await controller.reconcile_due()
    assert controller.names == ["a", "a", "b"]


@pytest.mark.parametrize("is_changed", [False, True])
async def test_what_was_rejected_is_tried_again_after_a_while_unless_it_changes_first(*, is_changed: bool) -> None:
    clock = FakeClock()
    controller = Recording(clock, True)
    controller.enqueue(*keys("a"))
    assert await controller.reconcile_due()
    clock.advance(REJECTED_RETRY_SECONDS / 2)
    if is_changed:
        controller.enqueue(*keys("a"))
    assert await controller.reconcile_due()
    assert controller.names == ["a", "a"][: 1 + is_changed]
    clock.advance(REJECTED_RETRY_SECONDS / 2)
    assert await controller.reconcile_due()
    assert controller.names == ["a", "a"]


async def test_it_begins_once_the_informer_has_started() -> None:
    controller = Recording(FakeClock())
    is_started = asyncio.Event()

    async def start() -> None:
        await is_started.wait()

    controller.enqueue(*keys("a"))
    working = asyncio.create_task(controller.run(start))
    await asyncio.sleep(0)
    assert not controller.names
    is_started.set()
    async with asyncio.timeout(HANG_SECONDS):
        while not controller.names:
            await asyncio.sleep(0)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
