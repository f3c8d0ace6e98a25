"""Runs a scenario and completes its stats."""

import msgspec

from gardenbus.bench.comparison import ReportProgress, ScenarioSize, ScenarioTask
from gardenbus.bench.manifests.shoots import shoot
from gardenbus.bench.options import BenchOptions, ScenarioName
from gardenbus.bench.scenarios.catalogue import SCENARIOS
from gardenbus.bench.stats import ScenarioStats, machine
from gardenbus.common.api.document import encode


def size_of(scenario: ScenarioName, options: BenchOptions) -> ScenarioSize:
    """The size to measure at."""
    own = SCENARIOS[scenario].reduced if options.reduced else SCENARIOS[scenario].full
    given = {name: getattr(options, name) for name in ("seeds", "placed", "shoots", "runs")}
    return msgspec.structs.replace(own, **{name: number for name, number in given.items() if number is not None})


async def run_scenario(scenario: ScenarioName, options: BenchOptions, progress: ReportProgress) -> ScenarioStats:
    """Measure one scenario on servers of its own. Raises BenchFailed."""
    described = machine()
    task = ScenarioTask(scenario.value, size_of(scenario, options), options.durability, progress, options.profile)
    stats = await SCENARIOS[scenario].measure(task)
    parameters = {**stats.parameters, "object_bytes": len(encode(shoot("example-0000000", 0, "uniform")))}
    return msgspec.structs.replace(stats, parameters=parameters, machine=described)
