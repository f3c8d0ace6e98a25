"""Taking work off a queue: how much at a time, and whether the next is asked for while some is worked on."""

import asyncio
from collections.abc import Sequence

from gardenbus.cli.bench.alternatives import backlog
from gardenbus.cli.bench.alternatives.spending import Means, Row, Size, Spent, alternate, compared, spent
from gardenbus.cli.bench.rig import Rig
from gardenbus.common.ports.bus import Work, WorkQueue
from gardenbus.scheduler.settings import SchedulerSettings

MESSAGES = 20_000
SIZES = (10, 50, 200, 1000)
OURS = SchedulerSettings().batch_size
"""What the scheduler fetches at once."""

SECONDS_A_MESSAGE = 0.00001


async def fetching(rig: Rig, size: Size, durability: str) -> list[Row]:
    """Sizes against ours, and one fetch after another against asking ahead."""
    waiting = await backlog.queue(rig)
    count = size.of(MESSAGES)
    named = {limit: f"{limit} a fetch" for limit in (OURS, *SIZES)}
    taken = await alternate(size, {name: _at_most(rig, waiting, count, limit) for limit, name in named.items()})
    rows = [
        compared(
            f"fetched ({durability})",
            taken,
            ours=named[OURS],
            other=named[limit],
            unit="messages",
            kept="scheduler 500, apiserver 200",
        )
        for limit in SIZES
    ]
    ahead, after = "next one asked for meanwhile", "one after another"
    taken = await alternate(
        size, {ahead: _ahead(rig, waiting, count), after: _at_most(rig, waiting, count, OURS, works=True)}
    )
    what = f"fetched {OURS} at a time, 1 ms of waiting for 100 ({durability})"
    return [*rows, compared(what, taken, ours=ahead, other=after, unit="messages", kept="asked for meanwhile")]


async def _work(works: Sequence[Work]) -> None:
    """What takes time and no CPU here: the store's answer."""
    await asyncio.sleep(SECONDS_A_MESSAGE * len(works))


def _at_most(rig: Rig, waiting: WorkQueue, count: int, limit: int, *, works: bool = False) -> Means:
    async def measured() -> Spent:
        await backlog.fill(rig, count)
        handle = _work if works else None
        return await spent(rig, ["nats"], count, lambda: backlog.drain(waiting, count, limit, handle))

    return measured


def _ahead(rig: Rig, waiting: WorkQueue, count: int) -> Means:
    async def carry_out(works: Sequence[Work]) -> None:
        await _work(works)
        await waiting.ack_many(works)

    async def pipelined() -> None:
        left = count
        before: asyncio.Task[None] | None = None
        while left > 0:
            works = await backlog.some(waiting, OURS)
            left -= len(works)
            if before is not None:
                await before
            before = asyncio.create_task(carry_out(works))
        if before is not None:
            await before

    async def measured() -> Spent:
        await backlog.fill(rig, count)
        return await spent(rig, ["nats"], count, pipelined)

    return measured
