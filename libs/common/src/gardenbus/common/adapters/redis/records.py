"""Stored objects as Redis hashes: the fields of `functions/`, read and written in one place."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from gardenbus.common.adapters.redis.compression import compress, decompress, decompress_shared
from gardenbus.common.api.changes import ObjectChange
from gardenbus.common.api.document import Document, Parts, StoredObject, encode, section, split
from gardenbus.common.api.index_keys import IndexKeys, index_keys_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.store import EventRecord

PARTS = (
    "av", "kd", "meta", "labels", "fin", "spec", "status", "rest", "seed", "sseed",
    "uid", "ver", "gen", "created", "del", "pend", "gate",
)  # fmt: skip
"""The fields of a reply, in the order of functions/keys.lua."""

PRIVATE = ("last", "rf", "setters")
"""Fields that only the apiserver reads."""

COMPRESSED = ("spec", "status", "last")
"""Long fields. No function looks into them, but for a ResourceQuota's status, which `quotas.lua` writes as it is."""

_LONGEST_OF_ONE_BYTE, _LONGEST_OF_TWO = 0xFF, 0xFFFF


def event_fields(event: EventRecord, now: str) -> dict[str, str]:
    """An Event as the functions take it."""
    return {
        "key": event.about.stored,
        "uid": event.uid,
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "by": event.reporter,
        "action": event.action,
        "now": now,
    }


def read_record(key: ObjectKey, values: Sequence[bytes | None]) -> StoredObject | None:
    """Build an object from the fields PARTS (and PRIVATE, when given); None when there is none. Raises Unavailable."""
    fields = [value or b"" for value in values]
    if not fields[11]:
        return None
    return StoredObject(
        key=key,
        parts=Parts(
            api_version=fields[0].decode(),
            kind=fields[1].decode(),
            meta=fields[2],
            labels=fields[3],
            finalizers=tuple(fields[4].decode().split("\n")) if fields[4] else (),
            spec=_text(key, fields[5], decompress_shared),
            status=_text(key, fields[6]),
            rest=fields[7],
            seed_name=fields[8].decode(),
            status_seed_name=fields[9].decode(),
        ),
        uid=fields[10].decode(),
        version=int(fields[11]),
        generation=int(fields[12]),
        created_at=fields[13].decode(),
        deleting_at=fields[14].decode(),
        pending=fields[15],
        scheduling_generation=int(fields[16] or 0),
        last_applied=_text(key, fields[17]) if len(fields) > len(PARTS) else b"",
        report_stamps=fields[18] if len(fields) > len(PARTS) else b"",
        owner_setters=fields[19] if len(fields) > len(PARTS) else b"",
    )


def _text(key: ObjectKey, field: bytes, read: Callable[[bytes], bytes] = decompress) -> bytes:
    try:
        return read(field)
    except zlib.error as error:
        raise Unavailable(f"{key}: a stored field cannot be read: {error}") from error


def written_fields(parts: Parts, index_keys: IndexKeys) -> dict[str, str]:
    """All hash fields that follow from a document; empty text removes a field."""
    return {
        "av": parts.api_version,
        "kd": parts.kind,
        "meta": parts.meta.decode(),
        "labels": parts.labels.decode(),
        "fin": "\n".join(parts.finalizers),
        "spec": parts.spec.decode(),
        "status": parts.status.decode(),
        "rest": parts.rest.decode(),
        "seed": parts.seed_name,
        "sseed": parts.status_seed_name,
        "sched": index_keys.scheduler_name,
        "cap": index_keys.capacity,
        "refs": "\n".join(index_keys.references),
        "own": "\n".join(index_keys.owners),
        "claims": "\n".join(index_keys.claims),
        "mark": index_keys.removal_owner,
        "op": index_keys.operation,
        "quota": "\n".join(index_keys.quota),
        "demand": "\n".join(index_keys.demands),
        "rq": "\n".join(index_keys.requests),
        "grp": "\n".join(index_keys.groups),
        "bd": index_keys.band,
        "alc": "\n".join(index_keys.allocatable),
    }


def created_fields(change: ObjectChange) -> dict[str, str | msgspec.Raw]:
    """The fields of a new object, but for `meta`, as an operation of the functions carries them."""
    parts = change.parts._replace(meta=b"")
    fields = {name: value for name, value in written_fields(parts, change.index_keys).items() if value}
    return packed_fields(fields)


def packed_fields(fields: Mapping[str, str]) -> dict[str, str | msgspec.Raw]:
    """Fields as an operation of the functions carries them: COMPRESSED ones compressed."""
    packed: dict[str, str | msgspec.Raw] = {**fields}
    for name in COMPRESSED:
        if text := fields.get(name):
            packed[name] = packed_text(text.encode())
    return packed


def packed_text(text: bytes) -> msgspec.Raw:
    """A text, compressed if that makes it shorter, as a string of msgpack: Redis' cmsgpack knows no binaries."""
    field = compress(text)
    size = len(field)
    if size <= _LONGEST_OF_ONE_BYTE:
        return msgspec.Raw(b"\xd9" + size.to_bytes(1) + field)
    if size <= _LONGEST_OF_TWO:
        return msgspec.Raw(b"\xda" + size.to_bytes(2) + field)
    return msgspec.Raw(b"\xdb" + size.to_bytes(4) + field)


def applied_reply(base: StoredObject, parts: Parts, values: Sequence[Any]) -> StoredObject:
    """Build the object that a write left behind from what the writer had and what the function returned."""
    version, generation, uid, created, deleting, scheduling_generation, pending, quota, status = (
        (value or b"") for value in values
    )
    if quota:
        parts = parts._replace(status=status)
    return StoredObject(
        key=base.key,
        parts=parts,
        uid=uid.decode(),
        version=int(version),
        generation=int(generation),
        created_at=created.decode(),
        deleting_at=deleting.decode(),
        pending=pending,
        scheduling_generation=int(scheduling_generation or 0),
        last_applied=base.last_applied,
        report_stamps=base.report_stamps,
        owner_setters=base.owner_setters,
    )


def restored_fields(document: Document, version: int) -> dict[str, str]:
    """All hash fields of an object that comes back from the bus, empty ones included (they remove what stood there)."""
    metadata = section(document, "metadata")
    operation = section(document, "status", "lastOperation")
    pending = ""
    if document["kind"] == "Shoot" and operation.get("type") == "Create" and operation.get("state") == "Pending":
        pending = encode(operation)[1:-1].decode()
        status = {name: value for name, value in section(document, "status").items() if name != "lastOperation"}
        document = {**document, "status": status}
    return {
        **written_fields(split(document), index_keys_of(document)),
        "uid": metadata["uid"],
        "gen": str(metadata.get("generation", 1)),
        "created": metadata["creationTimestamp"],
        "del": metadata.get("deletionTimestamp") or "",
        "pend": pending,
        "gate": str(version) if document["kind"] == "Seed" else "",
    }
