"""Percentiles, histograms, medians, and what programs read of a result."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.bench.stats import (
    ScenarioStats,
    as_json,
    blocks,
    histogram,
    largest,
    latencies,
    machine,
    median_of,
    medians,
    percentile,
)

SECONDS = st.lists(st.floats(min_value=0.0001, max_value=1000), min_size=1, max_size=300)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([], 0.5, 0.0),
        ([3.0], 0.5, 3.0),
        ([3.0], 0.0, 3.0),
        ([1.0, 2.0, 3.0, 4.0], 0.5, 2.0),
        ([1.0, 2.0, 3.0, 4.0, 5.0], 0.5, 3.0),
        ([1.0, 2.0, 3.0, 4.0], 0.99, 4.0),
        ([1.0, 2.0, 3.0, 4.0], 1.0, 4.0),
        ([float(number) for number in range(1, 101)], 0.99, 99.0),
        ([float(number) for number in range(1, 1001)], 0.999, 999.0),
    ],
)
def test_a_percentile_is_the_value_of_the_nearest_rank(values: list[float], share: float, expected: float) -> None:
    assert percentile(values, share) == expected


@given(SECONDS)
def test_percentiles_rise_and_end_at_the_largest_value(seconds: list[float]) -> None:
    reported = latencies(seconds)
    assert list(reported) == ["p50", "p90", "p99", "max"]
    assert list(reported.values()) == sorted(reported.values())
    assert reported["max"] == round(1000 * max(seconds), 3)


def test_there_are_no_percentiles_of_nothing() -> None:
    assert latencies([]) == {}
    assert histogram([]) == []
    assert blocks([]) == ""
    assert median_of([None, None]) is None


@given(SECONDS)
def test_a_histogram_counts_every_value_once(seconds: list[float]) -> None:
    counts = histogram(seconds)
    assert sum(counts) == len(seconds)
    assert len(blocks(counts)) == len(counts)


def test_a_histogram_shows_the_most_as_a_full_block_and_none_as_a_space() -> None:
    assert blocks([0, 1, 4, 8]) == " ▁▄█"
    assert blocks([0, 1, 1000]) == " ▁█", "what is there is seen, however little it is"
    assert histogram([0.1] * 98 + [1.0, 50.0], bins=4) == [98, 0, 0, 2], "what is slower than p99 counts in the last"


def test_medians_are_taken_name_by_name_over_the_runs_that_have_it() -> None:
    runs = [{"redis": 1.0, "nats": 2.0}, {"redis": 3.0}, {"redis": 2.0, "bare": 5.0}]
    assert medians(runs) == {"redis": 2.0, "nats": 2.0, "bare": 5.0}
    assert largest(runs) == {"redis": 3.0, "nats": 2.0, "bare": 5.0}
    assert median_of([3.0, None, 1.0]) == 2.0


def test_programs_read_the_fixed_members_first_and_the_rest_below_details() -> None:
    stats = ScenarioStats(
        scenario="scheduling",
        rate_per_s=100.0,
        bare_per_s=200.0,
        ratio=0.5,
        target="≥ 0.7",
        met=False,
        latency_ms={"p50": 1.0, "p90": 2.0, "p99": 3.0, "max": 4.0},
        cpu_s={"scheduler": 1.5},
        rss_mb={"scheduler": 80.0},
        values={"cpu_ratio": 0.6},
        parameters={"seeds": 10},
        machine={"cores": 2},
    )
    reported = msgspec.json.decode(msgspec.json.encode(as_json(stats)))
    assert list(reported) == [
        "scenario",
        "rate_per_s",
        "bare_per_s",
        "ratio",
        "latency_ms",
        "cpu_s",
        "rss_mb",
        "parameters",
        "machine",
        "details",
    ]
    assert reported["latency_ms"] == {"p50": 1.0, "p99": 3.0}
    assert reported["details"]["met"] is False
    assert reported["details"]["values"] == {"cpu_ratio": 0.6}


def test_what_means_nothing_is_null() -> None:
    reported = as_json(ScenarioStats(scenario="memory"))
    assert reported["rate_per_s"] is reported["bare_per_s"] is reported["ratio"] is None
    assert reported["latency_ms"] == {}


def test_the_machine_is_described() -> None:
    described = machine()
    assert described["cores"]
    assert described["python"]
    assert set(described) == {"cpu", "cores", "memory_gb", "kernel", "python", "load_1m"}
