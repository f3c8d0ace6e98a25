"""Decision whether a gardenlet may hold the Lease of its seed. The holder is active; the others stand by.

    | held here   | last on the bus                               | decision                   |
    |-------------|-----------------------------------------------|----------------------------|
    | yes         | mine (a publish of unknown outcome too)       | renew                      |
    | yes or no   | nothing, a server's marker                    | acquire                    |
    | no          | mine (from an earlier process), released      | acquire                    |
    | yes or no   | another's, not older than the grace period    | stand by                   |
    | yes or no   | another's, older                              | acquire                    |

Every publish expects the sequence that it was decided on, so that of two only one succeeds.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import LEASE_NAMESPACE
from gardenbus.common.ports.clock import timestamp


class ObservedLease(NamedTuple):
    """Last message on the seed's lease subject. `holder` is "" on a marker and on a released Lease."""

    sequence: int
    holder: str
    at: datetime


class RenewLease(NamedTuple):
    """Renew; publish after `expected`."""

    expected: int


class AcquireLease(NamedTuple):
    """Become active; publish after `expected` (0: nothing is there)."""

    expected: int


class StandBy(NamedTuple):
    """Another holder is active."""

    holder: str


LeaseDecision = RenewLease | AcquireLease | StandBy


def decide_lease(
    observed: ObservedLease | None, *, identity: str, is_held: bool, now: datetime, grace_period: timedelta
) -> LeaseDecision:
    """Decide by the table of the module. `now` and `observed.at` are the server's times."""
    if observed is None:
        return AcquireLease(0)
    if observed.holder == identity:
        return RenewLease(observed.sequence) if is_held else AcquireLease(observed.sequence)
    if not observed.holder or now - observed.at > grace_period:
        return AcquireLease(observed.sequence)
    return StandBy(observed.holder)


def lease_manifest(
    seed: str, *, holder: str, resync_seconds: int, renewed_at: datetime, seed_uid: str | None
) -> Document:
    """The published Lease. Source: Gardener's `gardenlet/controller/lease/reconciler.go`."""
    metadata: Document = {"name": seed, "namespace": LEASE_NAMESPACE}
    if seed_uid:
        owner = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "name": seed, "uid": seed_uid}
        metadata["ownerReferences"] = [owner]
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": resync_seconds, "renewTime": micro_time(renewed_at)},
    }


def micro_time(instant: datetime) -> str:
    """RFC 3339 in UTC with microseconds, as Kubernetes' MicroTime."""
    return f"{timestamp(instant)[:-1]}.{instant.microsecond:06d}Z"
