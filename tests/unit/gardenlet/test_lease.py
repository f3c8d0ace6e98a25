"""Who may hold the Lease, row by row of the table."""

from datetime import UTC, datetime, timedelta

import pytest

from gardenbus.gardenlet.decide.lease import LeaseSeen, Renew, StandBy, Take, judge_lease, lease_manifest, micro_time

NOW = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
PATIENCE = timedelta(seconds=20)


def seen(holder: str, seconds_ago: float = 1) -> LeaseSeen:
    return LeaseSeen(41, holder, NOW - timedelta(seconds=seconds_ago))


@pytest.mark.parametrize(
    ("last", "is_held", "expected"),
    [
        (None, False, Take(0)),
        (None, True, Take(0)),
        (seen("me"), True, Renew(41)),
        (seen("me"), False, Take(41)),
        (seen(""), False, Take(41)),
        (seen(""), True, Take(41)),
        (seen("other"), False, StandBy("other")),
        (seen("other"), True, StandBy("other")),
        (seen("other", 20), False, StandBy("other")),
        (seen("other", 20.1), False, Take(41)),
        (seen("other", 20.1), True, Take(41)),
    ],
)
def test_who_may_hold_the_lease(last: LeaseSeen | None, is_held: bool, expected: object) -> None:
    assert judge_lease(last, identity="me", is_held=is_held, now=NOW, patience=PATIENCE) == expected


def test_a_lease_without_a_known_seed_has_no_owner() -> None:
    lease = lease_manifest("aws-eu1", holder="me", resync_seconds=2, renewed_at=NOW, seed_uid="")

    assert lease["metadata"] == {"name": "aws-eu1", "namespace": "gardener-system-seed-lease"}
    assert lease["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 2,
        "renewTime": "2026-01-02T03:04:05.000006Z",
    }


def test_micro_times_have_six_digits() -> None:
    assert micro_time(NOW.replace(microsecond=0)) == "2026-01-02T03:04:05.000000Z"
