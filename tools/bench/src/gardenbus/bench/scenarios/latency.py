"""Latency: from `garden.apply` published to `garden.binding` received, at a rate that does not wait for responses."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from gardenbus.bench.bare.services import SEEDS_VARIABLE
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
MOST_SHOOTS = 4000
"""Shoots of a run at most: at this rate more of them take minutes, and tell no more of the 99th percentile."""
BINDING_TIMEOUT_SECONDS = 60.0


class LatencyTarget(NamedTuple):
    """Most milliseconds at the median and at the 99th percentile."""

    p50: float
    p99: float

    def is_met(self, found: Mapping[str, float]) -> bool:
        """True when both hold."""
        return found["p50"] <= self.p50 and found["p99"] <= self.p99


SINGLE, CLUSTER = LatencyTarget(6.0, 20.0), LatencyTarget(15.0, 40.0)
MOST_FIRST_MS = 15.0
"""For the first order after apiserver and scheduler have started."""


async def measure(task: ScenarioTask) -> ScenarioStats:
    """The product's latencies, those of the two bare pipes one behind the other, and the product's in a cluster.

    The product has identities. The three landscapes stand at the same time, and are measured by turns.
    """
    count = min(task.size.shoots, MOST_SHOOTS)
    clustered: list[Measurement] = []

    async def product(run: int) -> Measurement:
        measured = await _of_product(single, ShootBatch(f"p{run}", count), task.progress)
        clustered.append(await _of_product(cluster, ShootBatch(f"c{run}", count), task.progress))
        return measured

    async def bare(run: int) -> Measurement:
        await insecure.start("bare-intake", "intake", module=BARE)
        await insecure.start("bare-schedule", "schedule", module=BARE, environ={SEEDS_VARIABLE: str(task.size.seeds)})
        measured = await open_loop(insecure, ShootBatch(f"b{run}", count), task.progress)
        await insecure.stop("bare-schedule")
        await insecure.stop("bare-intake")
        return measured

    async with (
        a_rig(task.durability) as insecure,
        a_rig(task.durability, access="permissions") as single,
        a_rig(task.durability, access="permissions", is_cluster=True) as cluster,
    ):
        for rig in (insecure, single, cluster):
            await prepare(rig, BenchLandscape(task.size.seeds, task.size.placed), task.progress)
        for rig in (single, cluster):
            await rig.start("identity")
        pairs = await alternated(task, product, bare)
    return _stats(task, pairs, latencies(moment for each in clustered for moment in each.moments))


async def _of_product(rig: Rig, batch: ShootBatch, progress: ReportProgress) -> Measurement:
    await rig.start("apiserver")
    await start_scheduler(rig)
    measured = await open_loop(rig, batch, progress)
    await rig.stop("scheduler")
    await rig.stop("apiserver")
    return measured


def _stats(task: ScenarioTask, pairs: Sequence[MeasuredPair], clustered: Mapping[str, float]) -> ScenarioStats:
    wanted = [f"p50 ≤ {each.p50:g} ms, p99 ≤ {each.p99:g} ms" for each in (SINGLE, CLUSTER)]
    target = ScenarioTarget(
        f"{wanted[0]} at {RATE_PER_S}/s, the first after a start ≤ {MOST_FIRST_MS:g} ms; in a cluster {wanted[1]}"
    )
    first = round(1000 * (median_of(pair.product.moments[0] for pair in pairs) or 0.0), 2)
    stats = compared(task, pairs, target, latency_of="from the moment a request was due to its binding received")
    runs = [_percentiles(pair) for pair in pairs]
    return msgspec.structs.replace(
        stats,
        ratio=median_of(run["ratio"] for run in runs),
        met=SINGLE.is_met(stats.latency_ms) and first <= MOST_FIRST_MS and CLUSTER.is_met(clustered),
        runs=runs,
        values={
            **stats.values,
            "first_ms": first,
            "cluster_p50_ms": clustered["p50"],
            "cluster_p99_ms": clustered["p99"],
        },
        parameters=parameters(task, {"rate_per_s": RATE_PER_S}),
    )


def _percentiles(pair: MeasuredPair) -> dict[str, float]:
    own, bare = latencies(pair.product.moments), latencies(pair.bare.moments)
    return {
        "ratio": round(bare["p50"] / own["p50"], 3),
        **own,
        **{f"bare_{name}": milliseconds for name, milliseconds in bare.items()},
    }


async def open_loop(rig: Rig, batch: ShootBatch, progress: ReportProgress) -> Measurement:
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


async def _received(follower: Follower, count: int, progress: ReportProgress) -> dict[str, float]:
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
