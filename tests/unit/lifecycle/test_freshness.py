from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from gardenbus.lifecycle.domain.freshness import (
    LeaseRecord,
    LeaseUnreadable,
    NotNewer,
    Renewed,
    RenewedAhead,
    accept_heartbeat,
    expires_at,
    read_lease,
)

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
TOLERANCE = timedelta(seconds=40)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def beat(record: LeaseRecord, renew_time: datetime, at: float) -> Renewed | RenewedAhead | NotNewer:
    return accept_heartbeat(record, renew_time, server_time=after(at), arrived_at=at, tolerance=TOLERANCE)


def test_a_lease_counts_for_a_period_after_its_arrival_whatever_it_says_itself() -> None:
    heartbeat = beat(LeaseRecord(), after(-3600), 5)
    assert isinstance(heartbeat, Renewed)
    assert expires_at(heartbeat.record, healthy_since=0, monitor_period=40) == 45


def test_a_renew_time_that_is_not_newer_renews_nothing() -> None:
    record = LeaseRecord(arrived_at=0, renewed=after(0))
    assert beat(record, after(0), 10) == NotNewer()
    assert beat(record, after(-1), 10) == NotNewer()
    assert isinstance(beat(record, after(0.000001), 10), Renewed)


def test_a_lease_from_the_future_renews_and_is_told_once() -> None:
    first = beat(LeaseRecord(), after(3600), 0)
    assert isinstance(first, RenewedAhead)
    assert first.is_first
    assert first.ahead_by == timedelta(hours=1)
    second = beat(first.record, after(3602), 2)
    assert isinstance(second, RenewedAhead)
    assert not second.is_first
    assert beat(second.record, after(3602), 4) == NotNewer()


def test_a_clock_that_was_set_right_is_believed_again() -> None:
    ahead = beat(LeaseRecord(0, after(0)), after(3600), 2)
    assert isinstance(ahead, RenewedAhead)
    right = beat(ahead.record, after(4), 4)
    assert isinstance(right, Renewed)
    assert right.record == LeaseRecord(4, after(4), None)


def test_arrivals_never_go_back() -> None:
    heartbeat = beat(LeaseRecord(10, after(0)), after(2), 8)
    assert isinstance(heartbeat, Renewed)
    assert heartbeat.record.arrived_at == 10


def test_a_seed_that_was_never_heard_of_gets_a_period_from_the_end_of_the_outage() -> None:
    assert expires_at(None, healthy_since=100, monitor_period=40) == 140
    assert expires_at(LeaseRecord(70), healthy_since=100, monitor_period=40) == 140
    assert expires_at(LeaseRecord(130), healthy_since=100, monitor_period=40) == 170


def test_the_times_of_a_lease_manifest_are_read() -> None:
    body = b'{"kind":"Lease","spec":{"holderIdentity":"x","renewTime":"2026-01-02T12:00:00.123456Z","more":[1]}}'
    assert read_lease(body).renewed == NOON.replace(microsecond=123456)
    assert read_lease(body).acquired is None


@pytest.mark.parametrize(
    "spec",
    [{}, {"renewTime": None}, {"renewTime": 5}, {"renewTime": "soon"}, {"renewTime": "2026-01-02T12:00:00"}, None, []],
)
def test_a_lease_without_a_usable_renew_time_is_unreadable(spec: object) -> None:
    with pytest.raises(LeaseUnreadable):
        read_lease(msgspec.json.encode({"spec": spec}))


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[]", b"{}", b'"x"'])
def test_what_is_no_lease_is_unreadable(body: bytes) -> None:
    with pytest.raises(LeaseUnreadable):
        read_lease(body)
