"""Fairness: one project has very many shoots queued, another one orders one each second. Against the many alone."""

import asyncio
import time
from collections.abc import Sequence

import msgspec

from gardenbus.bench.bare.services import SCHEDULING_CONSUMER
from gardenbus.bench.comparison import Measurement, ScenarioTarget, ScenarioTask, alternated, compared, parameters
from gardenbus.bench.harness.loading import BenchLandscape, StoredShoot, announced, create, create_pending
from gardenbus.bench.harness.measurement import StreamTarget, measuring, pause_consumer, resume_consumer
from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.harness.rig import Rig, a_rig
from gardenbus.bench.harness.verification import check_bound, usage
from gardenbus.bench.manifests.shoots import NAMESPACE, basics, in_namespace, names, shoot
from gardenbus.bench.scenarios.scheduling import prepare, start_scheduler
from gardenbus.bench.stats import ScenarioStats, latencies
from gardenbus.common.api.document import encode
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.bus import Follower, Message, StreamMessage

OTHER = "garden-other"
PERIOD_SECONDS = 1.0
QUEUED_TO_AN_ORDER = 2_000
LEAST_ORDERS = 3
BINDING_TIMEOUT_SECONDS = 300.0
P99_MS, LEAST_RATIO = 1_000.0, 0.95


async def measure(task: ScenarioTask) -> ScenarioStats:
    """The other project's latencies, and how fast the many are bound beside it and alone."""
    orders = max(LEAST_ORDERS, task.size.shoots // QUEUED_TO_AN_ORDER)

    async def with_orders(run: int) -> Measurement:
        return await _measured(f"p{run}", orders)

    async def alone(run: int) -> Measurement:
        return await _measured(f"b{run}", 0)

    async def _measured(prefix: str, ordered: int) -> Measurement:
        await rig.start("apiserver")
        await start_scheduler(rig)
        await pause_consumer(rig, "QUEUES", SCHEDULING_CONSUMER)
        many = await create_pending(rig, prefix, task.size.shoots, "uniform", task.progress)
        measurement = await _bound_beside(rig, many, [f"{prefix}-{name}" for name in names("order", ordered)])
        for role in ("apiserver", "scheduler"):
            await rig.stop(role)
        return measurement

    async with a_rig(task.durability) as rig:
        await prepare(rig, BenchLandscape(task.size.seeds, task.size.placed), task.progress)
        await create(rig, [in_namespace(each, OTHER) for each in basics("uniform") if NAMESPACE in str(each)])
        await announced(rig)
        pairs = await alternated(task, with_orders, alone)
    target = ScenarioTarget(f"p99 ≤ {P99_MS:g} ms, the many at ≥ {LEAST_RATIO:g} of their rate alone", LEAST_RATIO)
    stats = compared(task, pairs, target, latency_of="from the moment an order was due to its binding received")
    moments = latencies([moment for pair in pairs for moment in pair.product.moments])
    return msgspec.structs.replace(
        stats,
        met=moments["p99"] <= P99_MS and (stats.ratio or 0.0) >= LEAST_RATIO,
        parameters=parameters(task, {"orders": orders, "period_seconds": PERIOD_SECONDS}),
    )


async def _bound_beside(rig: Rig, many: Sequence[StoredShoot], ordered: Sequence[str]) -> Measurement:
    """Let the many go, order one each period, and wait for all bindings; its rate is that of the many."""
    before = await usage(rig)
    target = await StreamTarget.ahead(rig, "BINDINGS", len(many) + len(ordered))
    stream = rig.subjects.stream("BINDINGS")
    position = await rig.bus.position(stream)
    async with rig.bus.follow(
        stream, [f"{rig.subjects.prefix}.binding.>"], after_sequence=position.sequence, headers_only=True
    ) as follower:
        receiving = asyncio.create_task(_received(follower, len(many) + len(ordered)))
        async with measuring(rig, len(many)) as measurement:
            began = time.monotonic()
            await resume_consumer(rig, "QUEUES", SCHEDULING_CONSUMER)
            await _order(rig, ordered, began)
            try:
                async with asyncio.timeout(BINDING_TIMEOUT_SECONDS):
                    bound_at = await receiving
            except TimeoutError as error:
                raise BenchFailed(f"a binding is missing after {BINDING_TIMEOUT_SECONDS:g} s") from error
            measurement.seconds = max(bound_at[NAMESPACE, each.key.name] for each in many) - began
    measurement.moments = [
        bound_at[OTHER, name] - began - number * PERIOD_SECONDS for number, name in enumerate(ordered)
    ]
    orders = [StoredShoot(ObjectKey("shoot", OTHER, name), "") for name in ordered]
    await check_bound(rig, [*many, *orders], before, target)
    return measurement


async def _order(rig: Rig, ordered: Sequence[str], began: float) -> None:
    """Send the requests when they are due, whatever has become of those before."""
    async with asyncio.TaskGroup() as group:
        for number, name in enumerate(ordered):
            await asyncio.sleep(max(0.0, began + number * PERIOD_SECONDS - time.monotonic()))
            request = Message(rig.subjects.apply, encode(in_namespace(shoot(name, number, "uniform"), OTHER)))
            group.create_task(_sent(rig, request))


async def _sent(rig: Rig, request: Message) -> None:
    await rig.bus.publish(request)


async def _received(follower: Follower, count: int) -> dict[tuple[str, str], float]:
    """Time when the binding of each shoot came, by its namespace and name."""
    came: dict[tuple[str, str], float] = {}
    async for event in follower:
        if isinstance(event, StreamMessage):
            namespace, name = event.subject.split(".")[-2:]
            came.setdefault((namespace, name), time.monotonic())
            if len(came) >= count:
                break
    return came
