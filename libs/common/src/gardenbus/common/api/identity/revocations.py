"""Revoked credentials: a ConfigMap with a line for each user, or serial number of a certificate. Pure.

A line says when, and why: `2026-03-01T12:00:00Z stolen`. What a user was issued after that is not revoked; a line
without a time revokes for ever.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.errors import BadRequest

REVOCATIONS = ObjectKey("configmap", GARDEN_NAMESPACE, "revoked-credentials")

REMOVED = "removed"
"""Reason of a revocation that came with the removal of what somebody acted for (a Seed, a MemberCluster)."""

_OUTLIVED = timedelta(days=366)
"""Longest life of a credential that is issued: what was revoked then has ended by itself."""

_SERIAL = re.compile(r"[0-9a-f]{16,40}")


def is_serial(text: str) -> bool:
    """True for what can be the serial number of a certificate (lower-case hexadecimal)."""
    return bool(_SERIAL.fullmatch(text))


def revocation(name: str, at: datetime, reason: str) -> Document:
    """The ConfigMap with one line, which is also a merge patch of it."""
    line = f"{at.astimezone(UTC).isoformat().replace('+00:00', 'Z')} {reason}".strip()
    metadata = {"name": REVOCATIONS.name, "namespace": REVOCATIONS.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {name: line}}


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


class _RevocationsMap(msgspec.Struct):
    data: dict[str, str] = {}


_decode = json_decoder(_RevocationsMap)


def lines_in(stored: StoredObject) -> Mapping[str, str]:
    """The lines of the ConfigMap. Raises BadRequest for one that cannot be read."""
    try:
        return _decode(stored.encoded()).data
    except msgspec.MsgspecError as error:
        raise BadRequest(f"{REVOCATIONS}: {error}") from error


def revocations_in(stored: StoredObject) -> Revocations:
    """The revocations of the ConfigMap. Raises BadRequest for one that cannot be read."""
    return read_revocations(lines_in(stored))


def is_of_removal(line: str) -> bool:
    """True for a revocation that came with a removal."""
    return line.partition(" ")[2] == REMOVED


def without_outlived(lines: Mapping[str, str], now: datetime) -> Mapping[str, str]:
    """The lines without those of removals after which everything that was revoked has ended."""
    return {
        name: line
        for name, line in lines.items()
        if not (is_of_removal(line) and (since := _instant(line)) and now - since > _OUTLIVED)
    }


def _instant(line: str) -> datetime | None:
    try:
        instant = datetime.fromisoformat(line.partition(" ")[0])
    except ValueError:
        return None
    return instant if instant.tzinfo else None
