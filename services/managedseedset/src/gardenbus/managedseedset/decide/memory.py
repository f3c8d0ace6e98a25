"""What a set remembers of each replica beyond what the replica's own objects say: `status.replicaRecords`.

`established`: it was ready once, so it is no longer in the making. `retry`: how often its Shoot's failed operation was
asked to go on, and which generations that counts for:

| the Shoot's generation is …            | then it has failed …                                          |
|----------------------------------------|---------------------------------------------------------------|
| the one the retry was asked at         | before: the request has not been taken up yet; ask again      |
| the next one, and it may be retried    | once more: the retry itself raised the generation             |
| any other, or the set's spec changed   | anew: counting starts again                                   |

Gardener forgets the count as soon as the maximum was reached, and starts over; here it stands until one of the two
changes.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gardenbus.common.resources.document import Document, section
from gardenbus.managedseedset.decide.replicas import Replica, Stage

RECONCILIATION = "reconciliation"
DELETION = "deletion"


class Retry(msgspec.Struct, frozen=True, rename="camel"):
    """How often an operation was asked to go on. `exhausted`: no more, as the maximum was reached."""

    operation: str
    retries: int
    shoot_generation: int
    set_generation: int
    exhausted: bool = False


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is remembered of one replica."""

    established: bool = False
    retry: Retry | None = None


Records = Mapping[str, Record]


def records_of(status: Document) -> dict[str, Record]:
    """Read the records; what cannot be read counts as none."""
    records: dict[str, Record] = {}
    for name, value in section(status, "replicaRecords").items():
        try:
            records[name] = msgspec.convert(value, Record)
        except msgspec.ValidationError:
            continue
    return records


def written(records: Records) -> dict[str, Any]:
    """The records as the status holds them; empty ones are left out."""
    return {name: msgspec.to_builtins(record) for name, record in sorted(records.items()) if record != Record()}


def refreshed(record: Record, replica: Replica, set_generation: int) -> Record:
    """The record after a look at the replica: established once it is ready, retries dropped once they are over."""
    established = record.established or replica.is_ready
    retry = record.retry
    if retry is not None and (_is_over(retry, replica) or not _counts(retry, replica, set_generation)):
        retry = None
    return Record(established, retry)


def asked_again(retry: Retry | None, operation: str, replica: Replica, set_generation: int, most: int) -> Retry:
    """What becomes of the count when a failed operation is found."""
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
    return replica.shoot_settled or deleting != (retry.operation == DELETION)


def _counts(retry: Retry, replica: Replica, set_generation: int) -> bool:
    allowed = {retry.shoot_generation} if retry.exhausted else {retry.shoot_generation, retry.shoot_generation + 1}
    return retry.set_generation == set_generation and replica.shoot_generation in allowed
