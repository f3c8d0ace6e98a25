"""Leases of seeds as they are published: what the server owns of one, and what makes it a heartbeat. Pure.

Versions are instants in microseconds, as the bus numbers messages anew where it has lost them.
"""

from datetime import datetime
from typing import Annotated

import msgspec

from gardenbus.common.api.document import Document, section
from gardenbus.kubeapi.domain.statuses import Rejected


class HeartbeatSpec(msgspec.Struct, rename="camel"):
    """The `spec` of a heartbeat."""

    renew_time: Annotated[datetime, msgspec.Meta(tz=True)]
    holder_identity: str | None = None
    lease_duration_seconds: Annotated[int, msgspec.Meta(ge=1)] | None = None
    lease_transitions: Annotated[int, msgspec.Meta(ge=0)] | None = None
    acquire_time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class HeartbeatMetadata(msgspec.Struct, rename="camel"):
    """Metadata that a Lease states."""

    name: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None


NOTHING = HeartbeatMetadata()


def metadata_of(lease: Document) -> HeartbeatMetadata:
    """Metadata that a Lease states; NOTHING where that cannot be read."""
    try:
        return msgspec.convert(section(lease, "metadata"), HeartbeatMetadata)
    except msgspec.ValidationError:
        return NOTHING


def stamped(lease: Document, before: HeartbeatMetadata, *, now: datetime, uid: str) -> Document:
    """A Lease with what the server owns; `uid` is that of a new one. Raises Rejected for one that is no heartbeat."""
    try:
        msgspec.convert(section(lease, "spec"), HeartbeatSpec)
    except msgspec.ValidationError as error:
        raise _invalid(lease, str(error)) from error
    version = max(int(now.timestamp() * 1_000_000), int(before.resource_version or 0) + 1)
    own = {
        "uid": before.uid or uid,
        "creationTimestamp": before.creation_timestamp or f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "resourceVersion": str(version),
    }
    return {**lease, "metadata": {**section(lease, "metadata"), **own}}


def versioned(lease: Document, sent_at: datetime) -> tuple[int, Document]:
    """The version of a Lease, and the Lease with it: the one that it states, else the instant at which it was sent."""
    version = int(metadata_of(lease).resource_version or sent_at.timestamp() * 1_000_000)
    return version, {**lease, "metadata": {**section(lease, "metadata"), "resourceVersion": str(version)}}


def _invalid(lease: Document, problem: str) -> Rejected:
    message, _, place = problem.partition(" - at `$")
    field = f"spec{place.rstrip('`')}"
    if "renewTime" in problem:
        field, message = "spec.renewTime", "Required value: a heartbeat states when it was sent"
    about = f'Lease.coordination.k8s.io "{metadata_of(lease).name}" is invalid: {field}: {message}'
    return Rejected(422, "Invalid", about, [{"reason": "FieldValueInvalid", "message": message, "field": field}])
