"""Decides when a shoot whose Quotas limit the lifetime of clusters is deleted.

The annotation `shoot.gardener.cloud/expiration-timestamp` says when. It is set when a limit first applies, may be
written by people (admission keeps it within the limit from that moment), and never lies further ahead than the limit:
where a Quota was lowered, it is taken back. Without a limit it is removed.

Source: Gardener's `pkg/controllermanager/controller/shoot/quota`.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.quotas import EXPIRATION_ANNOTATION, expiration_of
from gardenbus.common.ports.clock import parse_timestamp, timestamp


class KeepShoot(NamedTuple):
    """The shoot lives until this instant; None: there is no limit."""

    expires_at: datetime | None


class AnnotateExpiration(NamedTuple):
    """The annotation is set to an instant, or removed (None)."""

    expires_at: datetime | None

    @property
    def patch(self) -> Document:
        """The merge patch that writes it."""
        value = None if self.expires_at is None else timestamp(self.expires_at)
        return {"metadata": {"annotations": {EXPIRATION_ANNOTATION: value}}}


class DeleteExpired(NamedTuple):
    """The shoot has lived as long as it may."""

    expired_at: datetime


ExpiryDecision = KeepShoot | AnnotateExpiration | DeleteExpired


def decide_expiry(shoot: Document, lifetime: timedelta | None, now: datetime) -> ExpiryDecision:
    """Decide about a shoot, by the least lifetime of its Quotas (None: none of them limits it)."""
    metadata = section(shoot, "metadata")
    written = section(metadata, "annotations").get(EXPIRATION_ANNOTATION)
    if metadata.get("deletionTimestamp"):
        return KeepShoot(None)
    if lifetime is None:
        return KeepShoot(None) if written is None else AnnotateExpiration(None)
    expires_at = parse_timestamp(written)
    if expires_at is None:
        created_at = parse_timestamp(metadata.get("creationTimestamp")) or now
        return AnnotateExpiration(expiration_of(created_at, lifetime))
    if expires_at < now:
        return DeleteExpired(expires_at)
    latest = now + lifetime
    return AnnotateExpiration(latest) if expires_at > latest else KeepShoot(expires_at)
