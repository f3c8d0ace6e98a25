"""Work in a queue, and taking it out again."""

import itertools
from collections.abc import Awaitable, Callable, Sequence

from gardenbus.cli.bench.rig import BenchFailed, Rig
from gardenbus.common.ports.bus import Message, Work, WorkQueue

STREAM = "QUEUES"
CONTROLLER = "bench"
CONSUMER = "bench"
BODY = b"x" * 300
WAIT_SECONDS = 5.0

_numbers = itertools.count()

Handle = Callable[[Sequence[Work]], Awaitable[None]]


async def queue(rig: Rig) -> WorkQueue:
    """What the work waits in."""
    return await rig.bus.work_queue(rig.subjects.stream(STREAM), CONSUMER, rig.subjects.queue_of(CONTROLLER))


async def fill(rig: Rig, count: int) -> None:
    """Put so much work in it."""
    names = (f"n{number}" for number in itertools.islice(_numbers, count))
    await rig.bus.publish_many([Message(rig.subjects.queue(CONTROLLER, "_", name), BODY) for name in names])


async def drain(waiting: WorkQueue, count: int, limit: int, handle: Handle | None = None) -> None:
    """Take so much work out, `limit` at a time, and acknowledge it."""
    while count > 0:
        works = await some(waiting, limit)
        if handle is not None:
            await handle(works)
        await waiting.ack_many(works)
        count -= len(works)


async def some(waiting: WorkQueue, limit: int) -> Sequence[Work]:
    """The next works. Raises BenchFailed when there are none."""
    works = await waiting.fetch(limit, WAIT_SECONDS)
    if not works:
        raise BenchFailed("the work that was queued does not come")
    return works
