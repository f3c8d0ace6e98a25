"""Scenarios on one rig: intake, scheduling, the stream of both, and orders that come alone.

Each turn starts the services anew and takes all scenarios, one after the other. The first one warms the servers up, and
is the one in which Redis logs its calls; the bare pipe has turns of its own.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec

from gardenbus.bench.comparison import Measurement, no_progress
from gardenbus.bench.guard.readings import ScenarioReading, one_behind_the_other
from gardenbus.bench.guard.redis_functions import CallLog
from gardenbus.bench.guard.turns import MeasureOnce, Turns
from gardenbus.bench.guard.yardsticks import YardstickRunner, yardsticks
from gardenbus.bench.harness.loading import BenchLandscape
from gardenbus.bench.harness.measurement import StreamTarget, measuring
from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.harness.rig import Rig, a_rig
from gardenbus.bench.harness.verification import check_bound, usage
from gardenbus.bench.scenarios.apply import apply_bare, apply_shoots, requests, send_through
from gardenbus.bench.scenarios.scheduling import (
    ShootBatch,
    bind_by_scheduler,
    measure_bare,
    prepare,
    start_scheduler,
)
from gardenbus.common.ports.bus import Follower, StreamMessage
from gardenbus.embedded.durability import Durability

APPLY, SCHEDULING, STREAM, ALONE = "intake", "scheduling", "stream", "one order alone"
UNITS: Mapping[str, str] = {APPLY: "shoot", SCHEDULING: "shoot", STREAM: "shoot", ALONE: "order"}

SEEDS, PLACED = 300, 600
SHOOTS: Mapping[str, int] = {APPLY: 1000, SCHEDULING: 2000, STREAM: 1000, ALONE: 80}
BINDING_TIMEOUT_SECONDS = 60.0


async def measure_loads(turns: Turns, count: int, scenarios: Collection[str] = UNITS) -> None:
    """Take `count` turns of each of these scenarios. Raises BenchFailed."""
    async with a_rig(Durability.PROCESS) as rig:
        await prepare(rig, BenchLandscape(SEEDS, PLACED), no_progress)
        async with yardsticks(rig) as runner:
            log = CallLog(rig)
            await log.begin()
            async for scenario, measure in _scenarios(rig, 0, scenarios):
                await turns.take_logged(scenario, rig, log, measure)
            await log.end()
            for number in range(1, count + 1):
                await _take_bare(turns, rig, runner, number, scenarios)
                async for scenario, measure in _scenarios(rig, number, scenarios):
                    await turns.take(scenario, rig, runner, measure)


async def _scenarios(rig: Rig, number: int, scenarios: Collection[str]) -> AsyncGenerator[tuple[str, MeasureOnce]]:
    """Those of the scenarios of one turn that are wanted, each with the services that it needs."""

    def batch(scenario: str) -> ShootBatch:
        return ShootBatch(f"{scenario.replace(' ', '-')}-{number}", SHOOTS[scenario])

    scheduled: Mapping[str, MeasureOnce] = {
        SCHEDULING: lambda: bind_by_scheduler(rig, batch(SCHEDULING), no_progress),
        STREAM: lambda: send_through(rig, batch(STREAM), no_progress),
        ALONE: lambda: orders_alone(rig, batch(ALONE)),
    }
    async with _running(rig, "apiserver"):
        if APPLY in scenarios:
            yield APPLY, lambda: apply_shoots(rig, batch(APPLY), no_progress, _nothing)
        if not scheduled.keys() & set(scenarios):
            return
        async with _running(rig, "scheduler"):
            for scenario, measure in scheduled.items():
                if scenario in scenarios:
                    yield scenario, measure


async def _take_bare(turns: Turns, rig: Rig, runner: YardstickRunner, number: int, scenarios: Collection[str]) -> None:
    """The bare pipes, in the place of the services."""

    async def apply_once() -> Measurement:
        return await apply_bare(rig, ShootBatch(f"bare-intake-{number}", SHOOTS[APPLY]), no_progress)

    async def schedule_once() -> Measurement:
        return await measure_bare(rig, ShootBatch(f"bare-scheduling-{number}", SHOOTS[SCHEDULING]), SEEDS, no_progress)

    if APPLY in scenarios:
        await turns.take_bare(APPLY, rig, runner, apply_once)
    if SCHEDULING in scenarios:
        await turns.take_bare(SCHEDULING, rig, runner, schedule_once)


def with_pipe_of_stream(readings: Sequence[ScenarioReading]) -> list[ScenarioReading]:
    """The same, the stream beside both bare pipes one behind the other."""
    bare = {reading.scenario: reading.bare for reading in readings}
    first, second = bare.get(APPLY), bare.get(SCHEDULING)
    both = one_behind_the_other(first, second) if first and second else None
    return [
        msgspec.structs.replace(reading, bare=both) if reading.scenario == STREAM else reading for reading in readings
    ]


async def orders_alone(rig: Rig, batch: ShootBatch) -> Measurement:
    """Orders one after the other: each is sent when the one before it is bound. `moments` are their latencies."""
    shoots, messages = requests(rig, batch)
    before = await usage(rig)
    target = await StreamTarget.ahead(rig, "BINDINGS", batch.count)
    stream = rig.subjects.stream("BINDINGS")
    position = await rig.bus.position(stream)
    subjects, latencies = [f"{rig.subjects.prefix}.binding.>"], list[float]()
    async with (
        rig.bus.follow(stream, subjects, after_sequence=position.sequence, headers_only=True) as follower,
        measuring(rig, batch.count) as measurement,
    ):
        began = time.monotonic()
        for shoot, message in zip(shoots, messages, strict=True):
            sent_at = time.monotonic()
            await rig.bus.publish(message)
            await _bound(follower, shoot.key.name)
            latencies.append(time.monotonic() - sent_at)
        measurement.seconds = time.monotonic() - began
    measurement.moments = latencies
    await check_bound(rig, shoots, before, target)
    return measurement


async def _bound(follower: Follower, name: str) -> None:
    """Wait for the binding of one shoot. Raises BenchFailed when it does not come."""
    try:
        async with asyncio.timeout(BINDING_TIMEOUT_SECONDS):
            async for event in follower:
                if isinstance(event, StreamMessage) and event.subject.rsplit(".", 1)[1] == name:
                    return
    except TimeoutError as error:
        raise BenchFailed(f"{name} is not bound after {BINDING_TIMEOUT_SECONDS:g} s") from error
    raise BenchFailed(f"the bindings ended before that of {name}")


@asynccontextmanager
async def _running(rig: Rig, role: str) -> AsyncGenerator[None]:
    await (start_scheduler(rig) if role == "scheduler" else rig.start(role))
    yield
    await rig.stop(role)


async def _nothing() -> None:
    pass
