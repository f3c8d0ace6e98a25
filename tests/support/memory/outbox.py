"""The outbox in memory: `ports.outbox.Outbox` over the tables of a `MemoryStore`."""

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from gardenbus.common.adapters.redis.records import PARTS, read_record, restored_fields
from gardenbus.common.api.document import UNKNOWN_LAST_APPLIED, Document, StoredObject
from gardenbus.common.api.index_keys import IndexKeys, index_keys_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Conflict
from gardenbus.common.ports.bus import StreamPosition
from gardenbus.common.ports.store import VERSION_LEAP, EventRecord, RequestOrigin, opening_version
from gardenbus.common.ports.stream_history import StreamLoss
from gardenbus.relay.ports.outbox import (
    NO_CAUSE,
    IndexedUpTo,
    Leadership,
    ObjectEntry,
    OutboxPage,
    RecoveryProgress,
    RecoveryStart,
    Restored,
    Shown,
)
from tests.support.memory.followed_shoots import followed_shoot
from tests.support.memory.quotas import recount, with_quota_status
from tests.support.memory.reads import without_private
from tests.support.memory.recovery import LAST_DOCUMENT, advance, begin
from tests.support.memory.state import MemoryState, ObjectRow, Tombstone, is_migrating, seeds_of
from tests.support.memory.store import MemoryStore

_COLLECTED_AT_ONCE = 500


class MemoryOutbox:
    """See `ports.outbox.Outbox`. `leader` names this relay; several outboxes of one store compete."""

    def __init__(self, store: MemoryStore, *, leader: str = "relay") -> None:
        self._state: MemoryState = store.state
        self.observe_stream, self.restart_stream = store.observe_stream, store.restart_stream
        self.stream_losses, self._histories = store.stream_losses, store.histories
        self._reported: set[str] = set()
        self._leader = leader
        self._last_seen = 0

    async def lead(self, ttl_seconds: float) -> Leadership:
        """Take or keep the lead."""
        state, now = self._state, self._state.clock.monotonic()
        if state.leader != self._leader and now < state.leading_until:
            return Leadership(leading=False, is_open=False)
        is_continued = state.led == self._leader
        if state.is_open:
            state.alive_at = state.clock.now()
        state.leader = state.led = self._leader
        state.leading_until = now + ttl_seconds
        return Leadership(leading=True, is_open=state.is_open, is_continued=is_continued)

    async def resign(self) -> None:
        """Give the lead back."""
        if self._state.leader == self._leader:
            self._state.leading_until, self._state.led = 0.0, ""

    async def head(self, limit: int, after: str | None = None) -> OutboxPage:
        """Read the oldest entries with their objects."""
        self._check_lead()
        first = _number(after) if after else -1
        entries = [entry for entry in self._state.outbox if _number(entry.entry) > first][:limit]
        objects: dict[ObjectKey, StoredObject | None] = {}
        audiences: dict[ObjectKey, tuple[str, ...]] = {}
        removed: dict[ObjectKey, int] = {}
        for entry in entries:
            if isinstance(entry, ObjectEntry):
                row = self._state.rows.get(entry.key)
                objects[entry.key] = without_private(row.stored) if row else None
                seeds = self._state.seeds_at(followed_shoot(entry.key, row.index_keys)) if row else ()
                if seeds:
                    audiences[entry.key] = tuple(sorted(seeds))
                if row is None and (tombstone := self._state.tombstones.get(entry.key)):
                    removed[entry.key] = tombstone.version
        if entries:
            self._last_seen = _number(entries[-1].entry)
        recovery = self._state.recovery
        return OutboxPage(entries, objects, audiences, removed, recovery.recovery_id if recovery else "")

    async def wait(self, seconds: float) -> None:
        """Wait until there is an entry that `head` has not shown."""
        outbox = self._state.outbox
        if outbox and _number(outbox[-1].entry) > self._last_seen:
            return
        try:
            await asyncio.wait_for(self._state.entry_added.wait(), seconds)
        except TimeoutError:
            return

    async def trim(self, last: str | None, positions: Mapping[str, StreamPosition]) -> None:
        """Trim, and remember the positions."""
        self._check_lead()
        if last:
            upto = _number(last)
            self._state.outbox = [entry for entry in self._state.outbox if _number(entry.entry) > upto]
        self._state.positions |= positions

    async def advance(self, last: str, positions: Mapping[str, StreamPosition], limit: int) -> OutboxPage:
        """Trim, and read on."""
        page = await self.head(limit, last)
        await self.trim(last, positions)
        return page

    async def positions(self) -> Mapping[str, StreamPosition]:
        """Read what was remembered."""
        return dict(self._state.positions)

    async def open(self, version: int, unblock_index: int, start: RecoveryStart = NO_CAUSE) -> None:
        """Open the fence."""
        self._check_lead()
        state = self._state
        if not state.is_open:
            floor = opening_version(state.clock.now())
            state.version = max(max(state.version, version) + VERSION_LEAP, floor)
            state.usage_version = max(state.usage_version + VERSION_LEAP, floor)
            state.unblock_objects = max(state.unblock_objects, unblock_index)
            state.is_open = True
            end = self._histories.end_of(start.stream, start.position)
            begin(state, str(state.version), start.cause, RequestOrigin(*end, LAST_DOCUMENT))

    async def advance_recovery(self, waited: str, *, announces: bool) -> RecoveryProgress:
        """Advance it."""
        self._check_lead()
        return RecoveryProgress(*advance(self._state, waited, announces=announces))

    async def restore(self, restored: Restored) -> bool:
        """Put one document back."""
        self._check_lead()
        state, key = self._state, restored.key
        row, tombstone = state.rows.get(key), state.tombstones.get(key)
        if restored.version <= (row.stored.version if row else tombstone.version if tombstone else 0):
            return False
        if row:
            state.leave_class(row)
        stored = _restored(key, restored.version, restored.document) if restored.document else None
        index_keys = index_keys_of(restored.document) if restored.document else IndexKeys()
        left = self._seeds_left_by_restore(key, row, stored, index_keys)
        origin = row.origin if row else tombstone.origin if tombstone else None
        prior = state.prior_uids(key, restored.uid)
        new = ObjectRow(stored, index_keys, origin, prior=prior) if stored else None
        before = row.seeds if row else frozenset[str]()
        if key.kind == "shoot":
            requested = row.index_keys.requests if row else ()
            state.move_usage(key, before, new.seeds if new else (), requested, index_keys.requests)
        state.reindex(key, row.index_keys if row else IndexKeys(), index_keys)
        if row:
            del state.rows[key], state.uids[row.stored.uid]
        if new:
            if row and row.stored.uid == restored.uid:
                _keep_what_the_bus_has_not(row, new)
            if not new.stored.last_applied:
                new.stored = msgspec.structs.replace(new.stored, last_applied=UNKNOWN_LAST_APPLIED)
            is_same = row is not None and (row.stored.uid == restored.uid or key.kind != "shoot")
            new.past = row.past | left if row and is_same else left
            state.place(new)
            with_quota_status(state, new)
        else:
            gone = Tombstone(restored.uid, restored.version, state.now(), tuple(sorted(left)), origin, prior)
            state.tombstones[key] = gone
        recount(state, key, with_version=False)
        if key.kind == "shoot" and (row or new):
            state.announce_followers(key, left, with_version=False)  # none may be given out before the store opens
        return True

    async def restore_many(self, restored: Sequence[Restored]) -> Sequence[bool]:
        """Put documents back, one after the other."""
        return [await self.restore(each) for each in restored]

    def _seeds_left_by_restore(
        self, key: ObjectKey, row: ObjectRow | None, stored: StoredObject | None, index_keys: IndexKeys
    ) -> frozenset[str]:
        """The seeds that an object, about to be put back or removed, no longer concerns."""
        state = self._state
        if stored is None:
            return state.audience_of(key)
        if row is None:
            return frozenset()
        if key.kind == "shoot":
            return row.seeds - seeds_of(stored.parts)
        return state.seeds_at(followed_shoot(key, row.index_keys)) - state.seeds_at(followed_shoot(key, index_keys))

    async def reannounce(self, above_version: int) -> None:
        """Append all objects, then all graves, in the order of their versions."""
        self._check_lead()
        state = self._state
        for row in sorted(state.rows.values(), key=lambda row: row.stored.version):
            if row.stored.version > above_version:
                state.announce(row, left=row.past if row.stored.key.kind != "shoot" else ())
        for key, tombstone in sorted(state.tombstones.items(), key=lambda entry: entry[1].version):
            if tombstone.version > above_version:
                state.announce_key(key, tombstone.version, tombstone.uid, "deleted", left=tombstone.left)

    async def obsolete(self, shown: Sequence[Shown]) -> Sequence[bool]:
        """Compare with the objects."""
        self._state.check_open(with_outbox=False)
        return [not self._is_shown(each.key, each.seed) for each in shown]

    def _is_shown(self, key: ObjectKey, seed: str) -> bool:
        state, row = self._state, self._state.rows.get(key)
        if row is None or not seed or key == ObjectKey("seed", "", seed):
            return row is not None
        return seed in (row.seeds if key.kind == "shoot" else state.seeds_at(followed_shoot(key, row.index_keys)))

    async def requeue_pending(self, *, untried_only: bool = False) -> None:
        """Queue every pending shoot, and every one that migrates, again."""
        self._check_lead()
        for key, row in sorted(self._state.rows.items()):
            if row.is_pending and not (untried_only and row.equivalence_class):
                self._state.enqueue_shoot(row.index_keys.scheduler_name, key)
        for key, row in sorted(self._state.rows.items()):
            if is_migrating(row.stored.parts):
                self._state.enqueue(f"migration.{key.namespace}.{key.name}")
        if untried_only:
            self._state.unblock(freed=True)

    async def index_older(self, after: int) -> IndexedUpTo:
        """Nothing to do: no version but today's has written here."""
        return IndexedUpTo(after, is_end=True)

    async def count_older(self) -> bool:
        """Nothing to do: counts are made anew from the objects each time."""
        return False

    async def compare_stream(self, stream: str, created: int, acknowledged: int) -> bool:
        """Note as lost what was acknowledged and the store has not seen."""
        return self._histories.compare(stream, created, acknowledged)

    async def report_loss(self, loss: StreamLoss, event: EventRecord) -> bool:
        """Record the Event about a loss, once."""
        if loss.loss_id in self._reported:
            return False
        self._reported.add(loss.loss_id)
        self._state.record_event(event)
        return True

    async def collect_tombstones(self, before: str, floor: StreamPosition) -> int:
        """Forget a page of graves."""
        self._check_lead()
        if self._state.recovery is not None:
            return 0
        upto = RequestOrigin(floor.created, floor.sequence, 10**10 - 1)
        tombstones = sorted(self._state.tombstones.items(), key=lambda entry: entry[1].version)[:_COLLECTED_AT_ONCE]
        collected = [
            key
            for key, tombstone in tombstones
            if tombstone.at < before and (tombstone.origin is None or tombstone.origin <= upto)
        ]
        for key in collected:
            del self._state.tombstones[key]
        return len(collected)

    def _check_lead(self) -> None:
        if self._state.leader != self._leader or self._state.clock.monotonic() >= self._state.leading_until:
            raise Conflict("another relay leads by now")


def _number(entry: str) -> int:
    return int(entry.partition("-")[0])


def _restored(key: ObjectKey, version: int, document: Document) -> StoredObject:
    fields = restored_fields(document, version) | {"ver": str(version)}
    stored = read_record(key, [fields.get(name, "").encode() for name in PARTS])
    assert stored is not None
    return stored


def _keep_what_the_bus_has_not(old: ObjectRow, new: ObjectRow) -> None:
    """Keep over a restore what stands only in the store."""
    new.attempts, new.attempted_generation = old.attempts, old.attempted_generation
    new.stored = msgspec.structs.replace(
        new.stored,
        last_applied=old.stored.last_applied,
        report_stamps=old.stored.report_stamps,
        owner_setters=old.stored.owner_setters,
    )
