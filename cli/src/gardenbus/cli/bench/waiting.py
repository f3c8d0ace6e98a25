"""Shoots that wait: whether they hold up others, and how fast they are bound once a seed becomes ready for them.

Schedulers wait here as long after the first refusal as they do after many (five minutes at most), as they do for
shoots that have waited for a while: what falls due in a measurement is part of it.
"""

import asyncio
import time
from contextlib import AsyncExitStack

import msgspec

from gardenbus.cli.bench.checking import check_bound, usage
from gardenbus.cli.bench.figures import Figures
from gardenbus.cli.bench.landscapes import Runs, beside
from gardenbus.cli.bench.loading import Known, Landscape, create, put_in_bulk
from gardenbus.cli.bench.manifests import names, ready_condition, seed, shoot
from gardenbus.cli.bench.pipes import Mark, Span, counting
from gardenbus.cli.bench.results import Pair, Progress, Target, Task, alternated, compared, parameters
from gardenbus.cli.bench.rig import BenchFailed, Rig, a_rig
from gardenbus.cli.bench.scheduling import (
    Batch,
    bind_by_scheduler,
    measure_bare,
    prepare,
    start_scheduler,
    tally,
)
from gardenbus.common.resources.document import Document, StoredObject
from gardenbus.common.resources.keys import ObjectKey

LONG_WAITS = {"GARDENBUS_BACKOFF_BASE_SECONDS": "300"}
WAITING = 100_000
WAITING_OF_REDUCED = 10_000
FULL_SHOOTS = 10_000
"""From so many shoots a run on, as many as the target speaks of are waiting."""

MISFITS = 1000
PATIENCE_SECONDS = 900.0
LOOK_SECONDS = 0.2
SETTLE_SECONDS = 1.5
"""A scheduler looks at the waiting again after a second."""


async def measure_waiting(task: Task) -> Figures:
    """Schedulable shoots while unschedulable ones wait, against the same without them."""
    waiting = WAITING if task.size.shoots >= FULL_SHOOTS else WAITING_OF_REDUCED
    runs = Runs([], [])
    async with AsyncExitStack() as stack:
        rigs: list[Rig] = []
        for count in (0, waiting):
            rig = await stack.enter_async_context(a_rig(task.durability))
            await prepare(rig, Landscape(task.size.seeds, task.size.placed), task.progress)
            await start_scheduler(rig, environ=LONG_WAITS)
            await _let_wait(rig, "never", count, task.progress)
            rigs.append(rig)
        for run in range(task.size.runs):
            task.progress("runs", run, task.size.runs)
            order = rigs if run % 2 == 0 else rigs[::-1]
            products = {id(rig): await _beside_waiting(task, rig, run) for rig in order}
            await _check_waiting(rigs[1], waiting)
            bares = {id(rig): await _bare_beside_waiting(task, rig, run) for rig in order}
            pairs = [Pair(products[id(rig)], bares[id(rig)]) for rig in rigs]
            runs = Runs([*runs.reference, pairs[0]], [*runs.subject, pairs[1]])
        task.progress("runs", task.size.runs, task.size.runs)
    return beside(task, runs, Target("≥ 0.9 of the rate with none waiting", 0.9), {"waiting": waiting})


async def measure_wake(task: Task) -> Figures:
    """One seed becomes ready for all that wait: from its readiness stored to the last binding announced."""
    size = task.size
    misfits = min(MISFITS, size.shoots)
    woken_in_vain: list[float] = []

    async def product(run: int) -> Span:
        await start_scheduler(rig, environ=LONG_WAITS)
        span = await _woken(rig, Batch(f"wake-{run}", size.shoots), misfits, task.progress)
        woken_in_vain.append((await tally(rig)).woken - size.shoots)
        await rig.stop("scheduler")
        return span

    async with a_rig(task.durability) as rig:
        await prepare(rig, Landscape(size.seeds, size.placed), task.progress)
        await start_scheduler(rig, environ=LONG_WAITS)
        await _let_wait(rig, "misfit", misfits, task.progress)
        await rig.stop("scheduler")
        pairs = await alternated(
            task, product, lambda run: measure_bare(rig, Batch(f"b{run}", size.shoots), size.seeds, task.progress)
        )
    figures = compared(
        task,
        pairs,
        Target("≥ 0.6 of the bare pipe, none woken more than once that cannot fit", 0.6),
        latency_of="from the seed's readiness stored to the binding announced",
    )
    values = {**figures.values, "most_woken_that_cannot_fit": max(woken_in_vain)}
    return msgspec.structs.replace(
        figures,
        met=bool(figures.met) and max(woken_in_vain) <= misfits,
        values=values,
        parameters=parameters(task, {"waiting_that_cannot_fit": misfits}),
    )


async def _beside_waiting(task: Task, rig: Rig, run: int) -> Span:
    return await bind_by_scheduler(rig, Batch(f"p{run}", task.size.shoots), task.progress)


async def _bare_beside_waiting(task: Task, rig: Rig, run: int) -> Span:
    """The bare pipe cannot tell who waits, so the scheduler has to step aside for a while."""
    await rig.stop("scheduler")
    span = await measure_bare(rig, Batch(f"b{run}", task.size.shoots), task.size.seeds, task.progress)
    await start_scheduler(rig, environ=LONG_WAITS)
    return span


async def _let_wait(rig: Rig, prefix: str, count: int, progress: Progress) -> None:
    """Load shoots that fit nowhere and have the scheduler find that out."""
    if not count:
        return
    documents = (shoot(name, number, "uniform", impossible=True) for number, name in enumerate(names(prefix, count)))
    await put_in_bulk(rig, documents, lambda done: progress("unschedulable shoots", done, count))
    await _until_waiting(rig, count, progress)


async def _until_waiting(rig: Rig, count: int, progress: Progress) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (waiting := (await rig.store.census())["shoots.waiting"]) < count:
        progress("waiting", waiting, count)
        if time.monotonic() > deadline:
            raise BenchFailed(f"only {waiting} of {count} shoots were found to fit nowhere")
        await asyncio.sleep(LOOK_SECONDS)
    progress("waiting", count, count)


async def _check_waiting(rig: Rig, count: int) -> None:
    """Raise BenchFailed unless all that cannot fit still wait (some are being looked at again, for a moment)."""
    await _until_waiting(rig, count, lambda _name, _done, _of: None)


async def _woken(rig: Rig, batch: Batch, misfits: int, progress: Progress) -> Span:
    """Let shoots wait for a seed of their own, then make it ready."""
    own_seed = _seed_for(batch)
    await create(rig, [own_seed])
    documents: list[Document] = []
    for number, name in enumerate(names(batch.prefix, batch.count)):
        document = shoot(name, number, "uniform")
        document["spec"]["seedSelector"] = {"matchLabels": {"ring": batch.prefix}}
        documents.append(document)
    shoots: list[Known] = await create(rig, documents, lambda done: progress("waiting shoots", done, batch.count))
    await _until_waiting(rig, misfits + batch.count, progress)
    await asyncio.sleep(SETTLE_SECONDS)
    before = await usage(rig)
    mark = await Mark.ahead(rig, "BINDINGS", batch.count + 1)  # the seed's own view is announced there too
    async with counting(rig, batch.count) as span:
        began = time.monotonic()
        await _make_ready(rig, own_seed["metadata"]["name"])
        span.seconds = await mark.reached() - began
    span.moments = [at - began for at in mark.moments[1:]]
    await check_bound(rig, shoots, before, mark)
    await asyncio.sleep(SETTLE_SECONDS)
    return span


def _seed_for(batch: Batch) -> Document:
    document = seed(0, "uniform", capacity=batch.count, ready=False)
    document["metadata"] |= {"name": batch.prefix, "labels": {"ring": batch.prefix}}
    return document


async def _make_ready(rig: Rig, name: str) -> None:
    stored = await rig.store.get(ObjectKey("seed", "", name))
    assert isinstance(stored, StoredObject), "it was created before"
    document = stored.document()
    document["status"]["conditions"] = [ready_condition(is_ready=True)]
    await rig.store.update(stored, document)
