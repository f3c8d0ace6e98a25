"""Replica history in `status.replicaRecords`: what the replica's own objects do not show.

`established`: it was ready once, so it is complete. `retry`: the number of retries of its Shoot's failed operation, and
the generations that it counts for:

| the Shoot's generation is …            | then it has failed …                                          |
|----------------------------------------|---------------------------------------------------------------|
| the one of the retry's request         | before: the request was not observed yet; request it again    |
| the next one, and it may be retried    | once more: the retry itself raised the generation             |
| any other, or the set's spec changed   | anew: counting starts again                                   |

Gardener resets the count as soon as the maximum was reached, and starts over; here it stays until one of the two
changes.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gardenbus.common.api.document import Document, section
from gardenbus.managedseedset.domain.replicas import Replica, Stage

RECONCILIATION = "reconciliation"
DELETION = "deletion"


class Retry(msgspec.Struct, frozen=True, rename="camel"):
    """Retries of an operation. `exhausted`: the maximum was reached."""

    operation: str
    retries: int
    shoot_generation: int
    set_generation: int
    exhausted: bool = False


class ReplicaRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """History of one replica."""

    established: bool = False
    retry: Retry | None = None


ReplicaRecords = Mapping[str, ReplicaRecord]


def decode_records(status: Document) -> dict[str, ReplicaRecord]:
    """Decode the records; one that cannot be read counts as none."""
    records: dict[str, ReplicaRecord] = {}
    for name, value in section(status, "replicaRecords").items():
        try:
            records[name] = msgspec.convert(value, ReplicaRecord)
        except msgspec.ValidationError:
            continue
    return records


def encode_records(records: ReplicaRecords) -> dict[str, Any]:
    """Encode the records for the status; empty ones are left out."""
    return {name: msgspec.to_builtins(record) for name, record in sorted(records.items()) if record != ReplicaRecord()}


def refresh_record(record: ReplicaRecord, replica: Replica, set_generation: int) -> ReplicaRecord:
    """Update a record from its replica: established once it is ready, retries dropped once they are over."""
    established = record.established or replica.is_ready
    retry = record.retry
    if retry is not None and (_is_over(retry, replica) or not _counts(retry, replica, set_generation)):
        retry = None
    return ReplicaRecord(established, retry)


def count_retry(retry: Retry | None, operation: str, replica: Replica, set_generation: int, most: int) -> Retry:
    """Update the count for a failed operation."""
    generation = replica.shoot_generation
    if retry is None or retry.operation != operation:
        retry = Retry(operation, 0, -1, set_generation)
    if retry.shoot_generation == generation:
        return retry
    if retry.retries >= most:
        return Retry(operation, retry.retries, generation, set_generation, exhausted=True)
    return Retry(operation, retry.retries + 1, generation, set_generation)


def _is_over(retry: Retry, replica: Replica) -> bool:
    deleting = replica.stage in (Stage.SHOOT_DELETING, Stage.SHOOT_DELETE_FAILED)
    return replica.shoot_reconciled or deleting != (retry.operation == DELETION)


def _counts(retry: Retry, replica: Replica, set_generation: int) -> bool:
    allowed = {retry.shoot_generation} if retry.exhausted else {retry.shoot_generation, retry.shoot_generation + 1}
    return retry.set_generation == set_generation and replica.shoot_generation in allowed
