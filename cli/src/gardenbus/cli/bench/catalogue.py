"""The scenarios there are: what each asks, at which size, and who measures it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from gardenbus.cli.bench import intake, latency, scheduling
from gardenbus.cli.bench.figures import Figures
from gardenbus.cli.bench.results import Size, Task
from gardenbus.cli.bench.wishes import ScenarioName


class Scenario(NamedTuple):
    """A question with its answer's sizes: `full` is what the targets speak of, `reduced` for a look in a minute."""

    title: str
    full: Size
    reduced: Size
    measure: Callable[[Task], Awaitable[Figures]]


SCENARIOS: Mapping[ScenarioName, Scenario] = {
    ScenarioName.SCHEDULING: Scenario(
        "Pending shoots in the queue, until the last binding is announced",
        Size(seeds=1000, placed=100_000, shoots=20_000, runs=5),
        Size(seeds=1000, placed=10_000, shoots=4000, runs=3),
        scheduling.measure,
    ),
    ScenarioName.INTAKE: Scenario(
        "garden.apply messages of one Shoot each, until they are stored and queued",
        Size(seeds=1000, placed=0, shoots=20_000, runs=5),
        Size(seeds=100, placed=0, shoots=3000, runs=3),
        intake.measure_intake,
    ),
    ScenarioName.STREAM: Scenario(
        "Both at once: new shoots sent while all services run, until the last binding is announced",
        Size(seeds=1000, placed=100_000, shoots=20_000, runs=5),
        Size(seeds=1000, placed=0, shoots=3000, runs=3),
        intake.measure_stream,
    ),
    ScenarioName.LATENCY: Scenario(
        "From garden.apply published to garden.binding received, open loop",
        Size(seeds=1000, placed=100_000, shoots=12_000, runs=5),
        Size(seeds=1000, placed=0, shoots=1000, runs=3),
        latency.measure,
    ),
}
