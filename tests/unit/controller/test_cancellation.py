"""Loops end although a library swallows their cancellation."""

import asyncio
import contextlib

from gardenbus.common.controller.cancellation import is_cancelled, unless_set
from gardenbus.common.errors import Unavailable
from tests.support.cancelling import assert_cancellable
from tests.support.eventually import HANG_SECONDS


async def swallowing() -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(60)
    raise Unavailable("cut off")


async def test_a_loop_that_asks_ends_after_an_error_that_took_its_cancellation() -> None:
    rounds = 0

    async def loop() -> None:
        nonlocal rounds
        while not is_cancelled():
            rounds += 1
            with contextlib.suppress(Unavailable):
                await swallowing()

    task = asyncio.create_task(loop())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait_for(task, HANG_SECONDS)
    assert rounds == 1


async def slow_to_end() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.01)


async def test_who_waits_for_the_end_of_what_an_event_ended_is_cancelled() -> None:
    async def waiting() -> None:
        event = asyncio.Event()
        asyncio.get_running_loop().call_soon(event.set)
        await unless_set(event, slow_to_end())

    assert await assert_cancellable(waiting) > 2


async def test_what_came_in_the_last_moment_counts() -> None:
    event = asyncio.Event()
    event.set()

    async def swallowed() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return "came"

    assert await unless_set(event, swallowed()) == "came"
    assert await unless_set(event, asyncio.sleep(60)) is None
