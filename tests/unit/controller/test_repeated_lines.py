"""Lines that somebody outside causes without end, in virtual time."""

import asyncio

import pytest
from structlog.testing import capture_logs

from gardenbus.common.controller import repeated_lines
from gardenbus.common.controller.repeated_lines import MOST, MOST_OF_ONE, QUIET_SECONDS, RepeatedLines
from tests.support.clocks import FakeClock
from tests.support.eventually import eventually


def test_the_first_is_logged_at_once_and_ten_thousand_more_are_one_line_with_their_count() -> None:
    clock = FakeClock()
    lines = RepeatedLines("request.forbidden", clock.monotonic)
    with capture_logs() as logs:
        lines.warn("mallory", "get", "secret", number=0)
        assert [(line["number"], line["times"]) for line in logs] == [(0, 1)]
        for number in range(1, 10_001):
            lines.warn("mallory", "get", "secret", number=number)
        assert len(logs) == 1
        clock.advance(QUIET_SECONDS)
        lines.close_windows()
    assert [(line["number"], line["times"]) for line in logs] == [(0, 1), (10_000, 10_000)]


def test_an_hour_of_it_is_a_line_a_minute_and_nothing_is_counted_twice() -> None:
    clock = FakeClock()
    lines = RepeatedLines("request.forbidden", clock.monotonic)
    with capture_logs() as logs:
        for _ in range(3600):
            lines.warn("mallory", "get")
            clock.advance(1)
        lines.close_windows(all_of_them=True)
    assert 60 <= len(logs) <= 62
    assert sum(line["times"] for line in logs) == 3600


def test_who_was_quiet_for_a_minute_is_logged_at_once_again() -> None:
    clock = FakeClock()
    lines = RepeatedLines("request.forbidden", clock.monotonic)
    with capture_logs() as logs:
        for _ in range(3):
            lines.warn("ann", "get")
            clock.advance(QUIET_SECONDS)
    assert [line["times"] for line in logs] == [1, 1, 1]


def test_one_sender_of_ever_other_lines_has_a_few_of_its_own_and_another_is_not_kept_quiet() -> None:
    clock = FakeClock()
    lines = RepeatedLines("request.forbidden", clock.monotonic)
    with capture_logs() as logs:
        for number in range(10_000):
            lines.warn("mallory", "get", f"kind{number}")
        lines.warn("ann", "get", "secret", user="ann")
        assert len(logs) == MOST_OF_ONE + 2
        assert logs[-1]["user"] == "ann"
        clock.advance(QUIET_SECONDS)
        lines.close_windows()
    assert sum(line["times"] for line in logs) == 10_001


def test_ever_other_senders_are_counted_as_one_and_all_is_forgotten_after_a_minute() -> None:
    clock = FakeClock()
    lines = RepeatedLines("connection.rejected", clock.monotonic)
    with capture_logs() as logs:
        for number in range(10_000):
            lines.warn(f"host{number}", "wrong password")
        assert len(logs) == MOST + 1
        for _ in range(2):
            clock.advance(QUIET_SECONDS)
            lines.close_windows()
        before = len(logs)
        lines.warn("host0", "wrong password")
    assert len(logs) == before + 1
    assert sum(line["times"] for line in logs) == 10_001


def test_what_was_only_counted_is_logged_at_the_end() -> None:
    lines = RepeatedLines("request.forbidden", FakeClock().monotonic)
    with capture_logs() as logs:
        for _ in range(5):
            lines.warn("ann", "get")
        lines.close_windows(all_of_them=True)
        lines.close_windows(all_of_them=True)
    assert [line["times"] for line in logs] == [1, 4]


async def test_the_count_comes_though_nothing_else_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_lines, "QUIET_SECONDS", 0.02)
    lines = RepeatedLines("request.forbidden", asyncio.get_running_loop().time)
    with capture_logs() as logs:
        for _ in range(5):
            lines.warn("ann", "get")

        async def counted() -> None:
            assert [line["times"] for line in logs] == [1, 4]

        await eventually(counted)
