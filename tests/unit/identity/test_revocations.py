"""What was issued before a revocation is refused; what was issued after it is not."""

from datetime import UTC, datetime, timedelta

from gardenbus.common.api.identity.revocations import read_revocations

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
CORK = "seed:aws-cork"


def test_a_user_is_revoked_for_what_was_issued_until_then() -> None:
    revoked = read_revocations({CORK: "2026-03-01T12:00:00Z stolen"})
    assert revoked.rejects(CORK, "ab", AT)
    assert revoked.rejects(CORK, "ab", AT - timedelta(days=1))
    assert not revoked.rejects(CORK, "ab", AT + timedelta(seconds=1))
    assert not revoked.rejects("seed:aws-dublin", "ab", AT)


def test_what_was_issued_at_an_unknown_time_is_revoked_with_its_user() -> None:
    assert read_revocations({CORK: "2026-03-01T12:00:00Z stolen"}).rejects(CORK)


def test_a_line_without_a_time_revokes_for_ever() -> None:
    for line in ("stolen", "", "2026-03-01T12:00:00 without a zone"):
        assert read_revocations({CORK: line}).rejects(CORK, "ab", AT + timedelta(days=999))


def test_a_serial_number_is_revoked_whenever_it_was_issued() -> None:
    revoked = read_revocations({"ab": "2026-03-01T12:00:00Z stolen"})
    assert revoked.rejects(CORK, "ab", AT + timedelta(days=1))
    assert not revoked.rejects(CORK, "abc", AT)
    assert not revoked.rejects(CORK, "", AT)
