"""Credentials that were revoked: a line for each user, or serial number of a certificate (lower-case hexadecimal).

A line says when, and why: `2026-03-01T12:00:00Z stolen`. What a user was issued after that is not revoked; a line
without a time revokes for ever.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple


class Revocations(NamedTuple):
    """Revoked users and serial numbers, and since when."""

    since: Mapping[str, datetime | None] = {}

    def rejects(self, user: str, serial: str = "", issued_at: datetime | None = None) -> bool:
        """True when a credential of a user, issued at that time (None: unknown), is revoked."""
        if serial and serial in self.since:
            return True
        if user not in self.since:
            return False
        since = self.since[user]
        return since is None or issued_at is None or issued_at <= since


def read_revocations(lines: Mapping[str, str]) -> Revocations:
    """The revocations of a ConfigMap's data."""
    return Revocations({name: _instant(line) for name, line in lines.items()})


def _instant(line: str) -> datetime | None:
    try:
        instant = datetime.fromisoformat(line.partition(" ")[0])
    except ValueError:
        return None
    return instant if instant.tzinfo else None
