"""The scenarios there are: what each asks, at which size, and who measures it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from gardenbus.cli.bench import (
    footprint,
    heartbeats,
    intake,
    landscapes,
    latency,
    placement,
    replicas,
    scheduling,
    waiting,
)
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
        Size(seeds=100, placed=0, shoots=2000, runs=3),
        intake.measure_intake,
    ),
    ScenarioName.STREAM: Scenario(
        "Both at once: new shoots sent while all services run, until the last binding is announced",
        Size(seeds=1000, placed=100_000, shoots=20_000, runs=5),
        Size(seeds=1000, placed=0, shoots=2000, runs=2),
        intake.measure_stream,
    ),
    ScenarioName.LATENCY: Scenario(
        "From garden.apply published to garden.binding received, open loop",
        Size(seeds=1000, placed=100_000, shoots=12_000, runs=5),
        Size(seeds=1000, placed=0, shoots=1000, runs=2),
        latency.measure,
    ),
    ScenarioName.FLAT: Scenario(
        "Many seeds and placed shoots, against few",
        Size(seeds=10_000, placed=1_000_000, shoots=20_000, runs=3),
        Size(seeds=10_000, placed=100_000, shoots=2000, runs=2),
        landscapes.measure_flat,
    ),
    ScenarioName.MIXED: Scenario(
        "200 classes, distances, taints, zones and networks, against one class",
        Size(seeds=1000, placed=100_000, shoots=20_000, runs=5),
        Size(seeds=1000, placed=0, shoots=2000, runs=2),
        landscapes.measure_mixed,
    ),
    ScenarioName.WAITING: Scenario(
        "Schedulable shoots while unschedulable ones wait, against none waiting",
        Size(seeds=1000, placed=100_000, shoots=20_000, runs=5),
        Size(seeds=1000, placed=0, shoots=2000, runs=2),
        waiting.measure_waiting,
    ),
    ScenarioName.WAKE: Scenario(
        "One seed becomes ready for all that wait, until the last of them is bound",
        Size(seeds=1000, placed=100_000, shoots=10_000, runs=5),
        Size(seeds=1000, placed=0, shoots=2000, runs=2),
        waiting.measure_wake,
    ),
    ScenarioName.REPLICAS: Scenario(
        "2 and 4 schedulers on one queue, against one",
        Size(seeds=1000, placed=100_000, shoots=20_000, runs=5),
        Size(seeds=1000, placed=0, shoots=3000, runs=2),
        replicas.measure,
    ),
    ScenarioName.HEARTBEATS: Scenario(
        "Gardenlets renew their Leases every 2 s; a few fall silent",
        Size(seeds=10_000, placed=0, shoots=0, runs=3),
        Size(seeds=2000, placed=0, shoots=0, runs=1),
        heartbeats.measure,
    ),
    ScenarioName.MEMORY: Scenario(
        "The scheduler's resident memory, and what a placed shoot adds to it",
        Size(seeds=10_000, placed=100_000, shoots=10_000, runs=3),
        Size(seeds=10_000, placed=20_000, shoots=1000, runs=1),
        footprint.measure_memory,
    ),
    ScenarioName.START: Scenario(
        "The scheduler's start, until it is ready",
        Size(seeds=10_000, placed=1_000_000, shoots=0, runs=5),
        Size(seeds=10_000, placed=10_000, shoots=0, runs=3),
        footprint.measure_start,
    ),
    ScenarioName.PLACEMENT: Scenario(
        "Placements over many member clusters, until the last of their bindings is announced",
        Size(seeds=2000, placed=0, shoots=3000, runs=3),
        Size(seeds=500, placed=0, shoots=450, runs=2),
        placement.measure,
    ),
}
