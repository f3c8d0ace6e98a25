"""Reads of the store on Redis: objects, indexes and counts; none of them writes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from gardenbus.common.adapters.redis.records import PARTS, PRIVATE, read_record
from gardenbus.common.adapters.redis.recovery import RedisRecoveries
from gardenbus.common.adapters.redis.stream_histories import RedisStreamHistories
from gardenbus.common.adapters.redis.unschedulable import unschedulable_shoots
from gardenbus.common.adapters.store_responses import PAGE_MAX, ContinueToken, decode_token, encode_token, outermost
from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.garden.rows import ShootOperationState
from gardenbus.common.api.garden.shoot_groups import GroupCounts
from gardenbus.common.api.keys import CLUSTER_SCOPE, ObjectKey
from gardenbus.common.ports.store import (
    BindRecord,
    Page,
    ShootStateCounts,
    StoredAmount,
    UnblockIndexes,
    UnschedulableClass,
    UnschedulableStatus,
    Usage,
)

NAMESPACES = 500
"""Namespaces that one call looks for a name in: Redis serves nobody else meanwhile (about 1 ms)."""


class RedisReads(RedisStreamHistories, RedisRecoveries):
    """The reads of `ports.store.Store`."""

    async def get(self, key: ObjectKey) -> StoredObject | None:
        """Read one object."""
        return (await self.get_many([key]))[0]

    async def get_many(self, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
        """Read several objects in one round trip."""
        return await self._read(keys, *PARTS, *PRIVATE)

    async def get_many_partial(self, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
        """Read several objects in one round trip, without what only the apiserver needs of them."""
        return await self._read(keys, *PARTS)

    async def _read(self, keys: Sequence[ObjectKey], *fields: str) -> Sequence[StoredObject | None]:
        replies = await self._connection.read(
            [("HMGET", self._connection.key(f"o:{key.stored}"), *fields) for key in keys]
        )
        return [read_record(key, values) for key, values in zip(keys, replies, strict=True)]

    async def _read_one(self, *command: str) -> Any:
        return (await self._connection.read([command]))[0]

    async def demand(self, referred: ObjectKey, namespace: str = "") -> Mapping[str, int]:
        """Read the sums of demands."""
        reply = await self._connection.call("demand", {"key": referred.stored, "of": namespace}, read_only=True)
        return {unit.decode(): int(count) for unit, count in zip(reply[1::2], reply[2::2], strict=True)}

    async def list_page(
        self, kind: str, namespace: str | None = None, *, limit: int = 500, continue_token: str | None = None
    ) -> Page:
        """Read a page; at most 200 objects come in one call of the function, whatever the `limit`."""
        token = decode_token(continue_token) if continue_token else None
        limit = max(1, min(limit, PAGE_MAX))
        reply = await self._connection.call(
            "list",
            {"kind": kind, "ns": namespace or "", "after": token.after if token else "", "limit": limit},
            read_only=True,
        )
        version, unblock_index = (token.version, token.unblock_index) if token else (int(reply[0]), int(reply[1]))
        objects: list[StoredObject] = []
        member = ""
        for name, values in zip(reply[2::2], reply[3::2], strict=True):
            member = name.decode()
            scope, _, own_name = member.partition("/")
            stored = read_record(ObjectKey(kind, "" if scope == CLUSTER_SCOPE else scope, own_name), values)
            if stored is not None:
                objects.append(stored)
        more = (len(reply) - 2) // 2 == limit
        return Page(
            objects,
            version,
            unblock_index,
            encode_token(ContinueToken(member, version, unblock_index)) if more else None,
        )

    async def usage(self, since: int = 0) -> Usage:
        """Read the usage that changed after `since`."""
        return usage_of(await self._connection.call("usage", {"since": since}, read_only=True))

    async def requested_on(self, seed: str) -> Mapping[str, int]:
        """Read the sums of what the shoots of a seed request."""
        return _sums(await self._connection.call("usage", {"seed": seed}, read_only=True))

    async def group_counts(self, namespace: str, groups: Sequence[str]) -> Mapping[str, GroupCounts]:
        """Read the counts of groups in one round trip."""
        replies = await self._connection.read(
            [("HGETALL", self._connection.key(f"group:{namespace}:{group}")) for group in groups]
        )
        return {
            group: GroupCounts.of_fields({field.decode(): int(count) for field, count in _pairs(fields)})
            for group, fields in zip(groups, replies, strict=True)
        }

    async def shoots_on(self, seed: str) -> Sequence[ObjectKey]:
        """Read the shoots that count on a seed."""
        members = await self._read_one("SMEMBERS", self._connection.key(f"usage:{seed}"))
        return sorted(ObjectKey("shoot", *member.decode().split("/", 1)) for member in members)

    async def named(self, kind: str, name: str) -> Sequence[ObjectKey]:
        """Read the namespaces that have an object of this name."""
        found: list[ObjectKey] = []
        after = ""
        while True:
            operation = {"kind": kind, "name": name, "after": after, "limit": NAMESPACES}
            reply = await self._connection.call("named", operation, read_only=True)
            found += [
                ObjectKey(kind, "" if each == CLUSTER_SCOPE else each, name) for each in map(bytes.decode, reply[1:])
            ]
            after = reply[0].decode()
            if not after:
                return sorted(found)

    async def names_with(self, kind: str, prefix: str, namespace: str | None = None, *, limit: int) -> Sequence[str]:
        """Read the names that begin with a prefix."""
        found: set[str] = set()
        after, room = "", limit
        while True:
            operation = {"kind": kind, "prefix": prefix, "ns": namespace or "", "after": after, "room": room}
            reply = await self._connection.call("names_with", {**operation, "limit": NAMESPACES}, read_only=True)
            found.update(map(bytes.decode, reply[2:]))
            after, room = reply[0].decode(), max(0, room - int(reply[1]))
            if not after:
                return outermost(found, limit)
            found = set(outermost(found, limit))

    async def dependents(self, owner_uid: str) -> Sequence[ObjectKey]:
        """Read the objects owned by a uid."""
        keys = await self._read_one("SMEMBERS", self._connection.key(f"owned:{owner_uid}"))
        return sorted(ObjectKey.from_stored(key.decode()) for key in keys)

    async def referring(self, referred: ObjectKey) -> Sequence[ObjectKey]:
        """Read the objects that refer to an object."""
        keys = await self._read_one("SMEMBERS", self._connection.key(f"refs:{referred.stored}"))
        return sorted(ObjectKey.from_stored(key.decode()) for key in keys)

    async def exists_uid(self, uid: str) -> bool:
        """True if a uid is stored."""
        return bool(await self._read_one("HEXISTS", self._connection.key("uids"), uid))

    async def unschedulable_classes(
        self, scheduler_name: str, *, with_descriptors: bool = True, with_ages: bool = False
    ) -> Sequence[UnschedulableClass]:
        """Read the waiting classes, page by page: there may be as many as shoots."""
        found: dict[bytes, UnschedulableClass] = {}
        cursor = "0"
        while True:
            operation = {"sched": scheduler_name, "cursor": cursor, "limit": PAGE_MAX, "counts": not with_descriptors}
            if with_ages:
                operation["ages"] = True
            reply = await self._connection.call("waiting", operation, read_only=True)
            for name, descriptor, count, unseen, *since in reply[1:]:
                began = since[0].decode() if since else ""
                found[name] = UnschedulableClass(name.decode(), descriptor, int(count), int(unseen), began)
            cursor = reply[0].decode()
            if cursor == "0":
                return list(found.values())

    async def unschedulable_shoots(
        self, scheduler_name: str | None = None, *, limit: int = 1_000
    ) -> Sequence[UnschedulableStatus]:
        """Read the shoots that wait."""
        return await unschedulable_shoots(self._connection, scheduler_name, limit)

    async def pending(self, scheduler_name: str) -> int:
        """Count the pending shoots of a scheduler."""
        return int(await self._read_one("SCARD", self._connection.key(f"pending:{scheduler_name}")))

    async def census(self) -> Mapping[str, int]:
        """Count objects by kind, pending and waiting shoots, and what the outbox still holds."""
        counts = {"outbox": int(await self._read_one("XLEN", self._connection.key("outbox")))}
        kinds = [kind.decode() for kind in await self._read_one("SMEMBERS", self._connection.key("kinds"))]
        sizes = await self._connection.read([("ZCARD", self._connection.key(f"list:{kind}")) for kind in kinds])
        counts |= {f"objects.{kind}": int(size) for kind, size in zip(kinds, sizes, strict=True)}
        schedulers = await self._read_one("SMEMBERS", self._connection.key("schedulers"))
        pending = [("SCARD", self._connection.key(f"pending:{scheduler.decode()}")) for scheduler in schedulers]
        counts["shoots.pending"] = sum(int(size) for size in await self._connection.read([*pending]))
        classes: list[UnschedulableClass] = []
        for scheduler in await self._read_one("SMEMBERS", self._connection.key("waiting")):
            classes += await self.unschedulable_classes(scheduler.decode(), with_descriptors=False)
        counts["shoots.waiting"] = sum(each.count for each in classes)
        counts["shoots.waiting_unseen"] = sum(each.unseen for each in classes)
        return counts

    async def shoot_state_counts(self, limit: int) -> ShootStateCounts:
        """Read the index of states."""
        reply = await self._connection.call("shoot_counts", {"limit": max(1, limit)}, read_only=True)
        counts, busy, longest, uncounted = reply
        states = zip(counts[::2], counts[1::2], strict=True)
        return ShootStateCounts(
            {cast("ShootOperationState", name.decode()): int(count) for name, count in states if int(count)},
            int(busy),
            [ObjectKey("shoot", *member.decode().split(" ")[1:]) for member in longest],
            int(uncounted),
        )

    async def stored_amounts(self) -> Mapping[str, StoredAmount]:
        """Read the index of amounts."""
        (_, found) = await self._connection.call("stored_amounts", {}, read_only=True)
        amounts = {name.decode(): int(number) for name, number in zip(found[::2], found[1::2], strict=True)}
        return {
            "" if name == CLUSTER_SCOPE else name: StoredAmount(objects, amounts.get(f"{name} bytes", 0))
            for name, objects in amounts.items()
            if " " not in name
        }

    async def bind_record(self, key: ObjectKey) -> BindRecord | None:
        """Read what was remembered with the bind."""
        remembered = await self._read_one("HGET", self._connection.key(f"o:{key.stored}"), "why")
        if not remembered:
            return None
        at, _, decision_record = remembered.partition(b" ")
        return BindRecord(at.decode(), decision_record)


def _sums(reply: Sequence[bytes]) -> dict[str, int]:
    """Amounts by resource in a reply of Redis."""
    return {resource.decode(): int(amount) for resource, amount in zip(reply[::2], reply[1::2], strict=True)}


def _pairs(fields: Any) -> Iterable[tuple[bytes, bytes]]:
    """Fields of a hash, which RESP2 sends as a flat list and RESP3 as a map."""
    if isinstance(fields, dict):
        return cast("dict[bytes, bytes]", fields).items()
    return zip(fields[::2], fields[1::2], strict=True)


def usage_of(reply: Sequence[Any]) -> Usage:
    """The usage in a reply of Redis."""
    seeds: dict[str, int] = {}
    requested: dict[str, dict[str, int]] = {}
    for name, used in zip(map(bytes.decode, reply[3::2]), reply[4::2], strict=True):
        if isinstance(used, int):
            seeds[name] = used
        else:
            requested[name.partition(" ")[0]] = _sums(used)
    return Usage(int(reply[0]), seeds, UnblockIndexes(int(reply[1]), int(reply[2])), requested)
