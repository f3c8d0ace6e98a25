"""Runs a scenario and completes its figures."""

import msgspec

from gardenbus.cli.bench.catalogue import SCENARIOS
from gardenbus.cli.bench.figures import Figures, machine
from gardenbus.cli.bench.manifests import shoot
from gardenbus.cli.bench.results import Progress, Size, Task
from gardenbus.cli.bench.wishes import ScenarioName, Wish
from gardenbus.common.resources.document import encode


def size_of(scenario: ScenarioName, wish: Wish) -> Size:
    """The size to measure at."""
    own = SCENARIOS[scenario].reduced if wish.reduced else SCENARIOS[scenario].full
    asked = {name: getattr(wish, name) for name in ("seeds", "placed", "shoots", "runs")}
    return msgspec.structs.replace(own, **{name: number for name, number in asked.items() if number is not None})


async def run_scenario(scenario: ScenarioName, wish: Wish, progress: Progress) -> Figures:
    """Measure one scenario on servers of its own. Raises BenchFailed when it does not come about."""
    described = machine()
    task = Task(scenario.value, size_of(scenario, wish), wish.durability, progress)
    figures = await SCENARIOS[scenario].measure(task)
    parameters = {**figures.parameters, "object_bytes": len(encode(shoot("example-0000000", 0, "uniform")))}
    return msgspec.structs.replace(figures, parameters=parameters, machine=described)
