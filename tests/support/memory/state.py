"""What a store in memory holds, as tests read it past the store's methods."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from gardenbus.common.adapters.redis.records import PARTS, PRIVATE, read_record
from gardenbus.common.api.document import Parts, StoredObject
from gardenbus.common.api.keys import CLUSTER_SCOPE, ObjectKey
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import RequestOrigin
from gardenbus.relay.adapters.redis_outbox import read_entry
from gardenbus.relay.ports.outbox import OutboxEntry
from tests.support.memory.connection import PREFIX, MemoryRedis


class ObjectRow(NamedTuple):
    """One object, and what only the store keeps of it."""

    stored: StoredObject
    equivalence_class: str

    @property
    def seeds(self) -> frozenset[str]:
        """The seeds whose usage counts it."""
        return seeds_of(self.stored.parts)


class Tombstone(NamedTuple):
    """Record of a removed object."""

    uid: str
    version: int
    origin: RequestOrigin | None


def seeds_of(parts: Parts) -> frozenset[str]:
    """The seeds that a shoot concerns."""
    return frozenset({parts.seed_name, parts.status_seed_name} - {""})


class _Rows(Mapping[ObjectKey, ObjectRow]):
    """Objects by their keys; one that is taken out is as if it had never been, until it is brought back."""

    def __init__(self, redis: MemoryRedis) -> None:
        self._redis = redis
        self._taken: dict[ObjectKey, list[bytes]] = {}

    def _hash(self, key: ObjectKey) -> str:
        return f"{PREFIX}:o:{key.stored}"

    def __getitem__(self, key: ObjectKey) -> ObjectRow:
        *values, equivalence_class = self._redis.data.execute("HMGET", self._hash(key), *PARTS, *PRIVATE, "class")
        stored = read_record(key, values)
        if stored is None:
            raise KeyError(key)
        return ObjectRow(stored, (equivalence_class or b"").decode())

    def __contains__(self, key: object) -> bool:
        return isinstance(key, ObjectKey) and bool(self._redis.data.execute("EXISTS", self._hash(key)))

    def __delitem__(self, key: ObjectKey) -> None:
        row, data = self[key], self._redis.data
        self._taken[key] = data.execute("HGETALL", self._hash(key))
        data.execute("DEL", self._hash(key))
        data.execute("HDEL", f"{PREFIX}:uids", row.stored.uid)
        data.execute("ZREM", f"{PREFIX}:by_version", key.stored)
        data.execute("ZREM", f"{PREFIX}:list:{key.kind}", _member(key))
        for seed in row.seeds if key.kind == "shoot" else ():
            data.execute("SREM", f"{PREFIX}:usage:{seed}", f"{key.namespace}/{key.name}")

    def bring_back(self, key: ObjectKey) -> None:
        """Store an object again that was taken out; its usage stays as it is."""
        data = self._redis.data
        data.execute("HSET", self._hash(key), *self._taken.pop(key))
        stored = self[key].stored
        data.execute("HSET", f"{PREFIX}:uids", stored.uid, key.stored)
        data.execute("ZADD", f"{PREFIX}:by_version", stored.version, key.stored)
        data.execute("ZADD", f"{PREFIX}:list:{key.kind}", 0, _member(key))

    def __iter__(self) -> Iterator[ObjectKey]:
        members = self._redis.data.execute("ZRANGE", f"{PREFIX}:by_version", 0, -1)
        return iter([ObjectKey.from_stored(each.decode()) for each in members])

    def of_kind(self, *kinds: str) -> Mapping[ObjectKey, StoredObject]:
        """The objects of some kinds; others are not read."""
        return {key: self[key].stored for key in self if key.kind in kinds}

    def __len__(self) -> int:
        return self._redis.data.execute("ZCARD", f"{PREFIX}:by_version")


def _member(key: ObjectKey) -> str:
    """Name of an object in the list of its kind."""
    return f"{key.namespace or CLUSTER_SCOPE}/{key.name}"


class MemoryState:
    """See the module."""

    def __init__(self, redis: MemoryRedis, clock: Clock) -> None:
        self._redis = redis
        self.clock = clock
        self.rows = _Rows(redis)

    def _read(self, command: str, name: str, *arguments: str) -> Any:
        return self._redis.data.execute(command, f"{PREFIX}:{name}", *arguments)

    def _number(self, name: str) -> int:
        return int(self._read("GET", name) or 0)

    @property
    def is_open(self) -> bool:
        """Whether it is open."""
        return self._redis.call("check_open", {})[0] == b"ok"

    @property
    def version(self) -> int:
        """The version of the last write."""
        return self._number("version")

    @property
    def outbox(self) -> list[OutboxEntry]:
        """What is to be announced."""
        found = self._read("XRANGE", "outbox", "-", "+")
        return [each for entry, fields in found for each in read_entry(entry.decode(), fields)]

    @property
    def uids(self) -> Mapping[str, ObjectKey]:
        """Keys by uid."""
        found = self._read("HGETALL", "uids")
        pairs = zip(found[::2], found[1::2], strict=True)
        return {uid.decode(): ObjectKey.from_stored(key.decode()) for uid, key in pairs}

    def usage(self, seed: str) -> int:
        """How many shoots count on a seed."""
        return self._read("SCARD", f"usage:{seed}")

    def requested(self, seed: str) -> dict[str, int]:
        """What the shoots on a seed request of each resource."""
        found = self._read("HGETALL", f"taken:{seed}")
        return {name.decode(): int(amount) for name, amount in zip(found[::2], found[1::2], strict=True)}

    def owned(self, uid: str) -> list[ObjectKey]:
        """Objects with an owner."""
        return [ObjectKey.from_stored(key.decode()) for key in self._read("SMEMBERS", f"owned:{uid}")]

    def unknown_uids(self) -> set[str]:
        """The uids of what runs on a seed and is in no object."""
        return {msgspec.json.decode(each)["uid"] for each in self._read("HVALS", "unknown")}

    def tombstone(self, key: ObjectKey) -> Tombstone | None:
        """What is remembered of a removed object."""
        uid, version, origin = self._read("HMGET", f"dead:{key.stored}", "uid", "ver", "req")
        if version is None:
            return None
        return Tombstone(uid.decode(), int(version), origin_of(origin))

    def reset_versions(self) -> None:
        """Begin the versions anew, as a store that lost everything does."""
        for counter in ("version", "usage_version"):
            self._read("SET", counter, "0")


def origin_of(text: bytes | None) -> RequestOrigin | None:
    """A request as the store remembers it."""
    return RequestOrigin(*map(int, text.split(b"."))) if text else None
