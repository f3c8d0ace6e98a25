"""Silence of a gardenlet: since when, and why, in words for conditions and Events."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.ports.clock import parse_timestamp, timestamp


class Silence(NamedTuple):
    """The last heartbeat of a gardenlet (None: none is known any more), and a sentence on its cause ("": unknown)."""

    last_heartbeat: datetime | None = None
    cause: str = ""

    def described(self, what: str) -> str:
        """`what` happened, since when, and why: each a sentence."""
        since = f"Last heartbeat: {timestamp(self.last_heartbeat)}." if self.last_heartbeat else ""
        return " ".join(filter(None, (what, since, self.cause)))


def cause_of_silence(seed: Document, revoked: Mapping[str, str], now: datetime) -> str:
    """The cause as far as the store knows it: revoked credentials, or a certificate that has ended; "" for none.

    `revoked` are the lines of the revocations, by user or serial number.
    """
    if line := revoked.get(Principal("gardenlet", str(section(seed, "metadata").get("name"))).user):
        at, _, reason = line.partition(" ")
        why = f" ({reason.strip()})" if reason.strip() else ""
        return f"Its credentials were revoked at {_whole_seconds(at)}{why}."
    if ended := expired_certificate(seed, now):
        return f"Its client certificate expired at {ended}."
    return ""


def expired_certificate(document: Document, now: datetime) -> str | None:
    """Expiry of the gardenlet's client certificate (as written) once it is over, None before."""
    written = section(document, "status").get("clientCertificateExpirationTimestamp")
    expiry = parse_timestamp(written)
    return str(written) if expiry is not None and expiry < now else None


def _whole_seconds(text: str) -> str:
    at = parse_timestamp(text)
    return timestamp(at) if at else text
