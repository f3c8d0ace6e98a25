"""Data of a Redis, and the commands on it that the product uses: in this process, for one thread.

It keeps no more of Redis than the functions and their adapters can notice: strings, hashes, sets, sorted sets, lists
and streams of bytes, keys that expire, and the replies that RESP2 has. Sets and hashes are in the order of insertion, a
cursor visits all at once, and what Redis takes at random is the first: the same commands give the same replies.
"""

import asyncio
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, takewhile
from math import inf, nextafter
from typing import Any, cast

from gardenbus.common.ports.clock import Clock

Argument = str | bytes | int | float


class CommandError(Exception):
    """A reply that is an error of Redis."""


class SortedSet:
    """A sorted set: members by score, then by their bytes."""

    def __init__(self) -> None:
        self.scores: dict[bytes, float] = {}
        self.ordered: list[tuple[float, bytes]] = []

    def __len__(self) -> int:
        return len(self.scores)

    def add(self, member: bytes, score: float) -> int:
        """Add a member or move it; returns 1 for a new one."""
        before = self.scores.get(member)
        if before == score:
            return 0
        if before is not None:
            del self.ordered[bisect_left(self.ordered, (before, member))]
        self.scores[member] = score
        insort(self.ordered, (score, member))
        return int(before is None)

    def remove(self, member: bytes) -> int:
        """Remove a member; returns 1 if it was there."""
        score = self.scores.pop(member, None)
        if score is None:
            return 0
        del self.ordered[bisect_left(self.ordered, (score, member))]
        return 1

    def copy(self) -> "SortedSet":
        """Another one with the same members."""
        other = SortedSet()
        other.scores, other.ordered = dict(self.scores), list(self.ordered)
        return other

    def by_score(self, lowest: bytes, highest: bytes) -> list[tuple[float, bytes]]:
        """Members between two scores, `(` before one that is left out."""
        start, begins_after = _score(lowest)
        end, ends_before = _score(highest)
        first = bisect_left(self.ordered, (nextafter(start, inf) if begins_after else start, b""))
        behind = bisect_left(self.ordered, (end if ends_before or end == inf else nextafter(end, inf), b""))
        return self.ordered[first:behind]

    def by_member(self, lowest: bytes, highest: bytes) -> list[bytes]:
        """Members, all of one score, between two texts: `[` or `(` before each, or `-` and `+`."""
        score = self.ordered[0][0] if self.ordered else 0.0
        first, behind = 0, len(self.ordered)
        if lowest != b"-":
            first = bisect_left(self.ordered, (score, lowest[1:] + (b"\x00" if lowest[:1] == b"(" else b"")))
        if highest != b"+":
            behind = bisect_left(self.ordered, (score, highest[1:] + (b"" if highest[:1] == b"(" else b"\x00")))
        return [member for _, member in self.ordered[first:behind]]


class Stream:
    """A stream: entries by id, in their order."""

    def __init__(self) -> None:
        self.entries: dict[tuple[int, int], list[bytes]] = {}
        self.last = (0, 0)

    def copy(self) -> "Stream":
        """Another one with the same entries, which never change."""
        other = Stream()
        other.entries, other.last = dict(self.entries), self.last
        return other


class RedisData:
    """See the module. `clock` gives the time and ends keys."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._values: dict[bytes, Any] = {}
        self._ends: dict[bytes, float] = {}
        self._commands: dict[bytes, Callable[..., Any]] = _commands_of(self)
        self.entry_added = asyncio.Event()
        self.on_hash: Callable[[bytes, Mapping[bytes, bytes]], None] | None = None
        """Called with the key and the fields of what is written to a hash."""

    def execute(self, *arguments: Argument) -> Any:
        """Carry out a command. Raises CommandError."""
        name, *others = [each if isinstance(each, bytes) else _text(each) for each in arguments]
        return self._commands[name](*others)

    def copied(self) -> dict[str, Any]:
        """All that is stored, as a copy of Redis' disk holds it."""
        values = {key: value if isinstance(value, bytes) else value.copy() for key, value in self._values.items()}
        return {"values": values, "ends": dict(self._ends)}

    def restore(self, copy: Mapping[str, Any]) -> None:
        """Start again on a copy."""
        self._values = {
            key: value if isinstance(value, bytes) else value.copy() for key, value in copy["values"].items()
        }
        self._ends = dict(copy["ends"])
        self._note_entry()

    def _note_entry(self) -> None:
        self.entry_added.set()
        self.entry_added = asyncio.Event()

    def _get(self, key: bytes) -> Any:
        if self._ends and key in self._ends and self._ends[key] <= self._clock.monotonic():
            del self._ends[key], self._values[key]
        return self._values.get(key)

    def _of(self, key: bytes, new: Callable[[], Any]) -> Any:
        found = self._get(key)
        if found is None:
            found = self._values[key] = new()
        return found

    def _hash(self, key: bytes) -> dict[bytes, bytes]:
        """A hash or set that is read; of what is not there a new one."""
        return self._get(key) or {}

    def _list(self, key: bytes) -> list[bytes]:
        """A list likewise."""
        return self._get(key) or []

    def _ordered(self, key: bytes) -> SortedSet:
        """A sorted set likewise."""
        return self._get(key) or SortedSet()

    def _drop_empty(self, key: bytes) -> None:
        if not self._values[key]:
            del self._values[key]
            self._ends.pop(key, None)

    # ------------------------------------------------------------------------------------------ keys and strings

    def ping(self) -> bytes:
        return b"PONG"

    def time(self) -> list[bytes]:
        now = self._clock.now().timestamp()
        return [_text(int(now)), _text(int(now % 1 * 1_000_000))]

    def get(self, key: bytes) -> bytes | None:
        return self._get(key)

    def set(self, key: bytes, value: bytes, *options: bytes) -> bytes:
        self._values[key] = value
        self._ends.pop(key, None)
        if options:
            assert options[0] == b"PX", "no other option is used"
            self._ends[key] = self._clock.monotonic() + int(options[1]) / 1000
        return b"OK"

    def expire(self, key: bytes, seconds: bytes) -> int:
        if self._get(key) is None:
            return 0
        self._ends[key] = self._clock.monotonic() + int(seconds)
        return 1

    def exists(self, *keys: bytes) -> int:
        return sum(self._get(key) is not None for key in keys)

    def delete(self, *keys: bytes) -> int:
        found = 0
        for key in keys:
            found += self._get(key) is not None
            self._values.pop(key, None)
            self._ends.pop(key, None)
        return found

    def incrby(self, key: bytes, count: bytes) -> int:
        number = int(self._get(key) or b"0") + int(count)
        self._values[key] = _text(number)
        return number

    def incr(self, key: bytes) -> int:
        return self.incrby(key, b"1")

    def decrby(self, key: bytes, count: bytes) -> int:
        return self.incrby(key, _text(-int(count)))

    # ------------------------------------------------------------------------------------------ hashes

    def hset(self, key: bytes, *fields: bytes) -> int:
        stored, written = self._of(key, dict), dict(zip(fields[::2], fields[1::2], strict=True))
        added = len(written.keys() - stored.keys())
        stored.update(written)
        if self.on_hash is not None:
            self.on_hash(key, written)
        return added

    def hsetnx(self, key: bytes, field: bytes, value: bytes) -> int:
        return 0 if self.hexists(key, field) else self.hset(key, field, value)

    def hget(self, key: bytes, field: bytes) -> bytes | None:
        return self._hash(key).get(field)

    def hmget(self, key: bytes, *fields: bytes) -> list[bytes | None]:
        stored = self._hash(key)
        return [stored.get(field) for field in fields]

    def hgetall(self, key: bytes) -> list[bytes]:
        return [each for field in self._hash(key).items() for each in field]

    def hdel(self, key: bytes, *fields: bytes) -> int:
        stored = self._get(key)
        if stored is None:
            return 0
        removed = sum(stored.pop(field, None) is not None for field in fields)
        self._drop_empty(key)
        return removed

    def hexists(self, key: bytes, field: bytes) -> int:
        return int(field in self._hash(key))

    def hkeys(self, key: bytes) -> list[bytes]:
        return [*self._hash(key)]

    def hvals(self, key: bytes) -> list[bytes]:
        return [*self._hash(key).values()]

    def hlen(self, key: bytes) -> int:
        return len(self._hash(key))

    def hincrby(self, key: bytes, field: bytes, count: bytes) -> int:
        number = int(self.hget(key, field) or b"0") + int(count)
        if not -(2**63) <= number < 2**63:
            raise CommandError("ERR increment or decrement would overflow")
        self.hset(key, field, _text(number))
        return number

    def hscan(self, key: bytes, _cursor: bytes, *_options: bytes) -> list[Any]:
        return [b"0", self.hgetall(key)]

    # ------------------------------------------------------------------------------------------ sets

    def sadd(self, key: bytes, *members: bytes) -> int:
        stored = self._of(key, dict)
        before = len(stored)
        stored.update(dict.fromkeys(members, b""))
        return len(stored) - before

    def srem(self, key: bytes, *members: bytes) -> int:
        return self.hdel(key, *members)

    def smembers(self, key: bytes) -> list[bytes]:
        return self.hkeys(key)

    def scard(self, key: bytes) -> int:
        return self.hlen(key)

    def sismember(self, key: bytes, member: bytes) -> int:
        return self.hexists(key, member)

    def srandmember(self, key: bytes, count: bytes | None = None) -> Any:
        members = self.smembers(key)
        return members[: int(count)] if count is not None else members[0] if members else None

    def sscan(self, key: bytes, _cursor: bytes, *_options: bytes) -> list[Any]:
        return [b"0", self.smembers(key)]

    # ------------------------------------------------------------------------------------------ sorted sets

    def zadd(self, key: bytes, score: bytes, member: bytes) -> int:
        return self._of(key, SortedSet).add(member, float(score))

    def zrem(self, key: bytes, *members: bytes) -> int:
        stored = self._get(key)
        if stored is None:
            return 0
        removed = sum(stored.remove(member) for member in members)
        self._drop_empty(key)
        return removed

    def zcard(self, key: bytes) -> int:
        return len(self._ordered(key))

    def zscore(self, key: bytes, member: bytes) -> bytes | None:
        score = self._ordered(key).scores.get(member)
        return None if score is None else _text(score)

    def zcount(self, key: bytes, lowest: bytes, highest: bytes) -> int:
        return len(self._ordered(key).by_score(lowest, highest))

    def zlexcount(self, key: bytes, lowest: bytes, highest: bytes) -> int:
        return len(self._ordered(key).by_member(lowest, highest))

    def zrange(self, key: bytes, first: bytes, last: bytes, *options: bytes) -> list[bytes]:
        if b"BYLEX" in options:
            is_reversed = b"REV" in options
            members = self._ordered(key).by_member(*((last, first) if is_reversed else (first, last)))
            return _limited(members[::-1] if is_reversed else members, options)
        end = int(last)
        return _members(self._ordered(key).ordered[int(first) : None if end == -1 else end + 1], options)

    def zrangebylex(self, key: bytes, lowest: bytes, highest: bytes, *options: bytes) -> list[bytes]:
        return _limited(self._ordered(key).by_member(lowest, highest), options)

    def zrangebyscore(self, key: bytes, lowest: bytes, highest: bytes, *options: bytes) -> list[bytes]:
        return _members(_limited(self._ordered(key).by_score(lowest, highest), options), options)

    # ------------------------------------------------------------------------------------------ lists

    def rpush(self, key: bytes, *values: bytes) -> int:
        stored = self._of(key, list)
        stored += values
        return len(stored)

    def lrange(self, key: bytes, first: bytes, last: bytes) -> list[bytes]:
        end = int(last)
        return self._list(key)[int(first) : None if end == -1 else end + 1]

    def ltrim(self, key: bytes, first: bytes, last: bytes) -> bytes:
        if self._get(key) is not None:
            self._values[key] = self.lrange(key, first, last)
            self._drop_empty(key)
        return b"OK"

    # ------------------------------------------------------------------------------------------ streams

    def xadd(self, key: bytes, _new: bytes, *fields: bytes) -> bytes:
        stream = self._of(key, Stream)
        last = stream.last
        stream.last = max((int(self._clock.now().timestamp() * 1000), 0), (last[0], last[1] + 1))
        stream.entries[stream.last] = [*fields]
        self._note_entry()
        return _entry_id(stream.last)

    def xlen(self, key: bytes) -> int:
        return len(self._entries(key))

    def xrange(self, key: bytes, first: bytes, last: bytes, *options: bytes) -> list[Any]:
        assert last == b"+", "no other end is used"
        begins = (0, 0) if first == b"-" else _position(first.removeprefix(b"("))
        begins_after = first[:1] == b"("
        found = (
            [_entry_id(entry), fields]
            for entry, fields in self._entries(key).items()
            if entry > begins or (entry == begins and not begins_after)
        )
        return [*islice(found, int(options[1]) if options else None)]

    def xtrim(self, key: bytes, _by: bytes, _exactly: bytes, first: bytes) -> int:
        entries, begins = self._entries(key), _position(first)
        removed = [*takewhile(lambda entry: entry < begins, entries)]
        for entry in removed:
            del entries[entry]
        return len(removed)

    def has_entry_after(self, key: bytes, last: bytes) -> bool:
        """True if a stream has an entry after the one with an id."""
        return next(reversed(self._entries(key)), (0, 0)) > _position(last)

    def _entries(self, key: bytes) -> dict[tuple[int, int], list[bytes]]:
        stream = cast("Stream | None", self._get(key))
        return stream.entries if stream is not None else {}


_NAMES = {b"DEL": "delete"}
_COMMANDS = (
    *("PING", "TIME", "GET", "SET", "EXPIRE", "EXISTS", "DEL", "INCR", "INCRBY", "DECRBY"),
    *("HSET", "HSETNX", "HGET", "HMGET", "HGETALL", "HDEL", "HEXISTS", "HKEYS", "HVALS", "HLEN", "HINCRBY", "HSCAN"),
    *("SADD", "SREM", "SMEMBERS", "SCARD", "SISMEMBER", "SRANDMEMBER", "SSCAN"),
    *("ZADD", "ZREM", "ZCARD", "ZSCORE", "ZCOUNT", "ZLEXCOUNT", "ZRANGE", "ZRANGEBYLEX", "ZRANGEBYSCORE"),
    *("RPUSH", "LRANGE", "LTRIM", "XADD", "XLEN", "XRANGE", "XTRIM"),
)
WRITES = frozenset(
    name.encode()
    for name in (
        *("SET", "EXPIRE", "DEL", "INCR", "INCRBY", "DECRBY", "HSET", "HSETNX", "HDEL", "HINCRBY", "SADD", "SREM"),
        *("ZADD", "ZREM", "RPUSH", "LTRIM", "XADD", "XTRIM"),
    )
)
"""Commands that a function with the flag `no-writes` may not call."""


def _commands_of(data: RedisData) -> dict[bytes, Callable[..., Any]]:
    return {name: getattr(data, _NAMES.get(name, name.decode().lower())) for name in map(str.encode, _COMMANDS)}


def _text(value: str | float) -> bytes:
    """A number or text as Redis takes it."""
    if isinstance(value, float):
        return b"%d" % int(value) if value.is_integer() else repr(value).encode()
    return value.encode() if isinstance(value, str) else b"%d" % value


def _score(text: bytes) -> tuple[float, bool]:
    """A bound, and whether it is left out."""
    bound = text.removeprefix(b"(")
    return float(bound), bound != text


def _members(found: Sequence[tuple[float, bytes]], options: tuple[bytes, ...]) -> list[bytes]:
    if b"WITHSCORES" in options:
        return [each for score, member in found for each in (member, _text(score))]
    return [member for _, member in found]


def _limited(found: Iterable[Any], options: tuple[bytes, ...]) -> list[Any]:
    values = [*found]
    if b"LIMIT" not in options:
        return values
    at = options.index(b"LIMIT")
    offset, count = int(options[at + 1]), int(options[at + 2])
    return values[offset : offset + count]


def _position(entry: bytes) -> tuple[int, int]:
    milliseconds, _, number = entry.partition(b"-")
    return int(milliseconds), int(number or b"0")


def _entry_id(position: tuple[int, int]) -> bytes:
    return b"%d-%d" % position
