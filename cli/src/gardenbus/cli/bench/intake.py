"""Intake and the whole way: Shoots sent to `garden.apply`, until they are stored and queued, or until they are bound.

What is sent for the intake is held back until all of it is there; for the whole way services work while it is sent.
"""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable

import msgspec

from gardenbus.cli.bench.bare import REQUESTS_CONSUMER
from gardenbus.cli.bench.checking import check_bound, check_stored, usage
from gardenbus.cli.bench.figures import Figures, middle
from gardenbus.cli.bench.loading import Known, Landscape
from gardenbus.cli.bench.manifests import names, shoot
from gardenbus.cli.bench.pipes import Mark, Span, asked, counting, hold, released
from gardenbus.cli.bench.results import Progress, Target, Task, alternated, compared
from gardenbus.cli.bench.rig import Rig, a_rig
from gardenbus.cli.bench.scheduling import BARE, Batch, measure_bare, prepare, start_scheduler
from gardenbus.common.ports.bus import Message
from gardenbus.common.resources.document import Document, encode
from gardenbus.common.resources.keys import ObjectKey

SENT_TOGETHER = 500


def requests(rig: Rig, batch: Batch) -> tuple[list[Known], list[Message]]:
    """Shoots to be created, and the message that asks for each."""
    documents: list[Document] = [
        shoot(name, number, batch.mix) for number, name in enumerate(names(batch.prefix, batch.count))
    ]
    known = [
        Known(ObjectKey("shoot", each["metadata"]["namespace"], each["metadata"]["name"]), "") for each in documents
    ]
    return known, [Message(rig.subjects.apply, encode(each)) for each in documents]


async def send(rig: Rig, messages: list[Message], progress: Progress) -> None:
    """Send requests as fast as they are taken."""
    for start in range(0, len(messages), SENT_TOGETHER):
        await rig.bus.publish_many(messages[start : start + SENT_TOGETHER])
        progress("requests", min(start + SENT_TOGETHER, len(messages)), len(messages))


async def take_in(rig: Rig, batch: Batch, progress: Progress, start: Callable[[], Awaitable[None]]) -> Span:
    """Send requests that are held back, start who takes them, let them go, and check what is stored."""
    await hold(rig, "REQUESTS", REQUESTS_CONSUMER)
    shoots, messages = requests(rig, batch)
    await send(rig, messages, progress)
    await start()
    mark = await Mark.ahead(rig, "QUEUES", batch.count)
    span = await released(rig, "REQUESTS", REQUESTS_CONSUMER, mark, batch.count)
    await check_stored(rig, shoots, mark)
    await asked(rig, f"STREAM.PURGE.{rig.subjects.stream('QUEUES')}")
    return span


async def take_in_bare(rig: Rig, batch: Batch, progress: Progress) -> Span:
    """The same by a process that stores what comes as it is."""
    span = await take_in(rig, batch, progress, lambda: rig.start("bare", "intake", module=BARE))
    await rig.stop("bare")
    return span


async def take_in_openly(rig: Rig, batch: Batch, progress: Progress) -> Span:
    """Requests sent while a process stores them as they are: what `send_through` asks of the first half of the way."""
    await rig.start("bare", "intake", module=BARE)
    shoots, messages = requests(rig, batch)
    mark = await Mark.ahead(rig, "QUEUES", batch.count)
    span = await sent(rig, batch, messages, mark, progress)
    await check_stored(rig, shoots, mark)
    await asked(rig, f"STREAM.PURGE.{rig.subjects.stream('QUEUES')}")
    await rig.stop("bare")
    return span


async def measure_intake(task: Task) -> Figures:
    """The apiserver against fetch → put → outbox → announce."""
    size = task.size

    async def product(run: int) -> Span:
        async def nothing_to_start() -> None:
            pass

        await rig.start("apiserver")
        span = await take_in(rig, Batch(f"p{run}", size.shoots), task.progress, nothing_to_start)
        await rig.stop("apiserver")
        return span

    async with a_rig(task.durability) as rig:
        await prepare(rig, Landscape(size.seeds, size.placed), task.progress)
        pairs = await alternated(
            task, product, lambda run: take_in_bare(rig, Batch(f"b{run}", size.shoots), task.progress)
        )
    return compared(
        task,
        pairs,
        Target("≥ 0.6 of the bare intake", 0.6),
        latency_of="from the first fetch to the shoot stored and queued, all sent at once",
    )


async def measure_stream(task: Task) -> Figures:
    """Requests in, bindings out, all services at work, against the slower of the two bare pipes.

    Who sends requests works besides the product, and so it does besides the bare intake.
    """
    size = task.size
    intakes: list[Span] = []
    schedulings: list[Span] = []

    async def product(run: int) -> Span:
        await rig.start("apiserver")
        await start_scheduler(rig)
        span = await send_through(rig, Batch(f"p{run}", size.shoots), task.progress)
        await rig.stop("apiserver")
        await rig.stop("scheduler")
        return span

    async def bare(run: int) -> Span:
        intakes.append(await take_in_openly(rig, Batch(f"i{run}", size.shoots), task.progress))
        schedulings.append(await measure_bare(rig, Batch(f"b{run}", size.shoots), size.seeds, task.progress))
        return _slower(intakes[-1], schedulings[-1])

    async with a_rig(task.durability) as rig:
        await prepare(rig, Landscape(size.seeds, size.placed), task.progress)
        pairs = await alternated(task, product, bare)
    figures = compared(
        task,
        pairs,
        Target("≥ 0.6 of the slower bare pipe", 0.6),
        latency_of="from the first request sent to the binding, all sent at once",
    )
    more = {
        "bare_intake_per_s": round(middle(span.rate for span in intakes) or 0.0, 1),
        "bare_scheduling_per_s": round(middle(span.rate for span in schedulings) or 0.0, 1),
    }
    return msgspec.structs.replace(figures, values={**figures.values, **more})


def _slower(intake: Span, scheduling: Span) -> Span:
    """The slower of the bare pipes, at the cost of both: a shoot has to go through the one and the other."""
    slower = min((intake, scheduling), key=lambda span: span.rate)
    costs = [(name if name != "bare" else "bare-intake", cpu) for name, cpu in intake.cpu_s.items()]
    costs += [(name if name != "bare" else "bare-schedule", cpu) for name, cpu in scheduling.cpu_s.items()]
    both: defaultdict[str, float] = defaultdict(float)
    for name, cpu in costs:
        both[name] += cpu
    slower.cpu_s = both
    return slower


async def send_through(rig: Rig, batch: Batch, progress: Progress) -> Span:
    """Send requests to running services, and wait for the last binding."""
    shoots, messages = requests(rig, batch)
    before = await usage(rig)
    mark = await Mark.ahead(rig, "BINDINGS", batch.count)
    span = await sent(rig, batch, messages, mark, progress)
    await check_bound(rig, shoots, before, mark)
    return span


async def sent(rig: Rig, batch: Batch, messages: list[Message], mark: Mark, progress: Progress) -> Span:
    """From the first request sent until a stream has come as far as `mark`."""
    async with counting(rig, batch.count) as span:
        began = time.monotonic()
        await send(rig, messages, progress)
        span.seconds = await mark.reached() - began
    span.moments = [at - began for at in mark.moments]
    return span
