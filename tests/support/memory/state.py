"""State that the memory store and its outbox share: objects, indexes and outbox entries, as plain dicts.

The Python twin of the Redis Functions. Every method runs without awaiting: it is as atomic as they are.
"""

import asyncio
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from gardenbus.common.adapters.store_responses import EVENT_SECONDS, OUTBOX_MAX, outbox_is_full, store_is_closed
from gardenbus.common.api.document import Parts, StoredObject
from gardenbus.common.api.garden.resource_amounts import amounts_of
from gardenbus.common.api.index_keys import IndexKeys
from gardenbus.common.api.keys import CLUSTER_SCOPE, GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import StreamPosition
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import BindRecord, EventRecord, RequestOrigin, UnknownObject
from gardenbus.relay.ports.outbox import ChangeType, EventEntry, ObjectEntry, OutboxEntry, QueueEntry
from tests.support.memory.copies import copied_table
from tests.support.memory.followed_shoots import followed_shoot

if TYPE_CHECKING:
    from tests.support.memory.recovery import RecoveryRow

_STORED = (
    *("version", "usage_version", "unblock_objects", "unblock_usage", "rows", "tombstones", "uids", "kinds", "usage"),
    *("quotas", "demands", "requested", "requested_changed"),
    *("references", "owned", "claims", "usage_changed", "waiting", "fencing_tokens", "unknown", "lost_fencing_tokens"),
    *("outbox", "positions", "_entries", "_events", "recovery", "alive_at"),
)
"""What survives a restart of Redis, and what a copy of its disk holds."""

PRIOR_MAX = 8
"""So many removed objects are remembered with a name, beside the last."""


@dataclass
class ObjectRow:
    """One object, its index keys, and what only the store keeps of it."""

    stored: StoredObject
    index_keys: IndexKeys
    origin: RequestOrigin | None = None  # the newest request that was applied
    equivalence_class: str = ""
    activation_trace: str = ""  # the traceparent that it is activated with
    unschedulable_message: str = ""  # the latest message that it was marked unschedulable with
    attempts: int = 0  # unschedulable results at `attempted_generation`
    attempted_generation: int = 0
    bind_record: BindRecord | None = None  # what its bind remembers
    past: frozenset[str] = frozenset()  # of what follows a shoot: the seeds that it was withdrawn from
    prior: tuple[str, ...] = ()  # the uids of the last removed objects of its name
    after: str = ""  # the recovery since which it was ordered

    @property
    def seeds(self) -> frozenset[str]:
        """The seeds whose usage counts it."""
        return seeds_of(self.stored.parts)

    @property
    def is_pending(self) -> bool:
        """True for a shoot that needs a seed."""
        return bool(self.index_keys.scheduler_name) and not self.stored.parts.seed_name and not self.stored.is_deleting


@dataclass(frozen=True)
class Tombstone:
    """Record of a removed object."""

    uid: str
    version: int
    at: str
    left: tuple[str, ...]
    origin: RequestOrigin | None
    prior: tuple[str, ...] = ()


@dataclass
class UnschedulableIndex:
    """Unschedulable shoots with the same requirements, each with the total unblock index at which it was marked."""

    descriptor: bytes
    shoots: dict[ObjectKey, int] = field(default_factory=dict[ObjectKey, int])


@dataclass
class _EventCount:
    """An Event that was seen before."""

    count: int
    first_at: str
    until: float


def seeds_of(parts: Parts) -> frozenset[str]:
    """The seeds that a shoot concerns."""
    return frozenset({parts.seed_name, parts.status_seed_name} - {""})


def is_migrating(parts: Parts) -> bool:
    """True if a shoot's spec and status name different seeds."""
    return len(seeds_of(parts)) == 2


def member_of(key: ObjectKey) -> str:
    """`<ns>/<name>`, by which lists are ordered."""
    return f"{key.namespace or CLUSTER_SCOPE}/{key.name}"


def origin_of_tombstone(tombstone: Tombstone | None) -> RequestOrigin | None:
    """The newest request that was applied to a removed object."""
    return tombstone.origin if tombstone else None


class MemoryState:
    """The tables. `clock` gives instants and ends leases and Events."""

    def __init__(self, clock: Clock, *, is_open: bool, outbox_max: int = OUTBOX_MAX) -> None:
        self.clock = clock
        self.is_open = is_open
        self.outbox_max = outbox_max
        self.version = self.usage_version = self.unblock_objects = self.unblock_usage = 0
        self.rows: dict[ObjectKey, ObjectRow] = {}
        self.tombstones: dict[ObjectKey, Tombstone] = {}
        self.uids: dict[str, ObjectKey] = {}
        self.kinds: set[str] = set()
        self.usage: defaultdict[str, set[ObjectKey]] = defaultdict(set)
        self.requested: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.requested_changed: dict[str, int] = {}
        self.references: defaultdict[str, set[ObjectKey]] = defaultdict(set)
        self.owned: defaultdict[str, set[ObjectKey]] = defaultdict(set)
        self.claims: dict[str, ObjectKey] = {}
        self.quotas: defaultdict[str, set[ObjectKey]] = defaultdict(set)  # ResourceQuotas by namespace
        self.demands: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.usage_changed: dict[str, int] = {}
        self.waiting: defaultdict[str, dict[str, UnschedulableIndex]] = defaultdict(dict)
        self.fencing_tokens: dict[str, tuple[int, int]] = {}
        self.unknown: dict[tuple[str, ObjectKey], UnknownObject] = {}
        self.lost_fencing_tokens: dict[str, tuple[int, int]] = {}
        self.outbox: list[OutboxEntry] = []
        self.positions: dict[str, StreamPosition] = {}
        self.leader = self.led = ""
        self.leading_until = 0.0
        self.entry_added = asyncio.Event()
        self.recovery: RecoveryRow | None = None
        self.alive_at: datetime | None = None  # when a relay last led the open store
        self._entries = 0
        self._events: dict[str, _EventCount] = {}

    def copied(self) -> dict[str, Any]:
        """All that is stored, as a copy of Redis' disk holds it."""
        return {name: copied_table(getattr(self, name)) for name in _STORED}

    def restore(self, copy: dict[str, Any]) -> None:
        """Start again on a copy: closed, and led by nobody."""
        for name in _STORED:
            setattr(self, name, copied_table(copy[name]))
        self.is_open = False
        self.leading_until, self.led = 0.0, ""
        self.entry_added.set()
        self.entry_added = asyncio.Event()

    def now(self) -> str:
        """The instant, as it is written into objects."""
        return timestamp(self.clock.now())

    @property
    def total_unblock_index(self) -> int:
        """Sum of both unblock indexes."""
        return self.unblock_objects + self.unblock_usage

    def alive_for(self) -> float:
        """Seconds since a relay last led the open store."""
        return (self.clock.now() - self.alive_at).total_seconds() if self.alive_at else 0.0

    def check_open(self, *, with_outbox: bool = True) -> None:
        """Raise Unavailable when nobody has opened the store, or (`with_outbox`) when too much is unannounced."""
        if not self.is_open:
            raise store_is_closed()
        if with_outbox and len(self.outbox) >= self.outbox_max:
            raise outbox_is_full()

    # ------------------------------------------------------------------------------------------ outbox

    def next_entry(self) -> str:
        """The id of the next entry."""
        self._entries += 1
        return f"{self._entries}-0"

    def append(self, entries: OutboxEntry) -> None:
        """Add an entry and wake the relay."""
        self.outbox.append(entries)
        self.entry_added.set()
        self.entry_added = asyncio.Event()

    def announce(
        self,
        row: ObjectRow,
        verb: ChangeType = "modified",
        *,
        with_binding: bool = True,
        left: Iterable[str] = (),
        uid: str = "",
    ) -> None:
        """Append the entry of a stored object's write; `uid`: of an earlier one of its name, which is withdrawn."""
        self.announce_key(
            row.stored.key, row.stored.version, uid or row.stored.uid, verb, with_binding=with_binding, left=left
        )

    def announce_key(
        self,
        key: ObjectKey,
        version: int,
        uid: str,
        verb: ChangeType,
        *,
        with_binding: bool = True,
        left: Iterable[str] = (),
    ) -> None:
        """Append the entry of a write or removal."""
        self.append(
            ObjectEntry(
                entry=self.next_entry(),
                key=key,
                version=version,
                uid=uid,
                verb=verb,
                with_binding=with_binding,
                left=tuple(sorted(left)),
                unblock_index=self.unblock_objects,
                trace=tracing.current(),
            )
        )

    def enqueue(self, tail: str) -> None:
        """Append a queue entry."""
        self.append(QueueEntry(self.next_entry(), tail, tracing.current()))

    def enqueue_shoot(self, scheduler_name: str, key: ObjectKey) -> None:
        """Append a queue entry for a shoot without a seed."""
        self.enqueue(f"scheduling.{scheduler_name}.{key.namespace}.{key.name}")

    def record_event(self, event: EventRecord, *, series: bool = False) -> None:
        """Count an Event, and append some of its counts; the message of a series may be another each time."""
        last = event.reporter if series else event.message
        text = f"{event.about.stored}\n{event.uid}\n{event.reason}\n{last}"
        event_id = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        monotonic, now = self.clock.monotonic(), self.now()
        seen = self._events.get(event_id)
        if seen is None or seen.until <= monotonic:
            seen = self._events[event_id] = _EventCount(0, now, 0)
        seen.count += 1
        seen.until = monotonic + EVENT_SECONDS
        if seen.count in (1, 2, 4, 8, 16, 32) or seen.count % 64 == 0:
            self.append(EventEntry(self.next_entry(), event, event_id, seen.count, seen.first_at, now))

    def unblock(self, *, freed: bool = False, objects: bool = False) -> None:
        """Enqueue the unblocking of every scheduler with unschedulable shoots."""
        if freed or objects:
            for scheduler_name in sorted(self.waiting):
                self.enqueue(f"waking._.{scheduler_name}")

    # ------------------------------------------------------------------------------------------ indexes

    def next_version(self) -> int:
        """The version of the next write."""
        self.version += 1
        return self.version

    def move_usage(
        self,
        key: ObjectKey,
        before: Iterable[str],
        after: Iterable[str],
        requested: tuple[str, ...] = (),
        requests_now: tuple[str, ...] = (),
    ) -> bool:
        """Add a shoot to or remove it from the seeds' usage, with its requests; returns True if room became free."""
        left, entered, stays = set(before) - set(after), set(after) - set(before), set(before) & set(after)
        was, will = amounts_of(requested), amounts_of(requests_now)
        for seed in left:
            self.usage[seed].discard(key)
        for seed in entered:
            self.usage[seed].add(key)
        for seed in sorted(left | entered):
            self.usage_version += 1
            self.usage_changed[seed] = self.usage_version
            self._count_requests(seed, was if seed in left else {}, will if seed in entered else {})
        for seed in sorted(stays) if requested != requests_now else ():
            self.usage_version += 1
            self._count_requests(seed, was, will)
        freed = bool(left) or (bool(stays) and any(will.get(each, 0) < amount for each, amount in was.items()))
        self.unblock_usage += freed
        return freed

    def _count_requests(self, seed: str, before: Mapping[str, int], after: Mapping[str, int]) -> None:
        if before or after:
            self.requested[seed].subtract(before)
            self.requested[seed].update(after)
            self.requested[seed] = +self.requested[seed]
            self.requested_changed[seed] = self.usage_version

    def change_usage(self, seed: str) -> None:
        """Have a seed's usage read again, as the unknown shoots on it changed."""
        self.usage_version += 1
        self.usage_changed[seed] = self.requested_changed[seed] = self.usage_version

    def leave_class(self, row: ObjectRow) -> None:
        """Take a shoot out of its class, and the class away when it was the last."""
        if not row.equivalence_class:
            return
        scheduler_name = row.index_keys.scheduler_name
        classes = self.waiting[scheduler_name]
        waiting = classes[row.equivalence_class]
        del waiting.shoots[row.stored.key]
        if not waiting.shoots:
            del classes[row.equivalence_class]
        if not classes:
            del self.waiting[scheduler_name]
        row.equivalence_class = row.activation_trace = ""

    def reindex(self, key: ObjectKey, before: IndexKeys, after: IndexKeys) -> None:
        """Move an object between the indexes of references, owners and claims."""
        for index, old, new in (
            (self.references, before.references, after.references),
            (self.owned, before.owners, after.owners),
        ):
            for member in old:
                index[member].discard(key)
            for member in new:
                index[member].add(key)
        for claim in before.claims:
            if self.claims.get(claim) == key:
                del self.claims[claim]
        for claim in after.claims:
            self.claims[claim] = key
        self._reindex_counts(key, before, after)

    def _reindex_counts(self, key: ObjectKey, before: IndexKeys, after: IndexKeys) -> None:
        """Move an object between the demands, and a ResourceQuota in or out of its namespace."""
        for lines, sign in ((before.demands, -1), (after.demands, 1)):
            for line in lines:
                named, count, unit = line.split(" ", 2)
                self.demands[named][unit] += sign * int(count)
        if before.quota:
            self.quotas[key.namespace].discard(key)
        if after.quota:
            self.quotas[key.namespace].add(key)

    # ------------------------------------------------------------------------------------------ what shoots host

    def seeds_at(self, shoot: ObjectKey | None) -> frozenset[str]:
        """The seeds that a stored shoot concerns."""
        row = self.rows.get(shoot) if shoot else None
        return row.seeds if row else frozenset()

    def carriers(self, seeds: Iterable[str]) -> set[ObjectKey]:
        """Hosts of some seeds: they, the shoots that they are, the seeds that those are on, and so on."""
        found: set[ObjectKey] = set()
        ahead = list(seeds)
        while ahead:
            seed = ahead.pop()
            if ObjectKey("seed", "", seed) in found:
                continue
            found.add(ObjectKey("seed", "", seed))
            managed = self.rows.get(ObjectKey("managedseed", GARDEN_NAMESPACE, seed))
            shoot = followed_shoot(managed.stored.key, managed.index_keys) if managed else None
            if shoot:
                found.add(shoot)
                ahead += self.seeds_at(shoot)
        return found

    def prior_uids(self, key: ObjectKey, uid: str) -> tuple[str, ...]:
        """The uids of the last objects that had a name before the one with `uid`: each was removed."""
        row, tombstone = self.rows.get(key), self.tombstones.get(key)
        last, prior = (
            (row.stored.uid, row.prior) if row else (tombstone.uid, tombstone.prior) if tombstone else ("", ())
        )
        if last in ("", uid):
            return prior
        return tuple(each for each in (*prior, last) if each != uid)[-PRIOR_MAX:]

    def is_settled(self, key: ObjectKey, seed: str, uid: str) -> bool:
        """True if a stored object is on a seed, or was remembered to have left it."""
        row = self.rows.get(key)
        if row is None:
            return False
        if uid != row.stored.uid and uid in row.prior:
            return True
        here = row.seeds if key.kind == "shoot" else self.seeds_at(followed_shoot(key, row.index_keys))
        return seed in here or (uid in ("", row.stored.uid) and seed in row.past)

    def forget_settled(self, key: ObjectKey) -> None:
        """Forget what was unknown of a stored object where it is settled by now."""
        for seed, unknown in [*self.unknown]:
            if unknown == key and self.is_settled(key, seed, self.unknown[seed, unknown].uid):
                del self.unknown[seed, unknown]

    def announce_followers(self, shoot: ObjectKey, left: Iterable[str], *, with_version: bool = True) -> None:
        """Show what follows a shoot to its seeds by now, and withdraw it from those that the shoot left."""
        followers = self.references[shoot.stored] | {ObjectKey("shootstate", shoot.namespace, shoot.name)}
        for key in sorted(followers, key=lambda follower: follower.stored):
            row = self.rows.get(key)
            if row is None:
                continue
            row.past |= frozenset(left)
            if with_version:
                row.stored = msgspec.structs.replace(row.stored, version=self.next_version())
            self.announce(row, left=left)

    def audience_of(self, key: ObjectKey) -> frozenset[str]:
        """The seeds that have been shown an object which is removed, or (for a shoot) that it concerns."""
        if key.kind == "shoot":
            return self.seeds_at(key)
        if key.kind == "seed":
            return frozenset({key.name})
        row = self.rows.get(key)
        shoot = followed_shoot(key, row.index_keys if row else IndexKeys())
        past: frozenset[str] = row.past if row else frozenset()
        return self.seeds_at(shoot) | past if shoot else past

    def place(self, row: ObjectRow) -> None:
        """Put a new object into the tables that every object is in."""
        key = row.stored.key
        self.rows[key] = row
        self.uids[row.stored.uid] = key
        self.kinds.add(key.kind)
        self.tombstones.pop(key, None)

    def remove(self, row: ObjectRow, origin: RequestOrigin | None, *, unblock_index: bool) -> int:
        """Remove an object and append the entry; returns the version of the removal."""
        key, is_shoot = row.stored.key, row.stored.key.kind == "shoot"
        left, prior = tuple(sorted(self.audience_of(key))), self.prior_uids(key, row.stored.uid)
        self.forget_settled(key)
        self.leave_class(row)
        freed = is_shoot and self.move_usage(key, row.seeds, (), row.index_keys.requests)
        del self.rows[key]
        del self.uids[row.stored.uid]
        self.reindex(key, row.index_keys, IndexKeys())
        version = self.next_version()
        self.tombstones[key] = Tombstone(row.stored.uid, version, self.now(), left, origin or row.origin, prior)
        if unblock_index:
            self.unblock_objects += 1
        self.announce_key(key, version, row.stored.uid, "deleted", left=left)
        if is_shoot:
            self.announce_followers(key, left)
        if self.owned[row.stored.uid]:
            self.enqueue(f"garbage._.{row.stored.uid}")
        self.unblock(freed=freed, objects=unblock_index)
        return version
