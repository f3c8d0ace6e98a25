"""Runs alternate, ratios are those of one run, sizes are what was requested, and people can read the outcome."""

from collections.abc import Awaitable, Callable, Mapping

import msgspec
import pytest
from rich.console import Console

from gardenbus.bench import report
from gardenbus.bench.comparison import (
    MeasuredPair,
    Measurement,
    ScenarioSize,
    ScenarioTarget,
    ScenarioTask,
    alternated,
    compared,
)
from gardenbus.bench.options import BenchOptions, ScenarioName
from gardenbus.bench.runner import size_of
from gardenbus.bench.scenarios.catalogue import SCENARIOS
from gardenbus.bench.stats import ScenarioStats
from gardenbus.embedded.durability import Durability


def untold(_name: str, _done: int, _of: int) -> None:
    pass


def a_task(runs: int = 3) -> ScenarioTask:
    return ScenarioTask("scheduling", ScenarioSize(10, 20, 100, runs), Durability.POWER, untold)


def a_span(seconds: float, count: int = 100, cpu_s: Mapping[str, float] | None = None) -> Measurement:
    measurement = Measurement(count)
    measurement.seconds = seconds
    measurement.moments = [seconds * number / count for number in range(1, count + 1)]
    measurement.cpu_s = cpu_s or {"scheduler": seconds / 2}
    measurement.rss_mb = {"scheduler": 80.0}
    return measurement


async def test_product_and_bare_pipe_take_turns_in_going_first() -> None:
    order: list[str] = []

    def measuring(name: str, seconds: float) -> Callable[[int], Awaitable[Measurement]]:
        async def measure(run: int) -> Measurement:
            order.append(f"{name}{run}")
            return a_span(seconds)

        return measure

    pairs = await alternated(a_task(), measuring("product", 2.0), measuring("bare", 1.0))
    assert order == ["product0", "bare0", "bare1", "product1", "product2", "bare2"]
    assert [(pair.product.seconds, pair.bare.seconds) for pair in pairs] == [(2.0, 1.0)] * 3


def test_the_ratio_is_the_median_of_the_runs_own_ratios() -> None:
    pairs = [
        MeasuredPair(a_span(2.0), a_span(1.0)),
        MeasuredPair(a_span(10.0), a_span(9.0)),
        MeasuredPair(a_span(4.0), a_span(1.0)),
    ]
    stats = compared(a_task(), pairs, ScenarioTarget("≥ 0.5", 0.5), latency_of="")
    assert (stats.rate_per_s, stats.bare_per_s, stats.ratio, stats.met) == (25.0, 100.0, 0.5, True)
    assert stats.busy == {"scheduler": 0.5}
    assert stats.values == {"cpu_ratio": 0.5}
    assert stats.units == 100
    assert [run["ratio"] for run in stats.runs] == [0.5, 0.9, 0.25]


@pytest.mark.parametrize(("least", "met"), [(0.5, True), (0.51, False), (None, None)])
def test_a_target_is_met_missed_or_not_about_the_ratio(least: float | None, met: bool | None) -> None:
    stats = compared(a_task(), [MeasuredPair(a_span(2.0), a_span(1.0))], ScenarioTarget("words", least), latency_of="")
    assert stats.met is met


def test_there_is_a_scenario_for_every_name() -> None:
    assert list(SCENARIOS) == list(ScenarioName)


@pytest.mark.parametrize("scenario", ScenarioName)
def test_what_is_not_asked_for_is_the_scenarios_own(scenario: ScenarioName) -> None:
    own = SCENARIOS[scenario]
    assert size_of(scenario, BenchOptions()) == own.full
    assert size_of(scenario, BenchOptions(reduced=True)) == own.reduced
    assert size_of(scenario, BenchOptions(seeds=7, placed=0)) == ScenarioSize(7, 0, own.full.shoots, own.full.runs)


def some_stats() -> ScenarioStats:
    pairs = [
        MeasuredPair(a_span(2.0), a_span(1.0, cpu_s={"bare": 0.2})),
        MeasuredPair(a_span(2.5), a_span(1.0, cpu_s={"bare": 0.2})),
    ]
    stats = compared(a_task(), pairs, ScenarioTarget("≥ 0.7 of the bare pipe", 0.7), latency_of="since then")
    return msgspec.structs.replace(stats, machine={"cores": 2})


def test_people_see_rates_target_latencies_processes_and_where_the_time_went() -> None:
    lines = "\n".join(report.rate_lines(some_stats()))
    assert "product    45.0 shoots/s  (40 … 50 in 2 runs)" in lines
    assert "bare pipe  100 shoots/s" in lines
    assert "ratio      0.45" in lines
    assert report.latency_lines(some_stats())[0].startswith("latency    p50 1")
    assert report.where_the_time_goes(some_stats()) == (
        "where the time goes: scheduler 50% of a core; 75% of the machine's 2 cores went to waiting for disk and each "
        "other, or to others"
    )


def test_the_screen_holds_every_process_of_both_pipes() -> None:
    console = Console(width=120, no_color=True)
    with console.capture() as captured:
        console.print(report.screen(some_stats(), "Pending shoots"))
    shown = captured.get()
    assert "scheduling: Pending shoots" in shown
    assert "not met" in shown
    for process in ("scheduler", "bare", "all"):
        assert f"\n  {process}" in shown


def test_the_table_has_a_line_for_each_scenario_and_says_what_it_was_measured_with() -> None:
    text = report.markdown([some_stats(), ScenarioStats(scenario="memory", target="≤ 300 MB", met=True)])
    lines = text.splitlines()
    assert lines[4].startswith("| scheduling | 45.0 shoots/s | 100 shoots/s | 0.45 |")
    assert lines[5] == "| memory |  |  |  |  | ≤ 300 MB | yes |  |"
    assert "- scheduling: with seeds 10, placed 20, shoots 100, runs 3, durability power. cpu ratio: 0.18" in lines
    assert text.endswith("\n")
