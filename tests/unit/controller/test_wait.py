"""Periodic work."""

import asyncio

import pytest
from structlog.contextvars import get_contextvars

from gardenbus.common.controller.wait import InterruptibleSleep, forever
from gardenbus.common.errors import Transient, Unavailable
from gardenbus.common.runtime.clock import SystemClock
from tests.support.eventually import HANG_SECONDS


class Work:
    """Records calls and sleeps; each call raises the next of its errors, and the sleep after the last one ends it."""

    def __init__(self, *errors: Exception | None) -> None:
        self.errors = list(errors)
        self.did: list[str | float] = []
        self.reconcile_ids: list[str] = []
        self.reasons: list[str] = []

    async def __call__(self) -> None:
        self.did.append("work")
        self.reconcile_ids.append(get_contextvars()["reconcile_id"])
        if error := self.errors.pop(0):
            raise error

    async def sleep(self, seconds: float) -> None:
        self.did.append(seconds)
        if not self.errors:
            raise asyncio.CancelledError

    def interrupted(self, error: Transient) -> None:
        self.reasons.append(error.message)


async def test_it_works_then_sleeps_and_each_round_has_an_id_of_its_own() -> None:
    work = Work(None, None)
    with pytest.raises(asyncio.CancelledError):
        await forever(work, period_seconds=5, sleep=work.sleep)
    assert work.did == ["work", 5, "work", 5]
    assert len(set(work.reconcile_ids)) == 2
    assert "reconcile_id" not in get_contextvars()


async def test_it_sleeps_first_if_it_is_not_immediate() -> None:
    work = Work(None)
    with pytest.raises(asyncio.CancelledError):
        await forever(work, period_seconds=5, sleep=work.sleep, is_immediate=False)
    assert work.did == [5, "work", 5]


async def test_an_outage_is_logged_and_survived_and_nothing_else_is() -> None:
    work = Work(Unavailable("away"), KeyError("bug"))
    with pytest.raises(KeyError):
        await forever(work, period_seconds=5, sleep=work.sleep, interrupted=work.interrupted)
    assert work.did == ["work", 5, "work"]
    assert work.reasons == ["away"]


async def test_an_outage_that_nobody_logs_ends_it() -> None:
    work = Work(Unavailable("away"))
    with pytest.raises(Unavailable):
        await forever(work, period_seconds=5, sleep=work.sleep)


async def test_work_may_be_a_plain_function() -> None:
    work, calls = Work(None), list[str]()

    def tick() -> None:
        calls.append("tick")
        work.errors.clear()

    with pytest.raises(asyncio.CancelledError):
        await forever(tick, period_seconds=5, sleep=work.sleep)
    assert calls == ["tick"]


async def test_a_sleep_ends_when_it_is_interrupted_and_the_next_one_if_nobody_slept() -> None:
    sleep = InterruptibleSleep(SystemClock())
    sleep.interrupt()
    async with asyncio.timeout(HANG_SECONDS):
        await sleep.pause(3600)
        sleeping = asyncio.create_task(sleep.pause(3600))
        await asyncio.sleep(0.01)
        assert not sleeping.done()
        sleep.interrupt()
        await sleeping
        await sleep.pause(0.01)
