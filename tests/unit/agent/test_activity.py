"""Work runs between the beginning and the end of each activity."""

import asyncio

import pytest

from gardenbus.agent.activity import Activity
from tests.support.eventually import eventually


async def test_work_runs_while_active_and_anew_each_time() -> None:
    activity, runs, ends = Activity(), [0], [0]

    async def work() -> None:
        runs[0] += 1
        try:
            await asyncio.Event().wait()
        finally:
            ends[0] += 1

    async def counted(expected: tuple[int, int]) -> None:
        assert (runs[0], ends[0]) == expected

    task = asyncio.create_task(activity.run_while(work))
    for number in (1, 2):
        activity.begin()
        assert activity.is_on
        await eventually(lambda number=number: counted((number, number - 1)))
        activity.end()
        await eventually(lambda number=number: counted((number, number)))
    activity.begin()
    await eventually(lambda: counted((3, 2)))
    activity.end()
    activity.begin()  # taken back at once: what ran before has ended all the same
    await eventually(lambda: counted((4, 3)))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_error_of_the_work_is_not_hidden() -> None:
    activity = Activity()

    async def fail() -> None:
        raise ValueError("no")

    activity.begin()
    with pytest.raises(ValueError, match="no"):
        await activity.run_while(fail)
