"""Plug-in: shoots of one profile while those of another wait for a plug-in that never replies. Against them alone."""

import asyncio

import msgspec

from gardenbus.bench.bare.services import SCHEDULING_CONSUMER
from gardenbus.bench.comparison import Measurement, ScenarioTarget, ScenarioTask, alternated, compared, parameters
from gardenbus.bench.harness.loading import BenchLandscape, announced, create, create_pending
from gardenbus.bench.harness.measurement import pause_consumer, write_json
from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.harness.rig import Rig, a_rig
from gardenbus.bench.manifests.shoots import names, shoot
from gardenbus.bench.scenarios.scheduling import CONFIGURATION, bind_queued, prepare
from gardenbus.bench.stats import ScenarioStats
from gardenbus.common.api.document import Document
from gardenbus.embedded.configurations import DEFAULT_SCHEDULER_CONFIGURATION

HELD = "held"
"""The scheduler whose profile has the plug-in, and the plug-in's own name."""

LEAST_RATIO = 0.9
REQUEST_SECONDS = 60.0
_HELD_TO_OTHERS = 10
_PURPOSES = ("evaluation", "development", "production")
"""A class each: what a plug-in is requested about differs by them."""

_PROFILE: Document = {
    "schedulerName": HELD,
    "plugins": {"score": {"enabled": [{"name": f"Remote/{HELD}"}]}},
    "pluginConfig": [{"name": f"Remote/{HELD}", "args": {"deadlineMs": 1000, "onError": "Fail"}}],
}
_HEAD: Document = {name: DEFAULT_SCHEDULER_CONFIGURATION[name] for name in ("apiVersion", "kind")}


async def measure(task: ScenarioTask) -> ScenarioStats:
    """Rate at which the others are bound beside the plug-in that hangs, and without it."""
    count = max(len(_PURPOSES), task.size.shoots // _HELD_TO_OTHERS)
    is_requested = asyncio.Event()

    def take(_body: bytes) -> None:
        is_requested.set()

    async def bound(prefix: str, *profiles: Document) -> Measurement:
        is_requested.clear()
        configuration = {**_HEAD, "profiles": [{}, *profiles]}
        write_json(rig.directory.config / CONFIGURATION, configuration)
        await rig.start("scheduler", "--config", str(rig.directory.config / CONFIGURATION))
        await pause_consumer(rig, "QUEUES", SCHEDULING_CONSUMER)
        pending = await create_pending(rig, prefix, task.size.shoots, "uniform", task.progress)
        if profiles:
            await _hold(rig, f"{prefix}-held", count)
            await _requested(is_requested)
        measurement = await bind_queued(rig, pending)
        await rig.stop("scheduler")
        return measurement

    async with a_rig(task.durability) as rig:
        await prepare(rig, BenchLandscape(task.size.seeds, task.size.placed), task.progress)
        await rig.bus.subscribe(rig.subjects.plugin(HELD), HELD, take)
        pairs = await alternated(task, lambda run: bound(f"p{run}", _PROFILE), lambda run: bound(f"b{run}"))
    target = ScenarioTarget(f"≥ {LEAST_RATIO:g} of the rate without the plug-in", LEAST_RATIO)
    stats = compared(
        task, pairs, target, latency_of="from the first fetch to the binding announced, all queued at once"
    )
    return msgspec.structs.replace(stats, parameters=parameters(task, {"held": count}))


async def _requested(is_requested: asyncio.Event) -> None:
    """Wait until the plug-in is requested: else the others may be bound before it is at all. Raises BenchFailed."""
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            await is_requested.wait()
    except TimeoutError as error:
        raise BenchFailed(f"the plug-in has not been requested within {REQUEST_SECONDS:g} s") from error


async def _hold(rig: Rig, prefix: str, count: int) -> None:
    """Create shoots that wait for the plug-in, and go on waiting while the scheduler serves their profile."""
    held = [_of_held(number, shoot(name, number, "uniform")) for number, name in enumerate(names(prefix, count))]
    await create(rig, held)
    await announced(rig)


def _of_held(number: int, document: Document) -> Document:
    document["spec"] |= {"schedulerName": HELD, "purpose": _PURPOSES[number % len(_PURPOSES)]}
    return document
