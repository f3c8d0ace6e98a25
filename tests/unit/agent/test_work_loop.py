"""The agents' loop: a round after the other, each with an id of its own in the log."""

import asyncio

from structlog.contextvars import get_contextvars

from gardenbus.agent.work_loop import WorkLoop
from gardenbus.common.errors import Unavailable
from tests.support.eventually import eventually


async def test_each_round_has_a_reconcile_id_of_its_own_whether_or_not_it_fails() -> None:
    ids: list[str] = []

    async def work() -> None:
        ids.append(get_contextvars()["reconcile_id"])
        if len(ids) == 1:
            raise Unavailable("away")

    loop = WorkLoop("rounds", work, lambda: None)
    running = asyncio.create_task(loop.run())

    async def rounds(count: int) -> None:
        assert len(ids) == count

    await eventually(lambda: rounds(1))
    loop.trigger()
    await eventually(lambda: rounds(2))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert len(set(ids)) == 2
    assert "reconcile_id" not in get_contextvars()
