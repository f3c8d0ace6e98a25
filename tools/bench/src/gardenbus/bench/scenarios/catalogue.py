"""All scenarios: what each measures, at which sizes, and with which function."""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from gardenbus.bench.comparison import ScenarioSize, ScenarioTask
from gardenbus.bench.options import ScenarioName
from gardenbus.bench.scenarios import (
    apply,
    fairness,
    footprint,
    identities,
    landscapes,
    latency,
    placement,
    plugin,
    scheduling,
)
from gardenbus.bench.stats import ScenarioStats


class BenchScenario(NamedTuple):
    """A scenario with its sizes: the targets hold for `full`; `reduced` takes about a minute."""

    title: str
    full: ScenarioSize
    reduced: ScenarioSize
    measure: Callable[[ScenarioTask], Awaitable[ScenarioStats]]


SCENARIOS: Mapping[ScenarioName, BenchScenario] = {
    ScenarioName.SCHEDULING: BenchScenario(
        "Pending shoots in the queue, until the last binding is announced",
        ScenarioSize(seeds=1000, placed=100_000, shoots=20_000, runs=5),
        ScenarioSize(seeds=1000, placed=10_000, shoots=4000, runs=3),
        scheduling.measure,
    ),
    ScenarioName.APPLY: BenchScenario(
        "garden.apply messages of one Shoot each, until they are stored and queued",
        ScenarioSize(seeds=1000, placed=0, shoots=20_000, runs=5),
        ScenarioSize(seeds=100, placed=0, shoots=2000, runs=3),
        apply.measure_apply,
    ),
    ScenarioName.STREAM: BenchScenario(
        "Both at once: new shoots sent while all services run, until the last binding is announced",
        ScenarioSize(seeds=1000, placed=100_000, shoots=20_000, runs=5),
        ScenarioSize(seeds=1000, placed=0, shoots=2000, runs=2),
        apply.measure_stream,
    ),
    ScenarioName.LATENCY: BenchScenario(
        "From garden.apply published to garden.binding received, open loop",
        ScenarioSize(seeds=1000, placed=100_000, shoots=12_000, runs=5),
        ScenarioSize(seeds=1000, placed=0, shoots=1000, runs=2),
        latency.measure,
    ),
    ScenarioName.FAIRNESS: BenchScenario(
        "A shoot of one project each second, while very many of another are queued",
        ScenarioSize(seeds=1000, placed=0, shoots=50_000, runs=3),
        ScenarioSize(seeds=1000, placed=0, shoots=10_000, runs=1),
        fairness.measure,
    ),
    ScenarioName.PLUGIN: BenchScenario(
        "Shoots of one profile, while those of another wait for a plug-in that hangs",
        ScenarioSize(seeds=1000, placed=0, shoots=20_000, runs=5),
        ScenarioSize(seeds=1000, placed=0, shoots=4000, runs=2),
        plugin.measure,
    ),
    ScenarioName.FLAT: BenchScenario(
        "Many seeds and placed shoots, against few",
        ScenarioSize(seeds=10_000, placed=1_000_000, shoots=20_000, runs=3),
        ScenarioSize(seeds=10_000, placed=100_000, shoots=2000, runs=2),
        landscapes.measure_flat,
    ),
    ScenarioName.MEMORY: BenchScenario(
        "The scheduler's resident memory, and what a placed shoot adds to it",
        ScenarioSize(seeds=10_000, placed=100_000, shoots=10_000, runs=3),
        ScenarioSize(seeds=10_000, placed=20_000, shoots=1000, runs=1),
        footprint.measure_memory,
    ),
    ScenarioName.START: BenchScenario(
        "The scheduler's start, until it is ready",
        ScenarioSize(seeds=10_000, placed=1_000_000, shoots=0, runs=5),
        ScenarioSize(seeds=10_000, placed=10_000, shoots=0, runs=3),
        footprint.measure_start,
    ),
    ScenarioName.PLACEMENT: BenchScenario(
        "Placements over many member clusters, until the last of their bindings is announced",
        ScenarioSize(seeds=2000, placed=0, shoots=3000, runs=3),
        ScenarioSize(seeds=500, placed=0, shoots=450, runs=2),
        placement.measure,
    ),
    ScenarioName.IDENTITIES: BenchScenario(
        "Everybody proves who they are, without and with TLS, against `--insecure`",
        ScenarioSize(seeds=1000, placed=20_000, shoots=20_000, runs=5),
        ScenarioSize(seeds=1000, placed=0, shoots=2000, runs=3),
        identities.measure,
    ),
}
