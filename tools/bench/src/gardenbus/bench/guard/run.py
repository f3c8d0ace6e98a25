"""A run of the guard: groups of scenarios, each measured once, and those with a loss beside the figures' commit."""

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import msgspec

from gardenbus.bench.guard import sampler
from gardenbus.bench.guard.assessment import REST_UNIT, Lost, ScenarioResult, assess, confirmed
from gardenbus.bench.guard.baseline import Baseline
from gardenbus.bench.guard.baseline import measured as figures_of
from gardenbus.bench.guard.loads import UNITS as LOAD_UNITS
from gardenbus.bench.guard.loads import measure_loads, with_pipe_of_stream
from gardenbus.bench.guard.placements import UNITS as PLACEMENT_UNITS
from gardenbus.bench.guard.placements import measure_placements
from gardenbus.bench.guard.readings import ScenarioReading, least_of_turns, pooled
from gardenbus.bench.guard.rest import REST, measure_rest
from gardenbus.bench.guard.turns import Turns
from gardenbus.bench.harness.retries import AnnouncedTwice, BenchFailed
from gardenbus.common.errors import GardenbusError

TURNS = 3


class Group(NamedTuple):
    """Scenarios that share servers, by name with the unit of each, and who measures them: given a folder of its own."""

    units: Mapping[str, str]
    measure: Callable[["Group", Path], Awaitable[Sequence[ScenarioReading]]]


GroupsReader = Callable[[Sequence[str]], Awaitable[Sequence[ScenarioReading]]]
"""Readings of all scenarios of some groups."""


class ScenarioOutcome(NamedTuple):
    """A scenario's reading, and what came of it."""

    reading: ScenarioReading
    result: ScenarioResult
    baseline: Baseline
    """Figures that it was compared with: the file's, or its commit's on this machine."""


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
    """Readings of the scenarios of one group; each has a failure when they come to nothing.

    Where servers on a busy machine had something announced twice it is measured again, once.
    """
    try:
        try:
            readings = await _readings(group)
        except AnnouncedTwice as error:
            sys.stderr.write(f"{', '.join(group.units)}: {error}; measured again\n")
            readings = await _readings(group)
    except (BenchFailed, GardenbusError, ProcessLookupError) as error:
        return [ScenarioReading(scenario=name, unit=unit, failure=str(error)) for name, unit in group.units.items()]
    missing = {*group.units} - {reading.scenario for reading in readings}
    return [*readings, *(ScenarioReading(scenario=name, failure="it was not measured") for name in sorted(missing))]


async def _readings(group: Group) -> Sequence[ScenarioReading]:
    with tempfile.TemporaryDirectory(prefix="gardenbus-guard-") as folder, _sampled(Path(folder)):
        return await group.measure(group, Path(folder))


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


ReferenceReader = Callable[[str], Awaitable[Sequence[ScenarioReading]]]
"""Readings of a group, of the commit that the figures are of. Raises BenchFailed."""


async def guarded(
    names: Sequence[str], baseline: Baseline, reference: ReferenceReader, *, measure: GroupsReader = measured
) -> list[ScenarioOutcome]:
    """Measure and assess. While something seems lost, the figures' commit and this one are measured here by turns.

    Only what is worse than the file *and* than that commit here and now, each time, is a loss.
    """
    outcomes: list[ScenarioOutcome] = []
    for name in names:
        compared = [_Comparison(each, baseline) for each in await measure([name])]
        for measures_reference in (True, False, True):
            if not any(isinstance(each.result, Lost) for each in compared):
                break
            whose = f"{baseline.commit[:12]} is measured here" if measures_reference else "measured once more"
            sys.stderr.write(f"{name}: something is worse; {whose}\n")
            found = await (_of_reference(name, baseline, reference) if measures_reference else measure([name]))
            readings = {each.scenario: each for each in found}
            for each in compared:
                if each.scenario in readings:
                    each.add(readings[each.scenario], of_reference=measures_reference)
        outcomes += [each.outcome for each in compared]
    return outcomes


async def _of_reference(name: str, baseline: Baseline, reference: ReferenceReader) -> list[ScenarioReading]:
    """Readings of the figures' commit by this machine; none where there are none."""
    try:
        return [each for each in await reference(name) if each.turns and not each.failure]
    except BenchFailed as error:
        sys.stderr.write(f"{baseline.commit[:12]} could not be measured here, so the file alone counts: {error}\n")
        return []


class _Comparison:
    """Readings of one scenario, and those of the figures' commit on this machine, as far as they are measured."""

    def __init__(self, reading: ScenarioReading, baseline: Baseline) -> None:
        self.scenario = reading.scenario
        self._baseline = baseline
        self._readings = [reading]
        self._here: list[ScenarioReading] = []
        self.result = assess(reading, baseline)

    def add(self, reading: ScenarioReading, *, of_reference: bool) -> None:
        """Compare anew with one more reading, where something seemed lost so far."""
        if isinstance(self.result, Lost):
            (self._here if of_reference else self._readings).append(reading)
            self.result = confirmed(list(self._results()))

    @property
    def outcome(self) -> ScenarioOutcome:
        """Outcome of all that was measured, with all turns."""
        return ScenarioOutcome(reduce(pooled, self._readings), self.result, self._baseline_of(self._here))

    def _results(self) -> Iterator[ScenarioResult]:
        """Results of each reading with the file, of each pair, of all turns together, and of the least ones."""
        for reading in self._readings:
            yield assess(reading, self._baseline)
            for reference in self._here:
                yield assess(reading, self._baseline_of([reference]))
        all_turns = reduce(pooled, self._readings)
        if self._here:
            here = least_of_turns(reduce(pooled, self._here))
            yield assess(least_of_turns(all_turns), self._baseline_of([here]))
        yield assess(all_turns, self._baseline_of(self._here))

    def _baseline_of(self, here: Sequence[ScenarioReading]) -> Baseline:
        """The file's figures, with those of readings of its commit on this machine."""
        if not here:
            return self._baseline
        measured_here = figures_of(reduce(pooled, here))
        good = self._baseline.scenarios.get(self.scenario)
        processes = {**(good.processes if good else {}), **measured_here.processes}
        scenario = msgspec.structs.replace(measured_here, processes=processes)
        return msgspec.structs.replace(self._baseline, scenarios={**self._baseline.scenarios, self.scenario: scenario})
