"""Changes of a shoot's etcd: as its gateway reports them, as they are kept between two backups, and as transactions.

Keys and values are base64, as etcd's JSON gateway has them. Every revision of etcd is one transaction, whose events
come together; a restore carries them out one by one, and ends at the very revision at which the last of them was taken.
Source: Gardener's etcd-backup-restore (`pkg/snapshot/snapshotter` and `restorer`), whose files are of another format.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from gardenbus.common.api.document import Document

PUT, DELETE = "PUT", "DELETE"
LEASE_SECONDS = 3600
"""Life of a restored lease: that of Kubernetes' Events, which are nearly all that has one."""


class KeyValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """A key with what was written to it. `lease`: the value goes when this one ends; 0 without one."""

    key: str
    mod_revision: int
    value: str = ""
    lease: int = 0


class EtcdEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """A write (`PUT`) or a removal (`DELETE`)."""

    kv: KeyValue
    type: str = PUT


class Changes(msgspec.Struct, frozen=True):
    """All events up to a revision that no earlier `Changes` has."""

    revision: int
    events: tuple[EtcdEvent, ...]


class _WatchResult(msgspec.Struct, frozen=True):
    events: tuple[EtcdEvent, ...] = ()
    canceled: bool = False
    compact_revision: int = 0


class _WatchLine(msgspec.Struct, frozen=True):
    result: _WatchResult = _WatchResult()
    error: Document | None = None


class Compacted(Exception):
    """Events are gone, because etcd has compacted them."""


def events_in(line: bytes) -> tuple[EtcdEvent, ...]:
    """Events of a line of a watch. Raises Compacted, and ValueError for a line that reports an error or is none."""
    reported = msgspec.json.decode(line, type=_WatchLine, strict=False)
    if reported.result.compact_revision:
        raise Compacted(f"etcd has compacted what came before revision {reported.result.compact_revision}")
    if reported.error is not None or reported.result.canceled:
        raise ValueError(f"etcd has ended the watch: {reported.error or 'without a word'}")
    return reported.result.events


def watch_request(after: int) -> Document:
    """Watch of all keys, for what has changed above a revision."""
    return {"create_request": {"key": "AA==", "range_end": "AA==", "start_revision": str(after + 1)}}


def transactions(changes: Iterable[Changes]) -> Iterator[tuple[int, Sequence[EtcdEvent]]]:
    """Events by revision, in order."""
    revision, together = 0, list[EtcdEvent]()
    for event in (event for each in changes for event in each.events):
        if event.kv.mod_revision != revision and together:
            yield revision, together
            together = []
        revision = event.kv.mod_revision
        together.append(event)
    if together:
        yield revision, together


def transaction_request(events: Sequence[EtcdEvent]) -> Document:
    """Transaction that carries events out."""
    return {"success": [_operation(each) for each in events]}


def lease_request(lease: int) -> Document:
    """Grant of a lease of this number."""
    return {"ID": str(lease), "TTL": str(LEASE_SECONDS)}


def _operation(event: EtcdEvent) -> Document:
    if event.type == DELETE:
        return {"request_delete_range": {"key": event.kv.key}}
    put: Document = {"key": event.kv.key, "value": event.kv.value}
    if event.kv.lease:
        put["lease"] = str(event.kv.lease)
    return {"request_put": put}
