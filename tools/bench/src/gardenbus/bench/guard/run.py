"""A run of the guard: groups of scenarios, each measured once, and those with a loss a second time."""

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gardenbus.bench.guard import sampler
from gardenbus.bench.guard.assessment import REST_UNIT, Lost, ScenarioResult, assess, confirmed
from gardenbus.bench.guard.baseline import Baseline
from gardenbus.bench.guard.loads import UNITS as LOAD_UNITS
from gardenbus.bench.guard.loads import measure_loads, with_pipe_of_stream
from gardenbus.bench.guard.placements import UNITS as PLACEMENT_UNITS
from gardenbus.bench.guard.placements import measure_placements
from gardenbus.bench.guard.readings import ScenarioReading, pooled
from gardenbus.bench.guard.rest import REST, measure_rest
from gardenbus.bench.guard.turns import Turns
from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.common.errors import GardenbusError

TURNS = 3


class Group(NamedTuple):
    """Scenarios that share servers, by name with the unit of each, and who measures them: given a folder of its own."""

    units: Mapping[str, str]
    measure: Callable[["Group", Path], Awaitable[Sequence[ScenarioReading]]]


class ScenarioOutcome(NamedTuple):
    """A scenario's reading, and what came of it."""

    reading: ScenarioReading
    result: ScenarioResult


async def _loads(group: Group, folder: Path) -> Sequence[ScenarioReading]:
    turns = Turns(folder / "samples")
    await measure_loads(turns, TURNS)
    return with_pipe_of_stream(turns.readings(group.units))


async def _placements(group: Group, folder: Path) -> Sequence[ScenarioReading]:
    turns = Turns(folder / "samples")
    await measure_placements(turns, TURNS)
    return turns.readings(group.units)


async def _rest(_: Group, folder: Path) -> Sequence[ScenarioReading]:
    return [await measure_rest(folder / "landscape", folder / "samples")]


GROUPS: Mapping[str, Group] = {
    "loads": Group(LOAD_UNITS, _loads),
    "placement": Group(PLACEMENT_UNITS, _placements),
    "rest": Group({REST: REST_UNIT}, _rest),
}
"""A weighted decision has its scenario in `loads` once there are such decisions."""


async def measured(names: Sequence[str]) -> list[ScenarioReading]:
    """Readings of all scenarios of some groups; one that came to nothing says why."""
    found: list[ScenarioReading] = []
    for name in names:
        began = time.monotonic()
        found += await measured_group(GROUPS[name])
        sys.stderr.write(f"{name}: measured in {time.monotonic() - began:.0f} s\n")
    return found


async def measured_group(group: Group) -> list[ScenarioReading]:
    """Readings of the scenarios of one group; each has a failure when they come to nothing."""
    with tempfile.TemporaryDirectory(prefix="gardenbus-guard-") as folder, _sampled(Path(folder)):
        try:
            readings = await group.measure(group, Path(folder))
        except (BenchFailed, GardenbusError, ProcessLookupError) as error:
            return [ScenarioReading(scenario=name, unit=unit, failure=str(error)) for name, unit in group.units.items()]
    missing = {*group.units} - {reading.scenario for reading in readings}
    return [*readings, *(ScenarioReading(scenario=name, failure="it was not measured") for name in sorted(missing))]


@contextlib.contextmanager
def _sampled(folder: Path) -> Generator[None]:
    """Have all Python processes that are started meanwhile sampled."""
    before = os.environ.get("PYTHONPATH")
    os.environ |= sampler.started_by(folder / "samples", folder / "starter")
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


async def guarded(names: Sequence[str], baseline: Baseline) -> list[ScenarioOutcome]:
    """Measure and assess; a group with a loss is measured again, and only what both times show is a loss."""
    outcomes: list[ScenarioOutcome] = []
    for name in names:
        first = {each.scenario: ScenarioOutcome(each, assess(each, baseline)) for each in await measured([name])}
        if any(isinstance(outcome.result, Lost) for outcome in first.values()):
            sys.stderr.write(f"{name}: something is worse; measured once more\n")
            for again in await measured([name]):
                first[again.scenario] = _of_both(first[again.scenario], again, baseline)
        outcomes += first.values()
    return outcomes


def _of_both(first: ScenarioOutcome, again: ScenarioReading, baseline: Baseline) -> ScenarioOutcome:
    if not isinstance(first.result, Lost):
        return first
    both = pooled(first.reading, again)
    return ScenarioOutcome(both, confirmed(first.result, assess(again, baseline), assess(both, baseline)))
