"""Intake and the whole way: Shoots sent to `garden.apply`, until they are stored and queued, or until they are bound.

What is sent for the intake is held back until all of it is there; for the whole way services work while it is sent.
"""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable

import msgspec

from gardenbus.apiserver.app import CONSUMER as REQUESTS_CONSUMER
from gardenbus.bench.comparison import Measurement, ReportProgress, ScenarioTarget, ScenarioTask, alternated, compared
from gardenbus.bench.harness.loading import BenchLandscape, StoredShoot
from gardenbus.bench.harness.measurement import (
    StreamTarget,
    jetstream_request,
    measure_released,
    measuring,
    pause_consumer,
)
from gardenbus.bench.harness.rig import Rig, a_rig
from gardenbus.bench.harness.verification import check_bound, check_stored, usage
from gardenbus.bench.manifests.shoots import names, shoot
from gardenbus.bench.scenarios.scheduling import BARE, ShootBatch, measure_bare, prepare, start_scheduler
from gardenbus.bench.stats import ScenarioStats, median_of
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.bus import Message

SENT_TOGETHER = 500


def requests(rig: Rig, batch: ShootBatch) -> tuple[list[StoredShoot], list[Message]]:
    """Shoots to be created, and the request message of each."""
    documents: list[Document] = [
        shoot(name, number, batch.mix) for number, name in enumerate(names(batch.prefix, batch.count))
    ]
    shoots = [
        StoredShoot(ObjectKey("shoot", each["metadata"]["namespace"], each["metadata"]["name"]), "")
        for each in documents
    ]
    return shoots, [Message(rig.subjects.apply, encode(each)) for each in documents]


async def send(rig: Rig, messages: list[Message], progress: ReportProgress) -> None:
    """Send requests as fast as they are accepted."""
    for start in range(0, len(messages), SENT_TOGETHER):
        await rig.bus.publish_many(messages[start : start + SENT_TOGETHER])
        progress("requests", min(start + SENT_TOGETHER, len(messages)), len(messages))


async def apply_shoots(
    rig: Rig, batch: ShootBatch, progress: ReportProgress, start: Callable[[], Awaitable[None]]
) -> Measurement:
    """Have requests taken in as `take_in` does, and forget what is queued."""
    _, measurement = await take_in(rig, batch, progress, start)
    await jetstream_request(rig, f"STREAM.PURGE.{rig.subjects.stream('QUEUES')}")
    return measurement


async def take_in(
    rig: Rig, batch: ShootBatch, progress: ReportProgress, start: Callable[[], Awaitable[None]]
) -> tuple[list[StoredShoot], Measurement]:
    """Send requests that are held back, start who takes them, let them go, and check what is stored and queued."""
    await pause_consumer(rig, "REQUESTS", REQUESTS_CONSUMER)
    shoots, messages = requests(rig, batch)
    await send(rig, messages, progress)
    await start()
    target = await StreamTarget.ahead(rig, "QUEUES", batch.count)
    measurement = await measure_released(rig, "REQUESTS", REQUESTS_CONSUMER, target, batch.count)
    await check_stored(rig, shoots, target)
    return shoots, measurement


async def apply_bare(rig: Rig, batch: ShootBatch, progress: ReportProgress) -> Measurement:
    """The same by a process that stores what comes as it is."""
    measurement = await apply_shoots(rig, batch, progress, lambda: rig.start("bare", "intake", module=BARE))
    await rig.stop("bare")
    return measurement


async def apply_while_running(rig: Rig, batch: ShootBatch, progress: ReportProgress) -> Measurement:
    """Requests sent while a process stores them as they are: the first half of what `send_through` measures."""
    await rig.start("bare", "intake", module=BARE)
    shoots, messages = requests(rig, batch)
    target = await StreamTarget.ahead(rig, "QUEUES", batch.count)
    measurement = await sent(rig, batch, messages, target, progress)
    await check_stored(rig, shoots, target)
    await jetstream_request(rig, f"STREAM.PURGE.{rig.subjects.stream('QUEUES')}")
    await rig.stop("bare")
    return measurement


async def measure_apply(task: ScenarioTask) -> ScenarioStats:
    """The apiserver against fetch → put → outbox → announce."""
    size = task.size

    async def product(run: int) -> Measurement:
        async def nothing_to_start() -> None:
            pass

        await rig.start("apiserver")
        measurement = await apply_shoots(rig, ShootBatch(f"p{run}", size.shoots), task.progress, nothing_to_start)
        await rig.stop("apiserver")
        return measurement

    async with a_rig(task.durability) as rig:
        await prepare(rig, BenchLandscape(size.seeds, size.placed), task.progress)
        pairs = await alternated(
            task, product, lambda run: apply_bare(rig, ShootBatch(f"b{run}", size.shoots), task.progress)
        )
    return compared(
        task,
        pairs,
        ScenarioTarget("≥ 0.6 of the bare intake", 0.6),
        latency_of="from the first fetch to the shoot stored and queued, all sent at once",
    )


async def measure_stream(task: ScenarioTask) -> ScenarioStats:
    """Requests in, bindings out, all services at work, against the slower of the two bare pipes.

    Who sends requests works besides the product, and so it does besides the bare intake.
    """
    size = task.size
    apply_measurements: list[Measurement] = []
    schedulings: list[Measurement] = []

    async def product(run: int) -> Measurement:
        await rig.start("apiserver")
        await start_scheduler(rig)
        measurement = await send_through(rig, ShootBatch(f"p{run}", size.shoots), task.progress)
        await rig.stop("apiserver")
        await rig.stop("scheduler")
        return measurement

    async def bare(run: int) -> Measurement:
        apply_measurements.append(await apply_while_running(rig, ShootBatch(f"i{run}", size.shoots), task.progress))
        schedulings.append(await measure_bare(rig, ShootBatch(f"b{run}", size.shoots), size.seeds, task.progress))
        return _slower(apply_measurements[-1], schedulings[-1])

    async with a_rig(task.durability) as rig:
        await prepare(rig, BenchLandscape(size.seeds, size.placed), task.progress)
        pairs = await alternated(task, product, bare)
    stats = compared(
        task,
        pairs,
        ScenarioTarget("≥ 0.6 of the slower bare pipe", 0.6),
        latency_of="from the first request sent to the binding, all sent at once",
    )
    more = {
        "bare_intake_per_s": round(median_of(measurement.rate for measurement in apply_measurements) or 0.0, 1),
        "bare_scheduling_per_s": round(median_of(measurement.rate for measurement in schedulings) or 0.0, 1),
    }
    return msgspec.structs.replace(stats, values={**stats.values, **more})


def _slower(apply_measurement: Measurement, scheduling: Measurement) -> Measurement:
    """The slower of the bare pipes, at the cost of both: a shoot has to go through the one and the other."""
    slower = min((apply_measurement, scheduling), key=lambda measurement: measurement.rate)
    costs = [(name if name != "bare" else "bare-intake", cpu) for name, cpu in apply_measurement.cpu_s.items()]
    costs += [(name if name != "bare" else "bare-schedule", cpu) for name, cpu in scheduling.cpu_s.items()]
    both: defaultdict[str, float] = defaultdict(float)
    for name, cpu in costs:
        both[name] += cpu
    slower.cpu_s = both
    return slower


async def send_through(rig: Rig, batch: ShootBatch, progress: ReportProgress) -> Measurement:
    """Send requests to running services, and wait for the last binding."""
    shoots, messages = requests(rig, batch)
    before = await usage(rig)
    target = await StreamTarget.ahead(rig, "BINDINGS", batch.count)
    measurement = await sent(rig, batch, messages, target, progress)
    await check_bound(rig, shoots, before, target)
    return measurement


async def sent(
    rig: Rig, batch: ShootBatch, messages: list[Message], target: StreamTarget, progress: ReportProgress
) -> Measurement:
    """From the first request sent until a stream has come as far as `mark`."""
    async with measuring(rig, batch.count) as measurement:
        began = time.monotonic()
        await send(rig, messages, progress)
        measurement.seconds = await target.reached() - began
    measurement.moments = [at - began for at in target.moments]
    return measurement
