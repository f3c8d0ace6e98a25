"""Charts of the landscape's history."""

import tracemalloc
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.adapters.nats.streams import MAX_BYTES
from gardenbus.common.api.history import (
    LEVELS,
    HistoryChange,
    HistoryPoint,
    SeedUse,
    SetSize,
    encode,
    level_of,
)
from gardenbus.common.ports.clock import timestamp
from gardenbus.diagnostics.history_record import HistoryRecord, HistoryScope, HistoryView

START = datetime(2026, 5, 4, 0, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
LANDSCAPE = HistoryScope("landscape")


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def a_point(minutes: float, **fields: Any) -> HistoryPoint:
    return msgspec.structs.replace(HistoryPoint(at=timestamp(at(minutes)), level=1), **fields)


def a_record(*points: HistoryPoint) -> HistoryRecord:
    record = HistoryRecord()
    for point in points:
        record.add_point(point)
    return record


def lines(view: HistoryView, chart: str) -> Mapping[str, Sequence[float | None]]:
    return {line.name: line.values for each in view.charts if each.name == chart for line in each.lines}


def hour(record: HistoryRecord, scope: HistoryScope = LANDSCAPE) -> HistoryView:
    return record.view(scope, START, START + HOUR, instants=6)


def test_shoots_that_wait_are_plotted_by_cause_with_the_most_of_each_interval():
    record = a_record(
        a_point(0),
        *(a_point(minutes, waiting={"full": 2}, most_waiting=[5, 5]) for minutes in range(10, 30, 10)),
        *(a_point(minutes) for minutes in range(30, 70, 10)),
    )
    assert lines(hour(record), "waiting") == {"all": [5, 5, 0, 0, 0, 0], "full": [2, 2, 0, 0, 0, 0]}


def test_times_to_placement_and_counters_are_those_of_each_interval():
    totals = [{"placed.1": 5, "rejected": 1}, {"placed.1": 5, "placed.60": 2, "rejected": 4, "migrations": 1}]
    record = a_record(*(a_point(10 * number, totals=totals[min(1, number)]) for number in range(7)))
    view = hour(record)
    assert lines(view, "placement") == {"p50": [60, *[None] * 5], "p99": [60, *[None] * 5]}
    assert lines(view, "counts")["requests rejected"] == [3, 0, 0, 0, 0, 0]
    assert lines(view, "counts")["migrations requested"] == [1, 0, 0, 0, 0, 0]


def test_capacity_is_plotted_of_the_landscape_a_region_and_a_seed():
    seeds = {
        "a": SeedUse(3, 10, "ready", "aws", "eu"),
        "b": SeedUse(1, None, "unknown", "aws", "us"),
        "c": SeedUse(2, 5, "cordoned", "aws", "eu"),
    }
    record = a_record(*(a_point(minutes, seeds=seeds) for minutes in range(0, 70, 10)))
    assert lines(hour(record), "capacity") == {"used": [6] * 6, "used of capacity": [5] * 6, "capacity": [15] * 6}
    region = hour(record, HistoryScope("region", "aws/eu"))
    assert lines(region, "capacity") == {"used": [5] * 6, "capacity": [15] * 6}
    assert lines(region, "seeds") == {"there": [2] * 6, "ready": [2] * 6}
    assert lines(hour(record, HistoryScope("seed", "b")), "capacity") == {"used": [1] * 6}
    assert hour(record, HistoryScope("seed", "nobody")).charts == []


def test_a_seed_that_was_removed_has_no_use_any_more():
    seed = SeedUse(3, 10, "ready", "aws", "eu")
    record = a_record(a_point(5, seeds={"a": seed}), a_point(15), a_point(25, seeds={"a": seed}))
    view = record.view(HistoryScope("seed", "a"), START, at(30), instants=3)
    assert lines(view, "capacity")["used"] == [3, None, 3]


def test_sets_are_plotted_each_and_together():
    sets = {"garden/one": SetSize(3, 2, 1), "garden/two": SetSize(1, 1, 1)}
    record = a_record(*(a_point(minutes, sets=sets) for minutes in range(0, 70, 10)))
    assert lines(hour(record), "sets") == {"wanted": [4] * 6, "there": [3] * 6, "ready": [2] * 6}
    one = hour(record, HistoryScope("managedseedset", "garden/one"))
    assert lines(one, "sets") == {"wanted": [3] * 6, "there": [2] * 6, "ready": [1] * 6}


def test_an_hour_in_which_nobody_wrote_is_a_gap_and_not_a_line():
    sets = {"garden/one": SetSize(1, 1, 1)}
    record = a_record(a_point(0, sets=sets), a_point(50, sets=sets), a_point(60, sets=sets))
    assert lines(hour(record), "sets")["wanted"] == [1, None, None, None, 1, 1]


def test_changes_are_those_of_the_part_and_the_time():
    seed = SeedUse(0, 1, "ready", "aws", "eu")
    record = a_record(a_point(10, seeds={"a": seed, "b": seed}))
    silent = HistoryChange(timestamp(at(20)), "seed", "a", "its gardenlet is silent")
    grown = HistoryChange(timestamp(at(30)), "managedseedset", "garden/one", "3 seeds wanted instead of 2")
    late = HistoryChange(timestamp(at(90)), "seed", "a", "ready")
    for change in (silent, silent, grown, late):
        record.add_change(change)
    assert hour(record).changes == [silent, grown]
    assert hour(record, HistoryScope("seed", "a")).changes == [silent]
    assert hour(record, HistoryScope("region", "aws/eu")).changes == [silent]
    assert hour(record, HistoryScope("managedseedset", "garden/one")).changes == [grown]


def test_what_comes_twice_or_late_counts_once():
    record = a_record(a_point(10), a_point(10), a_point(0), a_point(20))
    assert record.size == 2


def test_a_record_of_sixty_days_is_no_larger_than_one_of_thirty():
    record, now, sizes = HistoryRecord(), START, list[int]()
    for minutes in range(5, 60 * 24 * 60, 5):
        before, now = now, at(minutes)
        level = level_of(now, before)
        assert level is not None
        seeds = {"a": SeedUse(minutes % 7, 10, "ready", "aws", "eu")}
        record.add_point(HistoryPoint(at=timestamp(now), level=level, seeds=seeds))
        sizes.append(record.size)
    assert max(sizes) <= 1_250
    month = record.view(HistoryScope("seed", "a"), at(60 * 24 * 30), now, instants=720)
    assert None not in lines(month, "capacity")["used"]
    recent = record.view(HistoryScope("seed", "a"), now - 5 * HOUR, now, instants=60)
    used = [int((now - START) / timedelta(minutes=1) - 5 * back) % 7 for back in reversed(range(60))]
    assert lines(recent, "capacity")["used"] == used


def test_no_point_has_the_tracks_of_all_seeds_thinned_with_it():
    record, now, left = HistoryRecord(), START, [0]
    for minutes in range(60 * 24):
        before, now = now, at(minutes + 1)
        seeds = {f"s{number}": SeedUse((minutes + number) % 7, 10, "ready", "aws", "eu") for number in range(100)}
        level = level_of(now, before)
        assert level is not None
        record.add_point(HistoryPoint(at=timestamp(now), level=level, seeds=seeds))
        left.append(record.unthinned)
    assert max(left) > 90
    assert max(before - after for before, after in pairwise(left)) <= 3
    assert left[-1] == 0


uses = st.builds(
    SeedUse, st.integers(0, 3), st.none() | st.integers(0, 3), st.just("ready"), st.just("aws"), st.sampled_from("xy")
)


@given(st.lists(st.tuples(st.integers(1, 700), st.dictionaries(st.sampled_from("abc"), uses)), min_size=1, max_size=60))
def test_the_regions_of_a_landscape_add_up_to_it(steps: list[tuple[int, dict[str, SeedUse]]]):
    record, now = HistoryRecord(), START
    for gap, seeds in steps:
        before, now = now, now + timedelta(minutes=gap)
        record.add_point(HistoryPoint(at=timestamp(now), level=level_of(now, before) or 0, seeds=seeds))
    window = (now - HOUR, now)
    whole = lines(record.view(LANDSCAPE, *window, instants=5), "capacity").get("used", [None] * 5)
    regions = [
        lines(record.view(HistoryScope("region", f"aws/{region}"), *window, instants=5), "capacity").get(
            "used", [None] * 5
        )
        for region in "xy"
    ]
    last = steps[-1][1]
    assert (whole[-1] or 0) == sum(seed.used for seed in last.values())
    assert [each or 0 for each in whole] == [
        sum(value or 0 for value in values) for values in zip(*regions, strict=True)
    ]
    for name, seed in last.items():
        track = lines(record.view(HistoryScope("seed", name), *window, instants=5), "capacity")
        assert track["used"][-1] == seed.used


def test_a_point_of_a_thousand_seeds_is_a_small_message_of_which_the_stream_holds_thirty_days():
    seeds = {
        f"{number:04}".ljust(63, "s"): SeedUse(100, 250, "not-ready", "provider", "region-1") for number in range(1_000)
    }
    processes = {
        f"{number:03}".ljust(63, "p"): {f"placed.{bound}": 10**6 for bound in range(18)} for number in range(100)
    }
    size = len(encode(a_point(0, seeds=seeds, processes=processes)))
    assert size <= 192 * 1024
    points = sum(int(level.kept / level.interval) for level in LEVELS)
    assert size * points <= MAX_BYTES["HISTORY"]


def test_a_landscape_of_a_thousand_seeds_takes_a_few_megabytes():
    tracemalloc.start()
    record = HistoryRecord()
    for number in range(300):
        seeds = {
            f"s{seed}": SeedUse((seed + number) % 90, 100, "ready", "aws", f"r{seed % 20}") for seed in range(1_000)
        }
        record.add_point(a_point(10 * number, seeds=seeds))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 25_000_000
