"""The landscape's history: which points are due, what happened between two, and who writes them."""

from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.api.history import (
    LEVELS,
    MORE,
    PLACED,
    PLACEMENT_SECONDS,
    HistoryPoint,
    SeedUse,
    SetSize,
    decode_change,
    decode_counts,
    decode_point,
    encode,
    growth,
    level_of,
    placement_counter,
    placement_quantile,
)
from gardenbus.common.ports.clock import timestamp
from gardenbus.lifecycle.domain.history import MOST_CHANGES, Observed, changes_between, next_point

START = datetime(2026, 5, 4, 10, 0, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
S1 = SeedUse(3, 10, "ready", "aws", "eu-west-1")
NOTHING = Observed({}, {}, {}, 0, 0, 0, {}, {})
QUIET = NOTHING._replace(seeds={"s1": S1}, sets={"garden/pool": SetSize(2, 2, 2)}, profiles={"aws": 1}, shoots=3)


def first(observed: Observed = QUIET, at: datetime = START) -> HistoryPoint:
    due = next_point(None, observed, at)
    assert due is not None
    return due.point


def test_the_first_point_is_kept_the_longest_and_nothing_happened_before_it():
    due = next_point(None, QUIET, START)
    assert due is not None
    assert (due.point.level, due.changes) == (2, ())


def test_nothing_is_written_while_nothing_changes_but_a_point_every_ten_minutes():
    last = first()
    written: list[tuple[int, int]] = []
    for minute in range(1, 61):
        due = next_point(last, QUIET, START + minute * MINUTE)
        if due is not None:
            last = due.point
            written.append((minute, last.level))
    assert written == [(10, 1), (20, 1), (30, 1), (40, 1), (50, 1), (60, 2)]


def test_a_minute_has_one_point_and_time_that_goes_back_has_none():
    last = first()
    busy = QUIET._replace(shoots=4)
    assert next_point(last, busy, START + timedelta(seconds=29)) is None
    assert next_point(last, busy, START - timedelta(hours=3)) is None
    assert next_point(last, busy, START + MINUTE) is not None


def test_what_happened_to_seeds_sets_and_profiles_follows_from_two_points():
    after = QUIET._replace(
        seeds={"s1": msgspec.structs.replace(S1, state="unknown"), "s2": S1},
        sets={"garden/pool": SetSize(3, 2, 2)},
        profiles={"aws": 2, "gcp": 1},
    )
    due = next_point(first(), after, START + MINUTE)
    assert due is not None
    assert [(each.kind, each.name, each.text) for each in due.changes] == [
        ("seed", "s1", "its gardenlet is silent"),
        ("seed", "s2", "added"),
        ("managedseedset", "garden/pool", "3 seeds wanted instead of 2"),
        ("cloudprofile", "aws", "changed"),
        ("cloudprofile", "gcp", "added"),
    ]
    assert {each.at for each in due.changes} == {due.point.at}


def test_a_landscape_that_dies_at_once_is_a_bounded_number_of_changes():
    seeds = {f"s{number}": S1 for number in range(1_000)}
    due = next_point(first(QUIET._replace(seeds=seeds)), QUIET._replace(seeds={}), START + MINUTE)
    assert due is not None
    assert len(due.changes) == MOST_CHANGES + 1
    assert due.changes[-1].text == "800 more changes"


def test_counters_go_on_whoever_writes_and_whichever_process_has_restarted():
    last = first(QUIET._replace(counts={"a": {"rejected": 5}, "b": {"rejected": 2}}))
    assert last.totals == {"rejected": 7}
    other_replica = QUIET._replace(counts={"a": {"rejected": 4}, "c": {"rejected": 1, "migrations": 2}})
    due = next_point(last, other_replica, START + MINUTE)
    assert due is not None
    assert due.point.totals == {"rejected": 8, "migrations": 2}
    again = next_point(due.point, QUIET._replace(counts={"a": {"rejected": 6}}), START + 2 * MINUTE)
    assert again is not None
    assert again.point.totals["rejected"] == 9


def test_a_point_that_is_kept_has_the_most_shoots_that_waited_since_the_one_before():
    last = first()
    for minute, waiting in enumerate((0, 40, 0, 0, 0, 0, 0, 0, 0, 1), start=1):
        due = next_point(last, QUIET._replace(waiting={"full": waiting}), START + minute * MINUTE)
        last = last if due is None else due.point
    assert (last.level, last.waiting, last.most_waiting) == (1, {"full": 1}, [40, 40])
    after = next_point(last, QUIET._replace(waiting={"full": 2}), START + 11 * MINUTE)
    assert after is not None
    assert after.point.most_waiting == [2, 40]


uses = st.builds(
    SeedUse,
    st.integers(0, 9),
    st.none() | st.integers(0, 9),
    st.sampled_from(("ready", "unknown")),
    st.just("a"),
    st.just("b"),
)
landscapes = st.builds(
    Observed,
    st.dictionaries(st.sampled_from("abc"), uses),
    st.dictionaries(st.sampled_from("ab"), st.builds(SetSize, *[st.integers(0, 5)] * 3)),
    st.dictionaries(st.sampled_from("ab"), st.integers(1, 3)),
    st.integers(0, 5),
    st.integers(0, 5),
    st.integers(0, 5),
    st.dictionaries(st.sampled_from(("full", "taints")), st.integers(1, 5)),
    st.dictionaries(st.sampled_from("pq"), st.dictionaries(st.sampled_from(("rejected", "x")), st.integers(0, 9))),
)


@given(st.lists(st.tuples(st.integers(1, 4_000), landscapes), max_size=30))
def test_counters_never_fall_and_every_seed_that_comes_or_goes_is_a_change(steps: list[tuple[int, Observed]]):
    now, last = START, first(NOTHING)
    shown = NOTHING
    for seconds, observed in steps:
        now += timedelta(seconds=seconds)
        due = next_point(last, observed, now)
        if due is None:
            continue
        assert all(due.point.totals.get(name, 0) >= count for name, count in last.totals.items())
        assert list(due.changes) == list(changes_between(last, due.point))
        changed = {each.name for each in due.changes if each.kind == "seed"}
        before = {name: use.state for name, use in shown.seeds.items()}
        assert set(observed.seeds.keys() ^ before.keys()) <= changed
        assert decode_point(encode(due.point)) == msgspec.json.decode(encode(due.point), type=HistoryPoint)
        last, shown = due.point, observed


@given(st.lists(st.integers(1, 100_000), max_size=60))
def test_there_is_at_most_one_point_of_a_level_in_each_of_its_intervals(gaps: list[int]):
    now, before = START, None
    found: dict[int, list[datetime]] = {}
    for seconds in gaps:
        now += timedelta(seconds=seconds)
        level = level_of(now, before)
        if level is None:
            continue
        before = now
        for each in range(level + 1):
            found.setdefault(each, []).append(now)
    for number, instants in found.items():
        seconds = LEVELS[number].interval.total_seconds()
        slots = [int(each.timestamp() // seconds) for each in instants]
        assert len(slots) == len(set(slots))


def test_a_quantile_of_times_to_placement_is_the_bound_that_holds_it():
    counts = {placement_counter(seconds): number for seconds, number in ((0, 98), (45, 1), (1e9, 1))}
    assert counts == {f"{PLACED}1": 98, f"{PLACED}60": 1, f"{PLACED}{MORE}": 1}
    assert [placement_quantile(counts, share) for share in (0.5, 0.99, 1)] == [1, 60, PLACEMENT_SECONDS[-1]]
    assert placement_quantile({}, 0.5) is None
    assert placement_quantile({"rejected": 5}, 0.5) is None


def test_a_counter_that_is_lower_than_before_has_begun_anew():
    assert growth({"a": 5, "b": 2, "c": 1}, {"a": 3, "b": 4, "c": 1}) == {"a": 2, "b": 2}


def test_bodies_that_are_none_are_none():
    for body in (b"", b"{", b"[]", b'{"at":"yesterday"}', b'{"at":"2026-01-01T00:00:00"}', b"\xff"):
        assert decode_point(body) is None
        assert decode_change(body) is None
        assert decode_counts(body) is None
    assert decode_point(b'{"at":"%s","new":1}' % timestamp(START).encode()) is not None
