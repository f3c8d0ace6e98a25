"""Replication: three servers of NATS and a Redis with a replica on one machine, beside one server of each."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple

import msgspec

from gardenbus.bench.comparison import MeasuredPair, Measurement, ScenarioTarget, ScenarioTask, compared, parameters
from gardenbus.bench.harness.loading import BenchLandscape
from gardenbus.bench.harness.rig import Rig, a_rig
from gardenbus.bench.scenarios.latency import RATE_PER_S, open_loop
from gardenbus.bench.scenarios.scheduling import ShootBatch, measure_product, prepare, start_scheduler
from gardenbus.bench.stats import ScenarioStats, latencies, median_of

P50_MS, P99_MS = 20.0, 60.0


class ReplicationRun(NamedTuple):
    """One run on one rig: pending shoots bound as fast as it goes, and requests at a rate."""

    rate: Measurement
    latency: Measurement


async def measure(task: ScenarioTask) -> ScenarioStats:
    """Both by turns: what is queued is bound, then orders come at a rate that does not wait for responses."""
    single: list[ReplicationRun] = []
    cluster: list[ReplicationRun] = []
    async with AsyncExitStack() as stack:
        rigs: list[tuple[Rig, list[ReplicationRun]]] = []
        for attempts in (single, cluster):
            rig = await stack.enter_async_context(a_rig(task.durability, is_cluster=attempts is cluster))
            await prepare(rig, BenchLandscape(task.size.seeds, task.size.placed), task.progress)
            rigs.append((rig, attempts))
        for run in range(task.size.runs):
            task.progress("runs", run, task.size.runs)
            for rig, attempts in rigs if run % 2 == 0 else rigs[::-1]:
                attempts.append(await _attempt(task, rig, run))
        task.progress("runs", task.size.runs, task.size.runs)
    return _stats(task, single, cluster)


async def _attempt(task: ScenarioTask, rig: Rig, run: int) -> ReplicationRun:
    rate = await measure_product(rig, ShootBatch(f"p{run}", task.size.shoots), task.progress)
    await rig.start("apiserver")
    await start_scheduler(rig)
    latency = await open_loop(rig, ShootBatch(f"l{run}", task.size.shoots), task.progress)
    for role in ("apiserver", "scheduler"):
        await rig.stop(role)
    return ReplicationRun(rate, latency)


def _stats(task: ScenarioTask, single: Sequence[ReplicationRun], cluster: Sequence[ReplicationRun]) -> ScenarioStats:
    pairs = [MeasuredPair(subject.rate, reference.rate) for subject, reference in zip(cluster, single, strict=True)]
    stats = compared(
        task,
        pairs,
        ScenarioTarget(f"p50 ≤ {P50_MS:g} ms, p99 ≤ {P99_MS:g} ms at {RATE_PER_S}/s in the cluster"),
        latency_of="in the cluster, from the moment a request was due to its binding received",
    )
    here, there = (_median_latencies(attempts) for attempts in (cluster, single))
    return msgspec.structs.replace(
        stats,
        latency_ms=here,
        bare_latency_ms={},
        met=here["p50"] <= P50_MS and here["p99"] <= P99_MS,
        values={
            **stats.values,
            **{f"single_{name}_ms": milliseconds for name, milliseconds in there.items()},
            "cpu_ratio_of_scheduling": _cpu_ratio(single, cluster, lambda attempt: attempt.rate),
            "cpu_ratio_of_orders": _cpu_ratio(single, cluster, lambda attempt: attempt.latency),
        },
        parameters=parameters(task, {"rate_per_s": RATE_PER_S, "nats_servers": 3, "redis_replicas": 1}),
    )


def _median_latencies(attempts: Sequence[ReplicationRun]) -> dict[str, float]:
    runs = [latencies(attempt.latency.moments) for attempt in attempts]
    return {name: round(median_of(run[name] for run in runs) or 0.0, 3) for name in runs[0]}


def _cpu_ratio(
    single: Sequence[ReplicationRun], cluster: Sequence[ReplicationRun], of: Callable[[ReplicationRun], Measurement]
) -> float:
    """CPU seconds of the cluster's servers and services by the single ones': hardly moved by others at work."""
    ratios = [
        sum(of(subject).cpu_s.values()) / (sum(of(reference).cpu_s.values()) or 1.0)
        for subject, reference in zip(cluster, single, strict=True)
    ]
    return round(median_of(ratios) or 0.0, 3)
