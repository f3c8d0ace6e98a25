"""The store in memory: `ports.store.Store` in plain Python, the executable specification of the Redis Functions.

It returns, raises and announces what the store on Redis does (one contract suite and one state machine hold them
together), forgets everything at the end of the process, and serves one event loop.
"""

import dataclasses
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from gardenbus.common.adapters.store_responses import OUTBOX_MAX, exists_already, is_gone, key_of
from gardenbus.common.api.changes import ObjectChange, change_of, creation_of
from gardenbus.common.api.document import UNKNOWN_LAST_APPLIED, Document, StoredObject
from gardenbus.common.api.garden.profile_parts import PART_MARK
from gardenbus.common.api.index_keys import IndexKeys, effects_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Conflict, GardenbusError
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import StreamPosition
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import (
    CreateResult,
    Creation,
    EventRecord,
    RequestOrigin,
    Superseded,
    UnknownObject,
    WritePrecondition,
)
from gardenbus.common.ports.stream_history import StreamEntry, StreamHistory, StreamLoss
from gardenbus.common.side_thread import beside_loop
from tests.support.memory.followed_shoots import followed_shoot
from tests.support.memory.quotas import recount, with_quota_status
from tests.support.memory.recovery import drop_unknown, note_unknown, ordered_after
from tests.support.memory.scheduling import MemoryScheduling
from tests.support.memory.state import MemoryState, ObjectRow, Tombstone, is_migrating, origin_of_tombstone, seeds_of
from tests.support.memory.stream_histories import MemoryStreamHistories
from tests.support.memory.write_checks import check_write


class MemoryStore(MemoryScheduling):
    """See `ports.store.Store`. `reporter` signs the Events of binds and of shoots marked unschedulable.

    `is_open=False` starts it as a Redis that no relay has opened yet. The next `conflicts` updates (`math.inf`: all)
    are rejected with Conflict whatever they are based on, to test how callers retry.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        reporter: str = "gardenbus",
        is_open: bool = True,
        conflicts: float = 0,
        outbox_max: int = OUTBOX_MAX,
        new_uid: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        super().__init__(MemoryState(clock, is_open=is_open, outbox_max=outbox_max), reporter=reporter)
        self._new_uid = new_uid
        self.histories = MemoryStreamHistories(clock)
        self.conflicts = conflicts

    async def confirm_reads(self) -> None:
        """Nothing to wait for."""

    def close_for_writes(self) -> None:
        """Close it, as a restart closes Redis."""
        self.state.is_open = False

    def copied(self) -> dict[str, Any]:
        """All that is stored, as a copy of Redis' disk holds it."""
        return {**self.state.copied(), "histories": self.histories.copied()}

    def restore_copy(self, copy: dict[str, Any]) -> None:
        """Start again on an older copy: closed, until a relay has compared it with the bus."""
        self.state.restore(copy)
        self.histories.restore(copy["histories"])

    async def create(
        self,
        document: Document,
        *,
        origin: RequestOrigin | None = None,
        last_applied: bytes = b"",
        owner_setters: bytes = b"",
        scheduling_generation: int | None = None,
        preconditions: Sequence[WritePrecondition] = (),
    ) -> StoredObject | Superseded:
        """Store a new object."""
        return await self._create(
            document,
            origin=origin,
            last_applied=last_applied,
            owner_setters=owner_setters,
            scheduling_generation=scheduling_generation,
            preconditions=preconditions,
        )

    async def _create(
        self,
        document: Document,
        *,
        origin: RequestOrigin | None = None,
        last_applied: bytes = b"",
        owner_setters: bytes = b"",
        scheduling_generation: int | None = None,
        preconditions: Sequence[WritePrecondition] = (),
        uid: str = "",
        generation: int = 1,
        created_at: str = "",
    ) -> StoredObject | Superseded:
        state, key = self.state, key_of(document)
        change = await beside_loop(len(last_applied), partial(creation_of, document))
        state.check_open()
        superseded = check_write(
            state,
            key,
            0,
            origin=origin,
            change=change,
            preconditions=preconditions,
            scheduling_generation=scheduling_generation,
            is_adoption=bool(uid),
            private={"last_applied": last_applied, "owner_setters": owner_setters},
        )
        if superseded:
            return superseded
        version = state.next_version()
        stored = StoredObject(
            key=key,
            parts=change.parts,
            uid=uid or self._new_uid(),
            version=version,
            generation=generation,
            created_at=created_at or state.now(),
            scheduling_generation=version if change.effects.outdates_decisions else 0,
            last_applied=last_applied,
            owner_setters=owner_setters,
        )
        row = ObjectRow(stored, change.index_keys, origin or origin_of_tombstone(state.tombstones.get(key)))
        row.prior, row.after = state.prior_uids(key, stored.uid), ordered_after(state, origin)
        state.place(row)
        state.reindex(key, IndexKeys(), change.index_keys)
        with_quota_status(state, row)
        state.move_usage(key, (), row.seeds, (), change.index_keys.requests)
        self._announce_write(row, change, None)
        recount(state, key)
        for owner in change.index_keys.owners:
            if owner not in state.uids and not uid:
                state.enqueue(f"garbage._.{owner}")
        state.unblock(objects=change.effects.unblocks)
        return row.stored

    async def create_many(self, creations: Sequence[Creation]) -> Sequence[CreateResult]:
        """Store new objects, each on its own."""
        return [await self._created(creation) for creation in creations]

    async def _created(self, creation: Creation) -> CreateResult:
        try:
            with tracing.within(creation.trace or tracing.current()):
                return await self.create(
                    creation.document,
                    origin=creation.origin,
                    last_applied=creation.last_applied,
                    owner_setters=creation.owner_setters,
                    preconditions=creation.preconditions,
                )
        except GardenbusError as error:
            return error

    async def update(
        self,
        base: StoredObject,
        document: Document,
        *,
        origin: RequestOrigin | None = None,
        last_applied: bytes | None = None,
        report_stamps: bytes | None = None,
        owner_setters: bytes | None = None,
        bump_generation: bool = False,
        keep_generation: bool = False,
        scheduling_generation: int | None = None,
        preconditions: Sequence[WritePrecondition] = (),
    ) -> StoredObject | Superseded:
        """Replace an object."""
        state, key = self.state, base.key
        change = await beside_loop(base.size + len(last_applied or b""), partial(change_of, base, document))
        differs = change.differs or bump_generation
        private = {"last_applied": last_applied, "report_stamps": report_stamps, "owner_setters": owner_setters}
        private = {name: text for name, text in private.items() if text is not None}
        if not differs and not preconditions and not private and origin is None:
            return base
        state.check_open()
        if self.conflicts > 0:
            self.conflicts -= 1
            raise Conflict(f"{key} is refused every update")
        superseded = check_write(
            state,
            key,
            base.version,
            origin=origin,
            change=change if differs else None,
            preconditions=preconditions,
            scheduling_generation=scheduling_generation,
            private=private,
        )
        if superseded:
            return superseded
        row = state.rows[key]
        kept = msgspec.structs.replace(row.stored, **private)
        if differs and base.is_deleting and not change.parts.finalizers:
            version = state.remove(row, origin, unblock_index=change.effects.unblocks)
            recount(state, key)
            return msgspec.structs.replace(kept, parts=change.parts, version=version)
        row.stored, row.origin = kept, origin or row.origin
        if differs:
            self._replace(row, change, bumped=bump_generation or (change.spec and not keep_generation))
        return row.stored

    def _replace(self, row: ObjectRow, change: ObjectChange, *, bumped: bool) -> None:
        state, old, seeds, requested = self.state, row.stored, row.seeds, row.index_keys.requests
        followed = followed_shoot(old.key, row.index_keys)
        index_keys = change.index_keys._replace(scheduler_name=row.index_keys.scheduler_name)
        state.reindex(old.key, row.index_keys, index_keys)
        version = state.next_version()
        row.index_keys = index_keys
        row.stored = msgspec.structs.replace(
            old,
            parts=change.parts,
            version=version,
            generation=old.generation + bumped,
            scheduling_generation=version if change.effects.outdates_decisions else old.scheduling_generation,
        )
        with_quota_status(state, row)
        if change.parts.seed_name:
            self._clear_unschedulable(row)
        freed = state.move_usage(old.key, seeds, row.seeds, requested, index_keys.requests)
        if bumped:
            state.leave_class(row)
        change = change._replace(beyond_status=change.beyond_status or bumped)
        left = seeds - row.seeds
        if followed and followed != (follows := followed_shoot(old.key, index_keys)):
            left = state.seeds_at(followed) - state.seeds_at(follows)
            row.past |= left
        if old.key.kind == "shoot":
            row.past |= left
        self._announce_write(row, change, old, left=left, requeue=bumped)
        state.unblock(freed=freed, objects=change.effects.unblocks)

    def _announce_write(
        self,
        row: ObjectRow,
        change: ObjectChange,
        old: StoredObject | None,
        *,
        left: frozenset[str] = frozenset(),
        requeue: bool = True,
    ) -> None:
        state, key = self.state, row.stored.key
        state.unblock_objects += change.effects.unblocks
        with_binding = change.beyond_status or key.kind == "seed"
        state.announce(row, "modified" if old else "added", with_binding=with_binding, left=left)
        if key.kind == "shoot":
            if row.seeds != (seeds_of(old.parts) if old else frozenset()):
                state.announce_followers(key, left)
            if is_migrating(row.stored.parts) != (old is not None and is_migrating(old.parts)):
                state.enqueue(f"migration.{key.namespace}.{key.name}")
        if requeue and row.is_pending:
            state.enqueue_shoot(row.index_keys.scheduler_name, row.stored.key)

    async def delete(
        self,
        base: StoredObject,
        *,
        origin: RequestOrigin | None = None,
        preconditions: Sequence[WritePrecondition] = (),
    ) -> StoredObject | Superseded | None:
        """Mark an object for deletion, or remove it."""
        state = self.state
        state.check_open()
        superseded = check_write(state, base.key, base.version, origin=origin, change=None, preconditions=preconditions)
        if superseded:
            return superseded
        row, unblock_index = state.rows[base.key], effects_of(base.key.kind, base.document(), None).unblocks
        if not row.stored.parts.finalizers:
            state.remove(row, origin, unblock_index=unblock_index)
            recount(state, base.key)
            return None
        row.origin = origin or row.origin
        if not row.stored.is_deleting:
            self.mark_deleted(row, unblock_index=unblock_index and base.key.kind == "seed")
        return row.stored

    async def dry_run(
        self,
        key: ObjectKey,
        base: StoredObject | None,
        document: Document | None,
        *,
        scheduling_generation: int | None = None,
        preconditions: Sequence[WritePrecondition] = (),
        is_adoption: bool = False,
    ) -> None:
        """Check a write without carrying it out."""
        self.state.check_open()
        change = None
        if document is not None:
            change = creation_of(document) if base is None else change_of(base, document)
        version = base.version if base is not None else 0
        differs = change if change is not None and change.differs else None
        check_write(
            self.state,
            key,
            version,
            origin=None,
            change=differs,
            preconditions=preconditions,
            scheduling_generation=scheduling_generation,
            is_adoption=is_adoption,
        )

    def mark_deleted(self, row: ObjectRow, *, unblock_index: bool) -> None:
        """Mark for deletion. A seed accepts no shoots from now on: others lose it now, not when it is gone."""
        state, version = self.state, self.state.next_version()
        state.leave_class(row)
        kept = tuple(reference for reference in row.index_keys.references if PART_MARK not in reference)
        state.reindex(row.stored.key, row.index_keys, row.index_keys._replace(references=kept))
        row.index_keys = row.index_keys._replace(references=kept)
        row.stored = msgspec.structs.replace(
            row.stored,
            version=version,
            deleting_at=state.now(),
            generation=row.stored.generation + 1,
            scheduling_generation=version if row.stored.key.kind == "seed" else row.stored.scheduling_generation,
        )
        state.unblock_objects += unblock_index
        state.announce(row)
        state.unblock(objects=unblock_index)

    async def record_event(self, event: EventRecord) -> None:
        """Announce an Event."""
        self.state.check_open()
        self.state.record_event(event)

    async def accept_fencing_token(
        self, seed: str, created: int, number: int, *, last: StreamPosition | None = None
    ) -> bool:
        """Compare a fencing number with the highest of its seed."""
        state, token = self.state, (created, number)
        state.check_open(with_outbox=False)
        highest = state.fencing_tokens.get(seed, (0, 0))
        if token == state.lost_fencing_tokens.get(seed):
            return False
        if token < highest:
            end = (last.created, last.sequence) if last else highest
            if highest <= end or token > end:
                return False
            state.lost_fencing_tokens[seed] = highest
        state.fencing_tokens[seed] = token
        return True

    async def has_fencing_token(self, seed: str) -> bool:
        """Look for a fencing number of a seed."""
        self.state.check_open(with_outbox=False)
        return seed in self.state.fencing_tokens

    async def observe_stream(
        self,
        stream: str,
        created: int,
        entries: Sequence[StreamEntry] = (),
        *,
        last_sequence: int = 0,
        acknowledged: int = 0,
    ) -> StreamHistory:
        """Remember what was seen of a stream."""
        self.state.check_open(with_outbox=False)
        return self.histories.observe(stream, created, entries, last_sequence, acknowledged=acknowledged)

    async def restart_stream(
        self, stream: str, created: int, last_sequence: int, *, seen: int, ended_at: str = ""
    ) -> StreamHistory:
        """Raise the incarnation of a stream."""
        self.state.check_open(with_outbox=False)
        return self.histories.restart(stream, created, last_sequence, seen=seen, ended_at=ended_at)

    async def stream_losses(self) -> Sequence[StreamLoss]:
        """Read the losses."""
        return tuple(self.histories.losses)

    async def reannounce_object(
        self, key: ObjectKey, seed: str, uid: str = "", unknown: UnknownObject | None = None, *, is_own: bool = True
    ) -> bool:
        """Announce an object again, or its removal, if the store has or remembers it."""
        state = self.state
        state.check_open(with_outbox=False)
        row, tombstone = state.rows.get(key), state.tombstones.get(key)
        is_running = unknown is not None and unknown.runs
        if row and not is_own and not is_running and uid != row.stored.uid and not state.is_settled(key, seed, uid):
            return False
        if not row and not is_own and not uid and not (tombstone and seed in tombstone.left):
            return False
        if row and not (unknown is not None and unknown.runs and not state.is_settled(key, seed, uid)):
            state.forget_settled(key)
            state.announce(row, left=(seed,), uid=uid if uid in row.prior else "")
        elif not row and tombstone and uid in ("", tombstone.uid, *tombstone.prior):
            if uid:
                drop_unknown(state, seed, key)
            state.announce_key(key, tombstone.version, uid or tombstone.uid, "deleted", left=(seed,))
        else:
            if unknown is not None:
                note_unknown(state, unknown)
            return False
        return True

    async def unknown_objects(self) -> Sequence[UnknownObject]:
        """Read what is unknown."""
        self.state.check_open(with_outbox=False)
        state = self.state
        found = [each for (seed, key), each in state.unknown.items() if not state.is_settled(key, seed, each.uid)]
        names = (
            msgspec.structs.replace(each, manifest={}, is_adoptable=bool(each.manifest), runs=True) for each in found
        )
        return sorted(names, key=lambda each: (each.key, each.seed))

    async def unknown_object(self, key: ObjectKey, seed: str) -> UnknownObject | None:
        """Read one of what is unknown."""
        named = next((each for each in await self.unknown_objects() if (each.key, each.seed) == (key, seed)), None)
        return (
            None if named is None else msgspec.structs.replace(named, manifest=self.state.unknown[seed, key].manifest)
        )

    async def adopt(self, unknown: UnknownObject) -> StoredObject:
        """Store an unknown object."""
        metadata = unknown.manifest["metadata"]
        adopted = await self._create(
            unknown.manifest,
            last_applied=UNKNOWN_LAST_APPLIED,
            uid=unknown.uid,
            generation=metadata["generation"],
            created_at=metadata["creationTimestamp"],
        )
        assert isinstance(adopted, StoredObject)
        self.state.unknown.pop((unknown.seed, unknown.key), None)
        return adopted

    async def forget(self, key: ObjectKey, seed: str, uid: str = "") -> None:
        """Remember a removal."""
        state, tombstone = self.state, self.state.tombstones.get(key)
        state.check_open()
        if row := state.rows.get(key):
            if not uid or state.is_settled(key, seed, uid):
                raise exists_already(key)
            row.past |= {seed}
            drop_unknown(state, seed, key)
            state.announce(row, left=(seed,))
            return
        if tombstone and uid in tombstone.prior:
            tombstone = dataclasses.replace(tombstone, uid=uid)
        if (uid or (seed, key) in state.unknown) and (tombstone is None or (uid and tombstone.uid != uid)):
            origin, prior = origin_of_tombstone(tombstone), state.prior_uids(key, uid)
            tombstone = state.tombstones[key] = Tombstone(
                uid, state.next_version(), state.now(), (seed,), origin, prior
            )
        if tombstone is None:
            raise is_gone(key)
        drop_unknown(state, seed, key)
        state.announce_key(key, tombstone.version, tombstone.uid, "deleted", left=(seed,))

    async def close(self) -> None:
        """Nothing to release."""
