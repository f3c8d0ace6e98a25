"""May this gardenlet hold the Lease of its seed? Active is who holds it; the others stand by.

    | held here   | last on the bus                         | answer                           |
    |-------------|-----------------------------------------|----------------------------------|
    | yes         | mine (a publish of unknown outcome too) | renew                            |
    | yes or no   | nothing, a server's marker              | take                             |
    | no          | mine (from an earlier life), released   | take                             |
    | yes or no   | another's, not older than the patience  | stand by                         |
    | yes or no   | another's, older                        | take                             |

Whatever the answer, the publish is bound to the sequence that it was decided on, so that of two only one succeeds.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from gardenbus.common.ports.clock import timestamp
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import LEASE_NAMESPACE


class LeaseSeen(NamedTuple):
    """The last message on the seed's lease subject. `holder` is "" on a marker and on a released Lease."""

    sequence: int
    holder: str
    at: datetime


class Renew(NamedTuple):
    """Go on; publish after `expected`."""

    expected: int


class Take(NamedTuple):
    """Become the active one; publish after `expected` (0: nothing is there)."""

    expected: int


class StandBy(NamedTuple):
    """Another one is active."""

    holder: str


LeaseDecision = Renew | Take | StandBy


def judge_lease(
    seen: LeaseSeen | None, *, identity: str, is_held: bool, now: datetime, patience: timedelta
) -> LeaseDecision:
    """Decide by the table above. `now` and `seen.at` are the server's times."""
    if seen is None:
        return Take(0)
    if seen.holder == identity:
        return Renew(seen.sequence) if is_held else Take(seen.sequence)
    if not seen.holder or now - seen.at > patience:
        return Take(seen.sequence)
    return StandBy(seen.holder)


def lease_manifest(
    seed: str, *, holder: str, resync_seconds: int, renewed_at: datetime, seed_uid: str | None
) -> Document:
    """The Lease as it is published. Source: Gardener's `gardenlet/controller/lease/reconciler.go`."""
    metadata: Document = {"name": seed, "namespace": LEASE_NAMESPACE}
    if seed_uid:
        owner = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "name": seed, "uid": seed_uid}
        metadata["ownerReferences"] = [owner]
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": resync_seconds,
            "renewTime": micro_time(renewed_at),
        },
    }


def micro_time(instant: datetime) -> str:
    """RFC 3339 in UTC with microseconds, as Kubernetes' MicroTime."""
    return f"{timestamp(instant)[:-1]}.{instant.microsecond:06d}Z"
