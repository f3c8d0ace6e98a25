"""The event loop: uvloop against asyncio's own, each in a thread of its own so that they can take turns.

The measurer's loop sleeps meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable

import uvloop

from gardenbus.cli.bench.alternatives import backlog
from gardenbus.cli.bench.alternatives.spending import Means, Row, Size, Spent, alternate, compared, spent
from gardenbus.cli.bench.rig import Rig
from gardenbus.common.adapters import jetstream
from gardenbus.common.adapters.redis_connection import RedisConnection

QUESTIONS = 20_000
ASKING = 50
MESSAGES = 5000
FETCHED = 200

NewLoop = Callable[[], asyncio.AbstractEventLoop]
LOOPS: dict[str, NewLoop] = {"uvloop": uvloop.new_event_loop, "asyncio's": asyncio.new_event_loop}


async def loops(rig: Rig, size: Size, durability: str) -> list[Row]:
    """Questions to Redis from many callers on one line, and work taken off a queue."""
    questions = max(ASKING, size.of(QUESTIONS) // ASKING * ASKING)
    messages = size.of(MESSAGES)
    await backlog.queue(rig)
    asked = await alternate(size, {name: _asking(rig, questions, loop) for name, loop in LOOPS.items()})
    taken = await alternate(size, {name: _taking(rig, messages, loop) for name, loop in LOOPS.items()})
    ours, other = LOOPS
    return [
        compared(what, results, ours=ours, other=other, unit=unit, kept="uvloop")
        for what, unit, results in (
            (f"loop: questions to Redis, {ASKING} callers ({durability})", "replies", asked),
            (f"loop: work fetched {FETCHED} at a time ({durability})", "messages", taken),
        )
    ]


def _asking(rig: Rig, questions: int, new_loop: NewLoop) -> Means:
    async def one_caller(redis: RedisConnection) -> None:
        for _ in range(questions // ASKING):
            await redis.command("GET", "bench:nothing")

    async def ask() -> None:
        redis = RedisConnection(rig.addresses.redis_url, rig.addresses.prefix)
        try:
            await asyncio.gather(*(one_caller(redis) for _ in range(ASKING)))
        finally:
            await redis.close()

    async def measured() -> Spent:
        return await spent(rig, ["redis"], questions, lambda: _in_thread(new_loop, ask))

    return measured


def _taking(rig: Rig, messages: int, new_loop: NewLoop) -> Means:
    async def take() -> None:
        addresses = rig.addresses
        async with jetstream.connect(addresses.nats_url, "bench", addresses.prefix, manages_streams=False) as bus:
            stream = rig.subjects.stream(backlog.STREAM)
            waiting = await bus.work_queue(stream, backlog.CONSUMER, rig.subjects.queue_of(backlog.CONTROLLER))
            await backlog.drain(waiting, messages, FETCHED)

    async def measured() -> Spent:
        await backlog.fill(rig, messages)
        return await spent(rig, ["nats"], messages, lambda: _in_thread(new_loop, take))

    return measured


async def _in_thread(new_loop: NewLoop, work: Callable[[], Awaitable[None]]) -> None:
    def run() -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(_awaited(work))

    await asyncio.to_thread(run)


async def _awaited(work: Callable[[], Awaitable[None]]) -> None:
    await work()
