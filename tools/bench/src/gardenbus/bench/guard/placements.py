"""Placements over member clusters; each turn has servers of its own, so that each finds the same."""

from collections.abc import Mapping

from gardenbus.bench.comparison import Measurement, ScenarioSize, ScenarioTask
from gardenbus.bench.guard.redis_functions import CallLog
from gardenbus.bench.guard.turns import Turns
from gardenbus.bench.guard.yardsticks import yardsticks
from gardenbus.bench.scenarios.placement import check_placed, place_bare_on, place_queued, prepared
from gardenbus.embedded.durability import Durability

PLACEMENT = "placement"
UNITS: Mapping[str, str] = {PLACEMENT: "binding"}
SIZE = ScenarioSize(seeds=120, placed=0, shoots=90, runs=1)


async def measure_placements(turns: Turns, count: int) -> None:
    """Take `count` turns, and the bare pipe once. Raises BenchFailed."""
    task = ScenarioTask(PLACEMENT, SIZE, Durability.PROCESS, _quiet)
    for _ in range(count):
        async with prepared(task) as rig, yardsticks(rig) as runner:

            async def placed() -> Measurement:
                measurement = await place_queued(rig, task)
                await check_placed(rig, task)
                return measurement

            await turns.take(PLACEMENT, rig, runner, placed)
    async with prepared(task) as rig:
        log = CallLog(rig)
        await log.begin()
        await turns.take_logged(PLACEMENT, rig, log, lambda: place_queued(rig, task))
    async with prepared(task) as rig, yardsticks(rig) as runner:
        await turns.take_bare(PLACEMENT, rig, runner, lambda: place_bare_on(rig, task))


def _quiet(_name: str, _done: int, _of: int) -> None:
    pass
