"""The agents' loop: a round after the other, each with an id of its own in the log."""

import asyncio

from structlog.contextvars import get_contextvars
from structlog.testing import capture_logs

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


async def test_a_reason_that_interrupts_every_round_is_logged_once_and_another_one_by_itself() -> None:
    rounds = 0

    async def work() -> None:
        nonlocal rounds
        rounds += 1
        raise Unavailable("the certificate expired" if rounds <= 10 else "the store is closed")

    loop = WorkLoop("heartbeat", work, lambda: 0.0 if rounds < 20 else None, seed="aws-cork")
    with capture_logs() as logs:
        running = asyncio.create_task(loop.run())

        async def all_done() -> None:
            assert rounds == 20

        await eventually(all_done)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert [(line["event"], line["seed"], line["reason"]) for line in logs] == [
        ("round.interrupted", "aws-cork", "the certificate expired"),
        ("round.interrupted", "aws-cork", "the store is closed"),
    ]
