"""The outbox on Redis: `ports.outbox.Outbox` over the Redis Functions in `functions/`."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from gardenbus.common.adapters.redis.compression import decompress
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.records import event_fields, packed_fields, read_record, restored_fields
from gardenbus.common.adapters.redis.recovery import recovery_of
from gardenbus.common.adapters.redis.store import origin_text
from gardenbus.common.adapters.redis.stream_histories import RedisStreamHistories
from gardenbus.common.adapters.store_responses import scheduled_event
from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.garden.busy_shoots import operation_key
from gardenbus.common.api.index_keys import LATER_INDEXED_KINDS, index_keys_of
from gardenbus.common.api.keys import CLUSTER_SCOPE, ObjectKey
from gardenbus.common.errors import Conflict, Unavailable
from gardenbus.common.ports.bus import StreamPosition
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import VERSION_LEAP, EventRecord, RequestOrigin, opening_version
from gardenbus.common.ports.stream_history import StreamLoss
from gardenbus.relay.ports.outbox import (
    NO_CAUSE,
    EventEntry,
    IndexedUpTo,
    Leadership,
    ObjectEntry,
    OutboxEntry,
    OutboxPage,
    QueueEntry,
    RecoveryProgress,
    RecoveryStart,
    Restored,
    Shown,
)

_PAGE = 500

RENEWED_AT = 0.2
"""The share of its time after which a lead is renewed, between the pages of a walk."""

_decode = json_decoder(Document)


class RedisOutbox(RedisStreamHistories):
    """See `ports.outbox.Outbox`. `leader` names this relay."""

    def __init__(self, connection: RedisConnection, clock: Clock, *, leader: str) -> None:
        super().__init__(connection)
        self._clock = clock
        self._leader = leader
        self._last_seen = "0-0"
        self._counted_up_to, self._objects_counted_up_to = "", "0"
        self._lead_seconds = 0.0
        self._renew_at = 0.0

    async def lead(self, ttl_seconds: float) -> Leadership:
        """Take or keep the lead."""
        self._lead_seconds, self._renew_at = ttl_seconds, self._clock.monotonic() + ttl_seconds * RENEWED_AT
        reply = await self._connection.call("lead", {"leader": self._leader, "ttl_ms": int(ttl_seconds * 1000)})
        leading = reply[0] == b"ok"
        if not leading:
            return Leadership(leading=False, is_open=False)
        return Leadership(
            leading=True, is_open=bool(reply[1]) or await self._connection.join(), is_continued=bool(reply[2])
        )

    async def resign(self) -> None:
        """Give the lead back."""
        await self._connection.call("resign", {"leader": self._leader})

    async def head(self, limit: int, after: str | None = None) -> OutboxPage:
        """Read the oldest entries with their objects."""
        reading = ("outbox", {"limit": limit, "after": after or "", "leader": self._leader})
        page, _ = await self._connection.read_and_write(reading)  # what is announced must not be lost with the master
        return self._page(page)

    async def advance(self, last: str, positions: Mapping[str, StreamPosition], limit: int) -> OutboxPage:
        """Trim, and read what comes after, in one round trip."""
        reading = ("outbox", {"limit": limit, "after": last, "leader": self._leader})
        page, trimmed = await self._connection.read_and_write(reading, ("trim", self._trimming(last, positions)))
        _as_leader(trimmed)
        return self._page(page)

    def _page(self, reply: Sequence[Any]) -> OutboxPage:
        _, raw_entries, documents, recovery_id = _as_leader(reply)
        entries: list[OutboxEntry] = []
        for entry, fields in raw_entries:
            entries += read_entry(entry.decode(), fields)
        objects: dict[ObjectKey, StoredObject | None] = {}
        audiences: dict[ObjectKey, tuple[str, ...]] = {}
        removed: dict[ObjectKey, int] = {}
        of_each = (documents[part::4] for part in range(4))
        for stored, values, seeds, removal in zip(*of_each, strict=True):
            key = ObjectKey.from_stored(stored.decode())
            objects[key] = read_record(key, values)
            if seeds:
                audiences[key] = tuple(seeds.decode().split(","))
            if removal:
                removed[key] = int(removal)
        if entries:
            self._last_seen = entries[-1].entry
        return OutboxPage(entries, objects, audiences, removed, recovery_id.decode())

    async def wait(self, seconds: float) -> None:
        """Block on the outbox's stream."""
        key = self._connection.key("outbox")
        await self._connection.wait("XREAD", "COUNT", 1, "BLOCK", int(seconds * 1000), "STREAMS", key, self._last_seen)

    async def trim(self, last: str | None, positions: Mapping[str, StreamPosition]) -> None:
        """Trim, and remember the positions; what is lost of it is announced once more."""
        await self._led("trim", self._trimming(last, positions), confirm=False)

    def _trimming(self, last: str | None, positions: Mapping[str, StreamPosition]) -> dict[str, Any]:
        return {
            "leader": self._leader,
            "after": _next_entry(last) if last else "",
            "positions": {name: f"{position.created}.{position.sequence}" for name, position in positions.items()},
        }

    async def positions(self) -> Mapping[str, StreamPosition]:
        """Read what was remembered."""
        reply = await self._connection.command("HGETALL", self._connection.key("relay"))
        positions: dict[str, StreamPosition] = {}
        for name, position in _as_dict(reply).items():
            created, sequence = position.decode().split(".")
            positions[name] = StreamPosition(int(created), int(sequence))
        return positions

    async def open(self, version: int, unblock_index: int, start: RecoveryStart = NO_CAUSE) -> None:
        """Open the fence."""
        epoch, now = max(self._connection.epoch, 0), self._clock.now()
        opening: dict[str, Any] = {"token": uuid.uuid4().hex, "db": self._connection.database, "epoch": epoch}
        opening |= {"leap": VERSION_LEAP, "floor": opening_version(now), "now": timestamp(now), "cause": start.cause}
        created, last = start.position.created, start.position.sequence
        opening["requests"] = {"stream": start.stream, "created": f"{created:020d}", "last": last}
        await self._led("open", {"version": version, "unblock_index": unblock_index, **opening})
        await self._connection.retire_older_masters()

    async def advance_recovery(self, waited: str, *, announces: bool) -> RecoveryProgress:
        """Advance it."""
        now = timestamp(self._clock.now())
        reply = await self._led("advance_recovery", {"waited": waited, "announces": announces, "now": now})
        return RecoveryProgress(recovery_of(reply), reply[0] == b"ended")

    async def restore(self, restored: Restored) -> bool:
        """Put one document back."""
        return (await self.restore_many([restored]))[0]

    async def restore_many(self, restored: Sequence[Restored]) -> Sequence[bool]:
        """Put documents back, pipelined."""
        operations = [self._restoring(each) for each in restored]
        replies = await self._connection.call_many("restore", operations) if operations else []
        return [_as_leader(reply)[0] == b"ok" for reply in replies]

    def _restoring(self, restored: Restored) -> dict[str, Any]:
        key, document = restored.key, restored.document
        return {
            "leader": self._leader,
            "key": key.stored,
            "kind": key.kind,
            "ns": key.namespace or CLUSTER_SCOPE,
            "name": key.name,
            "uid": restored.uid,
            "version": restored.version,
            "deleted": document is None,
            "now": timestamp(self._clock.now()),
            "set": {} if document is None else packed_fields(restored_fields(document, restored.version)),
        }

    async def reannounce(self, above_version: int) -> None:
        """Walk both indexes page by page."""
        for index in ("by_version", "graves"):
            version = above_version
            while True:
                await self._keep_lead()
                reply = await self._led("reannounce", {"index": index, "version": version, "limit": _PAGE})
                version = int(reply[1])
                if version == 0:
                    break

    async def obsolete(self, shown: Sequence[Shown]) -> Sequence[bool]:
        """Compare with the objects."""
        operation = {"shown": [{"key": each.key.stored, "seed": each.seed} for each in shown]}
        reply = await self._connection.call("obsolete", operation, read_only=True)
        return [bool(each) for each in reply[1:]]

    async def requeue_pending(self, *, untried_only: bool = False) -> None:
        """Walk the pending shoots of every scheduler, then those that migrate."""
        schedulers = await self._connection.command("SMEMBERS", self._connection.key("schedulers"))
        queues = {f"pending:{scheduler.decode()}": f"scheduling.{scheduler.decode()}" for scheduler in schedulers}
        for members, queue in {**queues, "migrating": "migration"}.items():
            cursor = "0"
            while True:
                operation = {
                    "set": members,
                    "queue": queue,
                    "cursor": cursor,
                    "limit": _PAGE,
                    "untried_only": untried_only and queue != "migration",
                    "bands": queue != "migration",
                }
                await self._keep_lead()
                cursor = (await self._led("requeue", operation))[1].decode()
                if cursor == "0":
                    break
        if untried_only:
            await self._led("activate_waiting", {})

    async def index_older(self, after: int) -> IndexedUpTo:
        """Index a page."""
        page = {"after": after, "limit": _PAGE, "kinds": dict.fromkeys(LATER_INDEXED_KINDS, True)}
        _, last, is_last, *found = await self._led("older_objects", page)
        records = (
            read_record(ObjectKey.from_stored(key.decode()), values)
            for key, values in zip(found[::2], found[1::2], strict=True)
        )
        items = [_indexed(record) for record in records if record is not None]
        if items or is_last:
            await self._led("index_objects", {"items": items, "is_last": bool(is_last)})
        return IndexedUpTo(int(last), bool(is_last))

    async def count_older(self) -> bool:
        """Walk the list of shoots, and all objects."""
        counted = await self._connection.call("count_objects", {"after": self._objects_counted_up_to, "limit": _PAGE})
        self._objects_counted_up_to = counted[0].decode() or "0"
        page = {"after": self._counted_up_to, "limit": _PAGE}
        last, *found = await self._connection.call("uncounted_shoots", page, read_only=True)
        items = [_countable(*shoot) for shoot in zip(found[::2], found[1::2], strict=True)]
        if items:
            await self._connection.call("count_shoots", {"items": items})
        self._counted_up_to = last.decode()
        return bool(last) or bool(counted[0])

    async def compare_stream(self, stream: str, created: int, acknowledged: int) -> bool:
        """Compare with the history."""
        now = timestamp(self._clock.now())
        operation = {"stream": stream, "created": f"{created:020d}", "acknowledged": acknowledged, "now": now}
        return bool((await self._led("compare_stream", operation))[1])

    async def report_loss(self, loss: StreamLoss, event: EventRecord) -> bool:
        """Record an Event, once."""
        operation = {"id": loss.loss_id, **event_fields(event, timestamp(self._clock.now()))}
        return (await self._connection.call("report_loss", operation))[0] == b"ok"

    async def collect_tombstones(self, before: str, floor: StreamPosition) -> int:
        """Forget a page of graves."""
        upto = origin_text(RequestOrigin(floor.created, floor.sequence, 10**10 - 1))
        return int((await self._led("collect_tombstones", {"before": before, "floor": upto, "limit": _PAGE}))[1])

    async def _keep_lead(self) -> None:
        """Renew the lead when it is due: to walk a large store takes longer than a lead lasts."""
        if self._clock.monotonic() >= self._renew_at and not (await self.lead(self._lead_seconds)).is_continued:
            raise Conflict("another relay leads by now, or the store is another one")

    async def _led(self, function: str, operation: dict[str, Any], *, confirm: bool = True) -> Sequence[Any]:
        return _as_leader(await self._connection.call(function, operation | {"leader": self._leader}, confirm=confirm))


def _indexed(record: StoredObject) -> dict[str, Any]:
    """An object with what it is indexed by."""
    key, index_keys = record.key, index_keys_of(record.document())
    return {
        "key": key.stored,
        "kind": key.kind,
        "ns": key.namespace or CLUSTER_SCOPE,
        "name": key.name,
        "version": record.version,
        "refs": "\n".join(index_keys.references),
        "claims": "\n".join(index_keys.claims),
        "quota": "\n".join(index_keys.quota),
        "demand": "\n".join(index_keys.demands),
        "rq": "\n".join(index_keys.requests),
        "grp": "\n".join(index_keys.groups),
        "alc": "\n".join(index_keys.allocatable),
    }


def _countable(member: bytes, status: bytes) -> dict[str, str]:
    """A shoot for the index of states."""
    namespace, _, name = member.decode().partition("/")
    operation = section({"status": _decode(b"{%b}" % decompress(status))}, "status", "lastOperation")
    return {"ns": namespace, "name": name, "op": operation_key(operation)}


def _as_leader(reply: Sequence[Any]) -> Sequence[Any]:
    if reply[0] == b"other":
        raise Conflict("another relay leads by now, or the store is another one")
    return reply


def _next_entry(entry: str) -> str:
    milliseconds, _, number = entry.partition("-")
    return f"{milliseconds}-{int(number) + 1}"


def _as_dict(reply: Any) -> dict[str, bytes]:
    """Read a hash, which RESP2 sends as a flat list and RESP3 as a map."""
    if isinstance(reply, dict):
        return {name.decode(): value for name, value in cast("dict[bytes, bytes]", reply).items()}
    items = cast("list[bytes]", reply)
    return {name.decode(): value for name, value in zip(items[::2], items[1::2], strict=True)}


def read_entry(entry: str, fields: list[bytes]) -> Iterable[OutboxEntry]:
    """Decode one entry of the stream: usually one outbox entry, of a bind the shoot's and the Event's.

    Nearly all are of objects: names, uids and numbers, which are decoded at one go. Others may hold any text.
    """
    if fields[0] == b"k":
        values = b"\n".join(fields).decode().split("\n")
        return _of_object(entry, dict(zip(values[::2], values[1::2], strict=True)))
    values = [field.decode() for field in fields]
    return [_of_others(entry, dict(zip(values[::2], values[1::2], strict=True)))]


def _of_object(entry: str, text: dict[str, str]) -> Iterable[OutboxEntry]:
    key = ObjectKey.from_stored(text["k"])
    left = text["l"]
    entries = ObjectEntry(
        entry,
        key,
        int(text["v"]),
        text["u"],
        text["a"],  # pyright: ignore[reportArgumentType] - written by functions/ alone
        bool(text["b"]),
        tuple(left.split(",")) if left else (),
        int(text["g"]),
        text.get("tp", ""),
    )
    if "to" not in text:
        return (entries,)
    event = scheduled_event(key, text["u"], text["to"], text["by"])
    return (entries, EventEntry(entry, event, f"{text['u']}.{text['v']}", 1, text["at"], text["at"]))


def _of_others(entry: str, text: dict[str, str]) -> OutboxEntry:
    if "q" in text:
        return QueueEntry(entry, text["q"], text.get("tp", ""))
    if "e" in text:
        record = EventRecord(
            about=ObjectKey.from_stored(text["e"]),
            uid=text["u"],
            type="Warning" if text["t"] == "Warning" else "Normal",
            reason=text["r"],
            message=text["m"],
            reporter=text["by"],
            action=text["ac"],
        )
        return EventEntry(entry, record, text["id"], int(text["n"]), text["first"], text["at"])
    raise Unavailable(f"the outbox holds an entry of an unknown form: {sorted(text)}")
