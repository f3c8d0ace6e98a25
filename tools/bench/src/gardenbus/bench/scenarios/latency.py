"""Latency: from `garden.apply` published to `garden.binding` received, at a rate that does not wait for responses."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec

from gardenbus.bench.bare.services import SEEDS_VARIABLE
from gardenbus.bench.comparison import (
    MeasuredPair,
    Measurement,
    ScenarioTarget,
    ScenarioTask,
    alternated,
    compared,
    parameters,
)
from gardenbus.bench.harness.loading import BenchLandscape
from gardenbus.bench.harness.measurement import StreamTarget, measuring
from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.harness.rig import Rig, a_rig
from gardenbus.bench.harness.verification import check_bound, usage
from gardenbus.bench.scenarios.apply import requests
from gardenbus.bench.scenarios.scheduling import BARE, ShootBatch, prepare, start_scheduler
from gardenbus.bench.stats import ScenarioStats, latencies, median_of
from gardenbus.common.ports.bus import Follower, Message, ReplayDone, StreamMessage

RATE_PER_S = 200
BINDING_TIMEOUT_SECONDS = 60.0
P50_MS, P99_MS = 8.0, 30.0


async def measure(task: ScenarioTask) -> ScenarioStats:
    """The product's latencies, and those of the two bare pipes one behind the other."""

    async def product(run: int) -> Measurement:
        await rig.start("apiserver")
        await start_scheduler(rig)
        return await _measured(f"p{run}", ("apiserver", "scheduler"))

    async def bare(run: int) -> Measurement:
        await rig.start("bare-intake", "intake", module=BARE)
        await rig.start("bare-schedule", "schedule", module=BARE, environ={SEEDS_VARIABLE: str(task.size.seeds)})
        return await _measured(f"b{run}", ("bare-intake", "bare-schedule"))

    async def _measured(prefix: str, roles: tuple[str, ...]) -> Measurement:
        measurement = await open_loop(rig, ShootBatch(prefix, task.size.shoots), task.progress)
        for role in roles:
            await rig.stop(role)
        return measurement

    async with a_rig(task.durability) as rig:
        await prepare(rig, BenchLandscape(task.size.seeds, task.size.placed), task.progress)
        pairs = await alternated(task, product, bare)
    target = ScenarioTarget(f"p50 ≤ {P50_MS:g} ms, p99 ≤ {P99_MS:g} ms at {RATE_PER_S}/s")
    stats = compared(task, pairs, target, latency_of="from the moment a request was due to its binding received")
    latency, runs = stats.latency_ms, [_percentiles(pair) for pair in pairs]
    return msgspec.structs.replace(
        stats,
        ratio=median_of(run["ratio"] for run in runs),
        met=latency["p50"] <= P50_MS and latency["p99"] <= P99_MS,
        runs=runs,
        parameters=parameters(task, {"rate_per_s": RATE_PER_S}),
    )


def _percentiles(pair: MeasuredPair) -> dict[str, float]:
    own, bare = latencies(pair.product.moments), latencies(pair.bare.moments)
    return {
        "ratio": round(bare["p50"] / own["p50"], 3),
        **own,
        **{f"bare_{name}": milliseconds for name, milliseconds in bare.items()},
    }


async def open_loop(rig: Rig, batch: ShootBatch, progress: Callable[[str, int, int], None]) -> Measurement:
    """Send a request whenever one is due, whatever has become of the others, and note when each is bound."""
    shoots, messages = requests(rig, batch)
    before = await usage(rig)
    target = await StreamTarget.ahead(rig, "BINDINGS", batch.count)
    stream = rig.subjects.stream("BINDINGS")
    position = await rig.bus.position(stream)
    async with rig.bus.follow(
        stream, [f"{rig.subjects.prefix}.binding.>"], after_sequence=position.sequence, headers_only=True
    ) as follower:
        receiving = asyncio.create_task(_received(follower, batch.count, progress))
        await asyncio.sleep(0.2)
        async with measuring(rig, batch.count) as measurement:
            began = time.monotonic()
            await _send_when_due(rig.bus.publish, messages, began)
            try:
                async with asyncio.timeout(BINDING_TIMEOUT_SECONDS):
                    bound_at = await receiving
            except TimeoutError as error:
                raise BenchFailed(f"a binding is missing after {BINDING_TIMEOUT_SECONDS:g} s") from error
            measurement.seconds = time.monotonic() - began
    measurement.moments = [
        bound_at[shoot.key.name] - began - number / RATE_PER_S for number, shoot in enumerate(shoots)
    ]
    await check_bound(rig, shoots, before, target)
    return measurement


async def _send_when_due(publish: Callable[[Message], Awaitable[int]], messages: list[Message], began: float) -> None:
    async with asyncio.TaskGroup() as group:
        for number, message in enumerate(messages):
            wait = began + number / RATE_PER_S - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            group.create_task(_sent(publish, message))


async def _sent(publish: Callable[[Message], Awaitable[int]], message: Message) -> None:
    await publish(message)


async def _received(follower: Follower, count: int, progress: Callable[[str, int, int], None]) -> dict[str, float]:
    """Time when the binding of each shoot came, by its name."""
    came: dict[str, float] = {}
    async for event in follower:
        if isinstance(event, ReplayDone) or not isinstance(event, StreamMessage):
            continue
        came.setdefault(event.subject.rsplit(".", 1)[1], time.monotonic())
        if len(came) % RATE_PER_S == 0:
            progress("bindings", len(came), count)
        if len(came) >= count:
            break
    return came
