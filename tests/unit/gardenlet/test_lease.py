"""Who may hold the Lease, row by row of the table."""

from datetime import UTC, datetime, timedelta

import pytest

from gardenbus.gardenlet.domain.lease import (
    AcquireLease,
    ObservedLease,
    RenewLease,
    StandBy,
    decide_lease,
    lease_manifest,
    micro_time,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
GRACE_PERIOD = timedelta(seconds=20)


def observed(holder: str, seconds_ago: float = 1) -> ObservedLease:
    return ObservedLease(41, holder, NOW - timedelta(seconds=seconds_ago))


@pytest.mark.parametrize(
    ("last", "is_held", "expected"),
    [
        (None, False, AcquireLease(0)),
        (None, True, AcquireLease(0)),
        (observed("me"), True, RenewLease(41)),
        (observed("me"), False, AcquireLease(41)),
        (observed(""), False, AcquireLease(41)),
        (observed(""), True, AcquireLease(41)),
        (observed("other"), False, StandBy("other")),
        (observed("other"), True, StandBy("other")),
        (observed("other", 20), False, StandBy("other")),
        (observed("other", 20.1), False, AcquireLease(41)),
        (observed("other", 20.1), True, AcquireLease(41)),
    ],
)
def test_who_may_hold_the_lease(last: ObservedLease | None, is_held: bool, expected: object) -> None:
    assert decide_lease(last, identity="me", is_held=is_held, now=NOW, grace_period=GRACE_PERIOD) == expected


def test_a_lease_without_an_observed_seed_has_no_owner() -> None:
    lease = lease_manifest("aws-eu1", holder="me", resync_seconds=2, renewed_at=NOW, seed_uid="")

    assert lease["metadata"] == {"name": "aws-eu1", "namespace": "gardener-system-seed-lease"}
    assert lease["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 2,
        "renewTime": "2026-01-02T03:04:05.000006Z",
    }


def test_micro_times_have_six_digits() -> None:
    assert micro_time(NOW.replace(microsecond=0)) == "2026-01-02T03:04:05.000000Z"
