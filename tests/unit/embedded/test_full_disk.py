"""When a nats-server that cannot write is started anew."""

import itertools

import pytest

from gardenbus.embedded.full_disk import (
    FORGET_SECONDS,
    RESTART_BASE_SECONDS,
    RESTART_CAP_SECONDS,
    STEADY_SECONDS,
    DiskRoom,
    WriteWatch,
    is_write_error,
    storage_trouble,
)

FULL, ROOMY = DiskRoom(0, 10**9), DiskRoom(5 * 10**8, 10**9)


def due(watch: WriteWatch, now: float) -> float:
    """The moment of the next restart of a server that cannot write on a disk with room."""
    while watch.observe(cannot_write=True, room=ROOMY, now=now) != "restart":
        now += 0.5
    return now


def test_a_server_is_not_restarted_while_its_disk_is_full() -> None:
    watch = WriteWatch()
    assert {watch.observe(cannot_write=True, room=FULL, now=float(now)) for now in range(1000)} == {"full"}
    assert watch.observe(cannot_write=True, room=None, now=1001.0) == "full"


def test_a_server_is_restarted_once_there_has_been_room_for_a_while() -> None:
    watch = WriteWatch()
    watch.observe(cannot_write=True, room=FULL, now=0.0)
    assert watch.observe(cannot_write=True, room=ROOMY, now=1.0) == "recovering"
    watch.observe(cannot_write=True, room=FULL, now=2.0)
    assert watch.observe(cannot_write=True, room=ROOMY, now=1.0 + STEADY_SECONDS) == "recovering"
    assert due(watch, 10.0) == 10.0


def test_room_has_to_last_anew_when_the_server_did_not_say_whether_it_can_write() -> None:
    watch = WriteWatch()
    watch.observe(cannot_write=True, room=ROOMY, now=0.0)
    watch.interrupt()
    assert watch.observe(cannot_write=True, room=ROOMY, now=100.0) == "recovering"
    assert watch.observe(cannot_write=True, room=ROOMY, now=100.0 + STEADY_SECONDS) == "restart"


def test_restarts_that_do_not_help_come_less_and_less_often() -> None:
    watch, now = WriteWatch(), 0.0
    moments = [now := due(watch, now) for _ in range(10)]
    pauses = [after - before for before, after in itertools.pairwise(moments)]
    assert pauses == sorted(pauses)
    assert pauses[0] >= RESTART_BASE_SECONDS
    assert pauses[-1] == pytest.approx(RESTART_CAP_SECONDS, abs=1)
    assert watch.observe(cannot_write=False, room=ROOMY, now=now) == "fine"
    assert watch.observe(cannot_write=False, room=ROOMY, now=now + FORGET_SECONDS) == "fine"
    now = due(watch, now + 2 * FORGET_SECONDS)
    assert due(watch, now) - now <= RESTART_BASE_SECONDS + STEADY_SECONDS


def test_a_small_disk_has_room_when_a_tenth_is_free() -> None:
    assert DiskRoom(4 * 2**20, 32 * 2**20).is_enough
    assert not DiskRoom(3 * 2**20, 32 * 2**20).is_enough
    assert not DiskRoom(60 * 2**20, 2**40).is_enough


def test_only_errors_of_writes_are_cured_by_a_restart() -> None:
    assert is_write_error("JetStream stream '$G > A' write error: write /s/2.blk: no space left on device")
    assert is_write_error("-MISCONF Errors writing to the AOF file: No space left on device")
    assert not is_write_error("JetStream is not ready")
    assert not is_write_error("")


def test_a_limit_from_a_full_disk_is_a_trouble_only_when_a_new_one_would_be_higher() -> None:
    report = b'{"storage":1000000,"config":{"max_storage":900000}}'
    assert is_write_error(storage_trouble(report, ROOMY))
    assert storage_trouble(report, DiskRoom(1000, 10**9)) == ""
    assert storage_trouble(b'{"storage":1,"config":{"max_storage":900000}}', ROOMY) == ""
    assert storage_trouble(b"", ROOMY) == storage_trouble(b'{"storage":{}}', ROOMY) == ""
