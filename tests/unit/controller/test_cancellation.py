"""Loops end although a library swallows their cancellation."""

import asyncio
import contextlib

from gardenbus.common.controller.cancellation import is_cancelled
from gardenbus.common.errors import Unavailable


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
    await asyncio.wait_for(task, 1)
    assert rounds == 1
