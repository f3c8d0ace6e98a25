"""Decides how long a Bastion lives: an hour from its last heartbeat, a day at most, and no longer than its shoot.

The annotation `gardener.cloud/operation: keepalive` is the heartbeat. Source: Gardener's
`pkg/controllermanager/controller/bastion` and `pkg/apiserver/registry/operations/bastion/strategy.go`.
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.clock import parse_timestamp, timestamp

OPERATION = "gardener.cloud/operation"
KEEPALIVE = "keepalive"
TIME_TO_LIVE = timedelta(hours=1)


class LeaveBastion(NamedTuple):
    """Nothing is done about it; it is being deleted."""


class DeleteBastion(NamedTuple):
    """It has to go; `reason` says why."""

    reason: str


class WriteBastion(NamedTuple):
    """A heartbeat is recorded, or the first expiration set."""

    document: Document


class AwaitExpiration(NamedTuple):
    """It lives until this instant."""

    at: datetime


BastionDecision = LeaveBastion | DeleteBastion | WriteBastion | AwaitExpiration


def shoot_of(bastion: Document) -> ObjectKey:
    """The shoot that a Bastion leads into."""
    name = section(bastion, "spec", "shootRef").get("name")
    namespace = section(bastion, "metadata").get("namespace")
    return ObjectKey("shoot", str(namespace or ""), str(name or ""))


def decide_bastion(bastion: Document, shoot: Document | None, now: datetime, longest: timedelta) -> BastionDecision:
    """Decide about a Bastion. Its shoot is None when it is gone."""
    metadata, status = section(bastion, "metadata"), section(bastion, "status")
    if metadata.get("deletionTimestamp"):
        return LeaveBastion()
    if reason := _reason_to_go(bastion, shoot):
        return DeleteBastion(reason)
    ends_at = (parse_timestamp(metadata.get("creationTimestamp")) or now) + longest
    expires_at = parse_timestamp(status.get("expirationTimestamp"))
    if ends_at <= now:
        return DeleteBastion(f"it has reached its maximum lifetime of {longest}")
    if expires_at is not None and expires_at <= now:
        return DeleteBastion(f"it expired at {status.get('expirationTimestamp')}")
    if expires_at is None or section(metadata, "annotations").get(OPERATION) == KEEPALIVE:
        return WriteBastion(_with_heartbeat(bastion, now, ends_at))
    return AwaitExpiration(min(expires_at, ends_at))


def _reason_to_go(bastion: Document, shoot: Document | None) -> str:
    if shoot is None:
        return "its shoot is gone"
    if section(shoot, "metadata").get("deletionTimestamp"):
        return "its shoot is being deleted"
    own, seed = section(bastion, "spec").get("seedName"), section(shoot, "spec").get("seedName")
    return f"its shoot has moved from the seed {own} to {seed}" if own and own != seed else ""


def _with_heartbeat(bastion: Document, now: datetime, ends_at: datetime) -> Document:
    metadata = section(bastion, "metadata")
    annotations: dict[str, Any] = {
        name: value
        for name, value in section(metadata, "annotations").items()
        if (name, value) != (OPERATION, KEEPALIVE)
    }
    beat: Document = {
        "lastHeartbeatTimestamp": timestamp(now),
        "expirationTimestamp": timestamp(min(now + TIME_TO_LIVE, ends_at)),
    }
    others = {name: value for name, value in metadata.items() if name != "annotations"}
    return {
        **bastion,
        "metadata": {**others, "annotations": annotations} if annotations else others,
        "status": {**section(bastion, "status"), **beat},
    }
