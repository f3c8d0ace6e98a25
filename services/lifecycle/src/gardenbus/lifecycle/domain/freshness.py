"""Lease renewal: which heartbeats renew a seed's Lease, and when the Lease expires.

A Lease's age counts from its *arrival* on the bus, not from the time that the gardenlet wrote: a wrong clock can
neither kill a living seed nor keep a dead one alive. The written time (`spec.renewTime`) only distinguishes a renewal
from a repetition. Instants called `..._at` are seconds of this process' monotonic clock.
"""

from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

import msgspec

from gardenbus.common.api.decoding import json_decoder

NEVER = float("-inf")

_Instant = Annotated[datetime, msgspec.Meta(tz=True)]


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    renew_time: _Instant | None = None
    acquire_time: _Instant | None = None


class _Lease(msgspec.Struct, frozen=True, gc=False):
    spec: _LeaseSpec


_decode = json_decoder(_Lease)


class LeaseTimes(NamedTuple):
    """Times of a Lease manifest."""

    renewed: datetime
    acquired: datetime | None


class LeaseUnreadable(ValueError):
    """The message is no Lease with a renewal time; the text is the reason."""


class LeaseRecord(NamedTuple):
    """Heartbeats of one seed.

    `renewed` is the newest plausible renewTime, `ahead` that of a gardenlet whose clock runs far ahead (None once it
    was set right). Each is only compared with its like, so that a clock set back does not silence a seed.
    """

    arrived_at: float = NEVER
    renewed: datetime | None = None
    ahead: datetime | None = None


class Renewed(NamedTuple):
    """The seed is alive."""

    record: LeaseRecord


class RenewedAhead(NamedTuple):
    """The seed is alive, but its clock is wrong. `is_first`: it was right before."""

    record: LeaseRecord
    ahead_by: timedelta
    is_first: bool


class NotNewer(NamedTuple):
    """A repetition: it renews nothing."""


Heartbeat = Renewed | RenewedAhead | NotNewer


def read_lease(body: bytes) -> LeaseTimes:
    """Read the times of a Lease manifest; raises LeaseUnreadable."""
    try:
        spec = _decode(body).spec
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LeaseUnreadable(str(error)) from error
    if spec.renew_time is None:
        raise LeaseUnreadable("spec.renewTime is missing")
    return LeaseTimes(spec.renew_time, spec.acquire_time)


def accept_heartbeat(
    record: LeaseRecord, renew_time: datetime, *, server_time: datetime, arrived_at: float, tolerance: timedelta
) -> Heartbeat:
    """Decide what a Lease message does. "Far ahead" is relative to `server_time`, the bus' clock at its arrival."""
    if renew_time - server_time > tolerance:
        if record.ahead is not None and renew_time <= record.ahead:
            return NotNewer()
        moved = LeaseRecord(max(arrived_at, record.arrived_at), record.renewed, renew_time)
        return RenewedAhead(moved, renew_time - server_time, is_first=record.ahead is None)
    if record.renewed is not None and renew_time <= record.renewed:
        return NotNewer()
    return Renewed(LeaseRecord(max(arrived_at, record.arrived_at), renew_time, None))


def expires_at(record: LeaseRecord | None, *, healthy_since: float, monitor_period: float) -> float:
    """Expiry of a seed's Lease: a period after its last renewal, or after the end of the last outage."""
    arrived_at = NEVER if record is None else record.arrived_at
    return max(arrived_at, healthy_since) + monitor_period
