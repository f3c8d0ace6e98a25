"""What the messages of timers look like."""

from datetime import UTC, datetime

from gardenbus.common.api.keys import Header, Subjects
from gardenbus.common.controller.timers import Timer, Timers, timer_message
from tests.support.manual_clock import ManualClock
from tests.support.memory.bus import MemoryBus

NOW = datetime(2026, 1, 2, 3, 4, 5, 250_000, tzinfo=UTC)
SUBJECTS = Subjects()
WORK = SUBJECTS.queue("look", "ns", "a")


def test_a_timer_names_its_target_its_time_and_its_failures():
    message = timer_message(SUBJECTS, Timer(WORK, 2.5, 3, {"Extra": "kept"}), NOW)

    assert message.subject == "garden.later.look.ns.a"
    assert message.headers == {
        "Extra": "kept",
        "Nats-Schedule": "@at 2026-01-02T03:04:07.750Z",
        "Nats-Schedule-Target": "garden.queue.look.ns.a",
        Header.ATTEMPT: "3",
    }


def test_a_timer_is_never_less_than_a_second_ahead():
    assert timer_message(SUBJECTS, Timer(WORK, -5), NOW).headers["Nats-Schedule"] == "@at 2026-01-02T03:04:06.250Z"


async def test_work_for_now_removes_its_timer_unless_told_otherwise():
    timers = Timers(MemoryBus(ManualClock()), SUBJECTS)

    assert timers.enqueue_message(WORK).headers == {
        "Nats-Scheduler": "garden.later.look.ns.a",
        "Nats-Schedule-Next": "purge",
    }
    assert timers.enqueue_message(WORK, purge_timer=False).headers == {}


async def test_parking_many_of_nothing_asks_nobody():
    bus = MemoryBus(ManualClock())
    bus.cut()
    await Timers(bus, SUBJECTS).enqueue_many_after([])
