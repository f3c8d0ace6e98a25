"""Shoots that wait: whether they hold up others, and how fast they are bound once a seed becomes ready for them.

Schedulers wait here as long after the first rejection as they do after many (five minutes at most), as they do for
shoots that have waited for a while: what falls due in a measurement is part of it.
"""

import asyncio
import time
from contextlib import AsyncExitStack

import msgspec

from gardenbus.bench.comparison import (
    MeasuredPair,
    Measurement,
    ReportProgress,
    ScenarioTarget,
    ScenarioTask,
    alternated,
    compared,
    parameters,
)
from gardenbus.bench.harness.loading import BenchLandscape, StoredShoot, create, put_in_bulk
from gardenbus.bench.harness.measurement import StreamTarget, measuring
from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.harness.rig import Rig, a_rig
from gardenbus.bench.harness.verification import check_bound, usage
from gardenbus.bench.manifests.shoots import names, ready_condition, seed, shoot
from gardenbus.bench.scenarios.landscapes import Runs, beside
from gardenbus.bench.scenarios.scheduling import (
    ShootBatch,
    bind_by_scheduler,
    measure_bare,
    prepare,
    scheduler_counts,
    start_scheduler,
)
from gardenbus.bench.stats import ScenarioStats
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey

LONG_WAITS = {"GARDENBUS_BACKOFF_BASE_SECONDS": "300"}
UNSCHEDULABLE = {10_000: 100_000, 100: 10_000, 0: 100}
"""Shoots that wait, by how many a run has at least: as many as the target speaks of at the size of the target."""

MISFITS = 1000
TIMEOUT_SECONDS = 900.0
POLL_SECONDS = 0.2
QUIET_SECONDS = 1.5
"""A scheduler reconsiders unschedulable shoots after a second."""


async def measure_unschedulable(task: ScenarioTask) -> ScenarioStats:
    """Schedulable shoots while unschedulable ones wait, against the same without them."""
    waiting = next(count for least, count in UNSCHEDULABLE.items() if task.size.shoots >= least)
    runs = Runs([], [])
    async with AsyncExitStack() as stack:
        rigs: list[Rig] = []
        for count in (0, waiting):
            rig = await stack.enter_async_context(a_rig(task.durability))
            await prepare(rig, BenchLandscape(task.size.seeds, task.size.placed), task.progress)
            await start_scheduler(rig, environ=LONG_WAITS)
            await _load_unschedulable(rig, "never", count, task.progress)
            rigs.append(rig)
        for run in range(task.size.runs):
            task.progress("runs", run, task.size.runs)
            order = rigs if run % 2 == 0 else rigs[::-1]
            products = {id(rig): await _with_unschedulable(task, rig, run) for rig in order}
            await _check_unschedulable(rigs[1], waiting)
            bares = {id(rig): await _bare_with_unschedulable(task, rig, run) for rig in order}
            pairs = [MeasuredPair(products[id(rig)], bares[id(rig)]) for rig in rigs]
            runs = Runs([*runs.reference, pairs[0]], [*runs.subject, pairs[1]])
        task.progress("runs", task.size.runs, task.size.runs)
    return beside(task, runs, ScenarioTarget("≥ 0.9 of the rate with none waiting", 0.9), {"waiting": waiting})


async def measure_activation(task: ScenarioTask) -> ScenarioStats:
    """One seed becomes ready for all that wait: from its readiness stored to the last binding announced."""
    size = task.size
    misfits = min(MISFITS, size.shoots)
    activated_in_vain: list[float] = []

    async def product(run: int) -> Measurement:
        await start_scheduler(rig, environ=LONG_WAITS)
        measurement = await _activated(rig, ShootBatch(f"wake-{run}", size.shoots), misfits, task.progress)
        activated_in_vain.append((await scheduler_counts(rig)).activated - size.shoots)
        await rig.stop("scheduler")
        return measurement

    async with a_rig(task.durability) as rig:
        await prepare(rig, BenchLandscape(size.seeds, size.placed), task.progress)
        await start_scheduler(rig, environ=LONG_WAITS)
        await _load_unschedulable(rig, "misfit", misfits, task.progress)
        await rig.stop("scheduler")
        pairs = await alternated(
            task, product, lambda run: measure_bare(rig, ShootBatch(f"b{run}", size.shoots), size.seeds, task.progress)
        )
    stats = compared(
        task,
        pairs,
        ScenarioTarget("≥ 0.6 of the bare pipe, none woken more than once that cannot fit", 0.6),
        latency_of="from the seed's readiness stored to the binding announced",
    )
    values = {**stats.values, "most_woken_that_cannot_fit": max(activated_in_vain)}
    return msgspec.structs.replace(
        stats,
        met=bool(stats.met) and max(activated_in_vain) <= misfits,
        values=values,
        parameters=parameters(task, {"waiting_that_cannot_fit": misfits}),
    )


async def _with_unschedulable(task: ScenarioTask, rig: Rig, run: int) -> Measurement:
    return await bind_by_scheduler(rig, ShootBatch(f"p{run}", task.size.shoots), task.progress)


async def _bare_with_unschedulable(task: ScenarioTask, rig: Rig, run: int) -> Measurement:
    """The bare pipe cannot know who waits, so the scheduler has to step aside for a while."""
    await rig.stop("scheduler")
    measurement = await measure_bare(rig, ShootBatch(f"b{run}", task.size.shoots), task.size.seeds, task.progress)
    await start_scheduler(rig, environ=LONG_WAITS)
    return measurement


async def _load_unschedulable(rig: Rig, prefix: str, count: int, progress: ReportProgress) -> None:
    """Load shoots that fit nowhere and have the scheduler find that out."""
    if not count:
        return
    documents = (shoot(name, number, "uniform", impossible=True) for number, name in enumerate(names(prefix, count)))
    await put_in_bulk(rig, documents, lambda done: progress("unschedulable shoots", done, count))
    await _until_unschedulable(rig, count, progress)


async def _until_unschedulable(rig: Rig, count: int, progress: ReportProgress) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while (waiting := (await rig.store.census())["shoots.waiting"]) < count:
        progress("waiting", waiting, count)
        if time.monotonic() > deadline:
            raise BenchFailed(f"only {waiting} of {count} shoots were found to fit nowhere")
        await asyncio.sleep(POLL_SECONDS)
    progress("waiting", count, count)


async def _check_unschedulable(rig: Rig, count: int) -> None:
    """Raise BenchFailed unless all that cannot fit still wait (some are being looked at again, for a moment)."""
    await _until_unschedulable(rig, count, lambda _name, _done, _of: None)


async def _activated(rig: Rig, batch: ShootBatch, misfits: int, progress: ReportProgress) -> Measurement:
    """Let shoots wait for a seed of their own, then make it ready."""
    own_seed = _seed_for(batch)
    await create(rig, [own_seed])
    documents: list[Document] = []
    for number, name in enumerate(names(batch.prefix, batch.count)):
        document = shoot(name, number, "uniform")
        document["spec"]["seedSelector"] = {"matchLabels": {"ring": batch.prefix}}
        documents.append(document)
    shoots: list[StoredShoot] = await create(rig, documents, lambda done: progress("waiting shoots", done, batch.count))
    await _until_unschedulable(rig, misfits + batch.count, progress)
    await asyncio.sleep(QUIET_SECONDS)
    before = await usage(rig)
    target = await StreamTarget.ahead(rig, "BINDINGS", batch.count + 1)  # the seed's own view is announced there too
    async with measuring(rig, batch.count) as measurement:
        began = time.monotonic()
        await _make_ready(rig, own_seed["metadata"]["name"])
        measurement.seconds = await target.reached() - began
    measurement.moments = [at - began for at in target.moments[1:]]
    await check_bound(rig, shoots, before, target)
    await asyncio.sleep(QUIET_SECONDS)
    return measurement


def _seed_for(batch: ShootBatch) -> Document:
    document = seed(0, "uniform", capacity=batch.count, ready=False)
    document["metadata"] |= {"name": batch.prefix, "labels": {"ring": batch.prefix}}
    return document


async def _make_ready(rig: Rig, name: str) -> None:
    stored = await rig.store.get(ObjectKey("seed", "", name))
    assert isinstance(stored, StoredObject), "it was created before"
    document = stored.document()
    document["status"]["conditions"] = [ready_condition(is_ready=True)]
    await rig.store.update(stored, document)
