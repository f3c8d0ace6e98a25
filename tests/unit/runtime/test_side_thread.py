"""Work on large documents is done beside the event loop, in the context of its caller, and raises what it raises."""

import asyncio
from contextvars import ContextVar
from threading import get_ident

import pytest

from gardenbus.common.errors import BadRequest
from gardenbus.common.side_thread import LARGE_BYTES, beside_loop, computing_seconds

CALLER: ContextVar[str] = ContextVar("CALLER", default="")


async def test_a_small_document_is_worked_on_at_once_and_a_large_one_in_one_thread() -> None:
    assert await beside_loop(LARGE_BYTES - 1, get_ident) == get_ident()
    threads = {await beside_loop(LARGE_BYTES, get_ident) for _ in range(3)}
    assert len(threads) == 1
    assert threads != {get_ident()}


async def test_others_go_on_while_a_large_document_is_worked_on() -> None:
    turns, is_over = 0, False

    def work() -> int:
        began = turns
        while turns < began + 10:
            pass
        return turns - began

    async def others() -> None:
        nonlocal turns
        while not is_over:
            turns += 1
            await asyncio.sleep(0)

    going_on = asyncio.create_task(others())
    assert await beside_loop(LARGE_BYTES, work) >= 10
    is_over = True
    await going_on


async def test_work_sees_the_context_of_its_caller_and_its_processor_time_is_counted_while_it_runs() -> None:
    CALLER.set("ann")

    def work() -> tuple[str, float]:
        while computing_seconds() <= 0:
            pass
        return CALLER.get(), computing_seconds()

    caller, seconds = await beside_loop(LARGE_BYTES, work)
    assert caller == "ann"
    assert seconds > 0
    assert computing_seconds() == 0


async def test_what_work_raises_is_raised() -> None:
    def work() -> None:
        raise BadRequest("spec: must be an object")

    with pytest.raises(BadRequest, match="spec: must be an object"):
        await beside_loop(LARGE_BYTES, work)
    assert computing_seconds() == 0
