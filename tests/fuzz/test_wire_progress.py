"""How the fuzzer over the wire waits in the end, and what it shows meanwhile."""

import io
from collections.abc import Sequence

from tests.fuzz.findings import MEGABYTE
from tests.fuzz.wire import Left, Progress, drained

STUCK = 0.05


class Queues:
    """The result of each call; the last is repeated for ever."""

    def __init__(self, results: Sequence[Left]) -> None:
        self._results = list(results)
        self.calls = 0

    async def __call__(self) -> Left:
        self.calls += 1
        return self._results[min(self.calls, len(self._results)) - 1]


async def test_it_waits_as_long_as_there_are_fewer_messages_however_long_that_takes() -> None:
    slow = Queues([*(Left(number, 9, ("a",)) for number in range(30, 0, -1)), Left(0, 0)])
    assert await drained(slow, stuck_seconds=STUCK, every=STUCK / 5) == ""
    assert slow.calls == 31


async def test_fewer_subjects_are_progress_too() -> None:
    scheduling = Queues([*(Left(0, number, ("a",)) for number in range(20, 0, -1)), Left(0, 0)])
    assert await drained(scheduling, stuck_seconds=STUCK, every=STUCK / 5) == ""


async def test_what_becomes_no_fewer_is_named() -> None:
    stuck = Queues([Left(8, 3, ("a", "b")), Left(7, 2, ("b",)), Left(7, 2, ("b",)), Left(9, 2, ("b", "c"))])
    assert await drained(stuck, stuck_seconds=STUCK, every=0.001) == "9 messages on 2 subjects stay, as b, c"
    assert stuck.calls > 4


def test_a_line_says_what_has_been_sent_how_fast_and_what_each_process_takes() -> None:
    log = io.StringIO()
    progress = Progress(2_000, log, every=0)
    progress.note(1_000, {"nats": [MEGABYTE, 3 * MEGABYTE], "apiserver": [70 * MEGABYTE], "gone": []})
    line = log.getvalue()
    assert line.startswith("1,000 of 2,000 sent, ")
    assert line.endswith("a second; memory in MB: apiserver 70, nats 3\n")


def test_there_is_no_line_before_its_time() -> None:
    log = io.StringIO()
    Progress(2_000, log, every=3600).note(1_000, {})
    assert log.getvalue() == ""
