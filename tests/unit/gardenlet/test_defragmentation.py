"""An etcd is defragmented once in each maintenance window, at a minute that is drawn for it."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.api.garden.maintenance_windows import effective_window
from gardenbus.gardenlet.domain.defragmentation import is_defragmentation_due

BEGIN = datetime(2026, 11, 29, 22, tzinfo=UTC)
WINDOW = effective_window({"maintenance": {"timeWindow": {"begin": "220000+0000", "end": "230000+0000"}}}, "apollo")
MINUTE = timedelta(minutes=1)


def test_it_is_due_from_a_minute_of_the_window_on_until_it_was_done_or_the_window_has_closed() -> None:
    minutes = [BEGIN + MINUTE * number for number in range(-60, 180)]
    due = [each for each in minutes if is_defragmentation_due(None, each, WINDOW, "apollo/etcd")]
    assert due[0] >= BEGIN
    assert due[-1] == BEGIN + 44 * MINUTE, "nothing begins in the last quarter of an hour"
    assert due == [due[0] + MINUTE * number for number in range(len(due))]
    assert not is_defragmentation_due(due[0], due[0] + MINUTE, WINDOW, "apollo/etcd")
    assert is_defragmentation_due(BEGIN - MINUTE, due[0], WINDOW, "apollo/etcd")


def test_each_etcd_has_a_minute_of_its_own() -> None:
    at = BEGIN + 20 * MINUTE
    assert {is_defragmentation_due(None, at, WINDOW, f"{number}/etcd") for number in range(40)} == {True, False}


@given(
    start=st.integers(0, 24 * 60),
    steps=st.lists(st.integers(1, 300), min_size=30, max_size=60),
    begin=st.integers(0, 23),
    length=st.integers(1, 5),
)
def test_whenever_it_is_checked_it_is_done_once_a_window_at_the_most(
    start: int, steps: list[int], begin: int, length: int
) -> None:
    times = {"begin": f"{begin:02}0000+0000", "end": f"{(begin + length) % 24:02}0000+0000"}
    window = effective_window({"maintenance": {"timeWindow": times}}, "apollo")
    now, done = BEGIN + start * MINUTE, list[datetime]()
    for step in steps:
        if is_defragmentation_due(done[-1] if done else None, now, window, "apollo/etcd"):
            done.append(now)
        now += step * MINUTE
    windows = [window.opened_at(each) for each in done]
    assert None not in windows
    assert len(set(windows)) == len(done)
