"""A run of the guard: groups of scenarios, each measured once, and those with a loss beside the figures' commit."""

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from gardenbus.bench.guard import sampler
from gardenbus.bench.guard.assessment import REST_UNIT, Lost, ScenarioResult, assess, confirmed
from gardenbus.bench.guard.baseline import Baseline, ScenarioBaseline
from gardenbus.bench.guard.baseline import measured as figures_of
from gardenbus.bench.guard.loads import UNITS as LOAD_UNITS
from gardenbus.bench.guard.loads import measure_loads, with_pipe_of_stream
from gardenbus.bench.guard.placements import UNITS as PLACEMENT_UNITS
from gardenbus.bench.guard.placements import measure_placements
from gardenbus.bench.guard.readings import ScenarioReading, pooled
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
    """Measure and assess. What seems lost is compared with the figures' commit on this machine, and measured again.

    Only what is worse than the file *and* than that commit here and now, both times, is a loss.
    """
    outcomes: list[ScenarioOutcome] = []
    for name in names:
        first = {each.scenario: _outcome(each, baseline) for each in await measure([name])}
        if _any_lost(first):
            sys.stderr.write(f"{name}: something is worse; {baseline.commit[:12]} is measured here\n")
            here = await _measured_here(name, baseline, reference)
            first = {scenario: _unless_held(outcome, here) for scenario, outcome in first.items()}
            if _any_lost(first):
                sys.stderr.write(f"{name}: worse than that, too; measured once more\n")
                for again in await measure([name]):
                    first[again.scenario] = _of_both(first[again.scenario], again, baseline, here)
        outcomes += first.values()
    return outcomes


def _outcome(reading: ScenarioReading, baseline: Baseline) -> ScenarioOutcome:
    return ScenarioOutcome(reading, assess(reading, baseline), baseline)


def _any_lost(outcomes: Mapping[str, ScenarioOutcome]) -> bool:
    return any(isinstance(outcome.result, Lost) for outcome in outcomes.values())


async def _measured_here(name: str, baseline: Baseline, reference: ReferenceReader) -> Baseline:
    """Figures of the same commit by this machine; those of the file where there are none, as of a younger process."""
    try:
        readings = [each for each in await reference(name) if each.turns and not each.failure]
    except BenchFailed as error:
        sys.stderr.write(f"{baseline.commit[:12]} could not be measured here, so the file alone counts: {error}\n")
        return baseline
    of_here = {each.scenario: _with_younger(each, figures_of(each), baseline) for each in readings}
    return msgspec.structs.replace(baseline, scenarios={**baseline.scenarios, **of_here})


def _with_younger(reading: ScenarioReading, here: ScenarioBaseline, baseline: Baseline) -> ScenarioBaseline:
    """Figures with those of the file for processes that the commit did not have yet."""
    good = baseline.scenarios.get(reading.scenario)
    return msgspec.structs.replace(here, processes={**(good.processes if good else {}), **here.processes})


def _unless_held(outcome: ScenarioOutcome, here: Baseline) -> ScenarioOutcome:
    """The outcome against figures of this machine, where the file's say that something is lost."""
    if not isinstance(outcome.result, Lost):
        return outcome
    result = confirmed([outcome.result, assess(outcome.reading, here)])
    return ScenarioOutcome(outcome.reading, result, here)


def _of_both(first: ScenarioOutcome, again: ScenarioReading, baseline: Baseline, here: Baseline) -> ScenarioOutcome:
    if not isinstance(first.result, Lost):
        return first
    both = pooled(first.reading, again)
    results = [first.result, assess(again, baseline), assess(again, here), assess(both, here)]
    return ScenarioOutcome(both, confirmed(results), here)
