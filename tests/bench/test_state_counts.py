"""Cost of counting shoots by state: measured on a real Redis, with the store's functions and without the counting."""

import re

import pytest

from gardenbus.bench.state_counts import STEPS, StepCosts, library_without_counts, line, measured
from gardenbus.common.adapters.redis.function_library import LIBRARY


def test_the_counting_is_cut_out_of_the_functions_and_nothing_else() -> None:
    without = library_without_counts()
    assert without.version != LIBRARY.version
    calls = re.compile(r"^(?!local function).*\bmove_shoot_count\(", re.MULTILINE)
    assert len(calls.findall(LIBRARY.source)) - len(calls.findall(without.source)) == 1, "the one of bind"
    assert without.source.count("\n") == LIBRARY.source.count("\n") + 2, "two functions that end at once"


@pytest.mark.slow
async def test_each_step_is_measured_with_and_without() -> None:
    found = await measured(20, 1)
    assert tuple(found) == STEPS
    assert all(len(costs.counted) == len(costs.uncounted) == 1 for costs in found.values())


def test_a_line_has_the_least_and_the_median_ratio() -> None:
    costs = StepCosts(counted=(11.0, 30.0, 12.0), uncounted=(10.0, 10.0, 10.0))
    assert line("bind", costs) == (
        "bind        11.0 µs with,    10.0 µs without, ratio 1.100 (median of the rounds: 1.200)\n"
    )
