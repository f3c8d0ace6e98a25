"""Placements over member clusters; each turn has servers of its own, so that each finds the same."""

from collections.abc import Mapping

from gardenbus.bench.comparison import Measurement, ScenarioSize, no_progress
from gardenbus.bench.guard.redis_functions import CallLog
from gardenbus.bench.guard.turns import Turns
from gardenbus.bench.guard.yardsticks import yardsticks
from gardenbus.bench.scenarios.placement import check_placed, fleet_of, place_bare_on, place_queued, prepared
from gardenbus.embedded.durability import Durability

PLACEMENT = "placement"
UNITS: Mapping[str, str] = {PLACEMENT: "binding"}
SIZE = ScenarioSize(seeds=120, placed=0, shoots=90, runs=1)


async def measure_placements(turns: Turns, count: int) -> None:
    """Take `count` turns, and the bare pipe once. Raises BenchFailed."""
    fleet = fleet_of(SIZE)
    for _ in range(count):
        async with prepared(fleet, Durability.PROCESS, no_progress) as rig, yardsticks(rig) as runner:

            async def placed() -> Measurement:
                measurement = await place_queued(rig, fleet)
                await check_placed(rig, fleet)
                return measurement

            await turns.take(PLACEMENT, rig, runner, placed)
    async with prepared(fleet, Durability.PROCESS, no_progress) as rig:
        log = CallLog(rig)
        await log.begin()
        await turns.take_logged(PLACEMENT, rig, log, lambda: place_queued(rig, fleet))
    async with prepared(fleet, Durability.PROCESS, no_progress) as rig, yardsticks(rig) as runner:
        await turns.take_bare(PLACEMENT, rig, runner, lambda: place_bare_on(rig, fleet))
