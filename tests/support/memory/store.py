"""The store in memory: `ports.store.Store` in plain Python, the executable specification of the Redis Functions.

It returns, raises and announces what the store on Redis does (one contract suite and one state machine hold them
together), forgets everything at the end of the process, and serves one event loop.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from gardenbus.common.adapters.store_responses import (
    OUTBOX_MAX,
    PAGE_MAX,
    ContinueToken,
    decode_token,
    encode_token,
    exists_already,
    is_gone,
    key_of,
    pending_operation,
    scheduled_event,
    unschedulable_since,
)
from gardenbus.common.api.changes import ObjectChange, change_of, creation_of
from gardenbus.common.api.document import UNKNOWN_LAST_APPLIED, Document, StoredObject, split
from gardenbus.common.api.garden.profile_parts import PART_MARK
from gardenbus.common.api.index_keys import FINALIZER, IndexKeys, effects_of
from gardenbus.common.api.keys import CLUSTER_SCOPE, ObjectKey
from gardenbus.common.errors import Conflict, GardenbusError
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import StreamPosition
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import (
    BindOutcome,
    BindRecord,
    BindResults,
    CreateResult,
    Creation,
    EventRecord,
    Page,
    RequestOrigin,
    SeedBinding,
    StoredShootState,
    Superseded,
    UnblockIndexes,
    UnknownObject,
    UnschedulableClass,
    UnschedulableResult,
    UnschedulableResults,
    UnschedulableShoot,
    UnschedulableStatus,
    Usage,
    WritePrecondition,
)
from gardenbus.common.ports.stream_history import StreamEntry, StreamHistory, StreamLoss
from gardenbus.relay.ports.outbox import EventEntry
from tests.support.memory.followed_shoots import followed_shoot
from tests.support.memory.state import (
    MemoryState,
    ObjectRow,
    Tombstone,
    UnschedulableIndex,
    is_migrating,
    member_of,
    origin_of_tombstone,
    seeds_of,
)
from tests.support.memory.stream_histories import MemoryStreamHistories
from tests.support.memory.write_checks import check_write, seed_rejection_reason


class MemoryStore:
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
        self.state = MemoryState(clock, is_open=is_open, outbox_max=outbox_max)
        self._new_uid = new_uid
        self.histories = MemoryStreamHistories(clock)
        self.conflicts = conflicts
        self._reporter = reporter

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

    # ------------------------------------------------------------------------------------------ reads

    async def get(self, key: ObjectKey) -> StoredObject | None:
        """Read one object."""
        self.state.check_open(with_outbox=False)
        row = self.state.rows.get(key)
        return row.stored if row else None

    async def get_many(self, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
        """Read several objects."""
        return [await self.get(key) for key in keys]

    async def get_many_partial(self, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
        """Read several objects without what only the apiserver needs of them."""
        return [
            stored and msgspec.structs.replace(stored, last_applied=b"", report_stamps=b"")
            for stored in await self.get_many(keys)
        ]

    async def list_page(
        self, kind: str, namespace: str | None = None, *, limit: int = 500, continue_token: str | None = None
    ) -> Page:
        """Read a page."""
        self.state.check_open(with_outbox=False)
        token = decode_token(continue_token) if continue_token else None
        limit = max(1, min(limit, PAGE_MAX))
        members = {
            member_of(key): row.stored
            for key, row in self.state.rows.items()
            if key.kind == kind and (not namespace or (key.namespace or CLUSTER_SCOPE) == namespace)
        }
        names = sorted(name for name in members if token is None or name > token.after)[:limit]
        version, unblock_index = (
            (token.version, token.unblock_index) if token else (self.state.version, self.state.unblock_objects)
        )
        return Page(
            [without_private(members[name]) for name in names],
            version,
            unblock_index,
            encode_token(ContinueToken(names[-1], version, unblock_index)) if len(names) == limit else None,
        )

    async def usage(self, since: int = 0) -> Usage:
        """Read the usage that changed after `since`."""
        self.state.check_open(with_outbox=False)
        state = self.state
        changed = {seed: len(state.usage[seed]) for seed, version in state.usage_changed.items() if version > since}
        return Usage(state.usage_version, changed, UnblockIndexes(state.unblock_objects, state.unblock_usage))

    async def _usage_since(self, since: int | None) -> Usage:
        return Usage(0, {}, UnblockIndexes(0, 0)) if since is None else await self.usage(since)

    async def shoots_on(self, seed: str) -> Sequence[ObjectKey]:
        """Read the shoots that count on a seed."""
        self.state.check_open(with_outbox=False)
        return sorted(self.state.usage[seed])

    async def named(self, kind: str, name: str) -> Sequence[ObjectKey]:
        """Read the objects of a kind with this name."""
        self.state.check_open(with_outbox=False)
        return sorted(key for key in self.state.rows if (key.kind, key.name) == (kind, name))

    async def dependents(self, owner_uid: str) -> Sequence[ObjectKey]:
        """Read the objects owned by a uid."""
        self.state.check_open(with_outbox=False)
        return sorted(self.state.owned[owner_uid])

    async def exists_uid(self, uid: str) -> bool:
        """Tell whether a uid is stored."""
        self.state.check_open(with_outbox=False)
        return uid in self.state.uids

    async def unschedulable_classes(self, scheduler_name: str) -> Sequence[UnschedulableClass]:
        """Read the waiting classes."""
        self.state.check_open(with_outbox=False)
        unblock_index = self.state.total_unblock_index
        return [
            UnschedulableClass(
                name, waiting.descriptor, len(waiting.shoots), sum(n < unblock_index for n in waiting.shoots.values())
            )
            for name, waiting in self.state.waiting.get(scheduler_name, {}).items()
        ]

    async def unschedulable_shoots(
        self, scheduler_name: str | None = None, *, limit: int = 1_000
    ) -> Sequence[UnschedulableStatus]:
        """Read the shoots that wait."""
        self.state.check_open(with_outbox=False)
        found = sorted(
            (unblock_index, member_of(key), key, name)
            for name, classes in self.state.waiting.items()
            if scheduler_name in (None, name)
            for waiting in classes.values()
            for key, unblock_index in waiting.shoots.items()
        )
        rows = [(self.state.rows[key], name) for _, _, key, name in found[:limit]]
        return [
            UnschedulableStatus(
                row.stored.key, name, row.unschedulable_message, unschedulable_since(row.stored.pending), row.attempts
            )
            for row, name in rows
        ]

    async def pending(self, scheduler_name: str) -> int:
        """Count the pending shoots of a scheduler."""
        self.state.check_open(with_outbox=False)
        rows = self.state.rows.values()
        return sum(row.is_pending and row.index_keys.scheduler_name == scheduler_name for row in rows)

    async def shoot_states(self, after: str = "", *, limit: int = 500) -> Sequence[StoredShootState]:
        """Read a page of the shoots' states."""
        self.state.check_open(with_outbox=False)
        shoots = {member_of(key): row.stored for key, row in self.state.rows.items() if key.kind == "shoot"}
        return [
            StoredShootState(
                each.key, each.parts.seed_name, each.created_at, each.deleting_at, each.pending, each.parts.status
            )
            for _, each in sorted((member, stored) for member, stored in shoots.items() if member > after)[:limit]
        ]

    async def census(self) -> Mapping[str, int]:
        """Count objects by kind, pending and waiting shoots, and what the outbox still holds."""
        self.state.check_open(with_outbox=False)
        state = self.state
        classes = [each for scheduler in [*state.waiting] for each in await self.unschedulable_classes(scheduler)]
        return {
            "outbox": len(state.outbox),
            **{f"objects.{kind}": sum(key.kind == kind for key in state.rows) for kind in state.kinds},
            "shoots.pending": sum(row.is_pending for row in state.rows.values()),
            "shoots.waiting": sum(each.count for each in classes),
            "shoots.waiting_unseen": sum(each.unseen for each in classes),
        }

    # ------------------------------------------------------------------------------------------ writes

    async def create(
        self,
        document: Document,
        *,
        origin: RequestOrigin | None = None,
        last_applied: bytes = b"",
        scheduling_generation: int | None = None,
        preconditions: Sequence[WritePrecondition] = (),
    ) -> StoredObject | Superseded:
        """Store a new object."""
        return await self._create(
            document,
            origin=origin,
            last_applied=last_applied,
            scheduling_generation=scheduling_generation,
            preconditions=preconditions,
        )

    async def _create(
        self,
        document: Document,
        *,
        origin: RequestOrigin | None = None,
        last_applied: bytes = b"",
        scheduling_generation: int | None = None,
        preconditions: Sequence[WritePrecondition] = (),
        uid: str = "",
        generation: int = 1,
        created_at: str = "",
    ) -> StoredObject | Superseded:
        state, change, key = self.state, creation_of(document), key_of(document)
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
        )
        row = ObjectRow(stored, change.index_keys, origin or origin_of_tombstone(state.tombstones.get(key)))
        state.place(row)
        state.reindex(key, IndexKeys(), change.index_keys)
        state.move_usage(key, (), row.seeds)
        self._announce_write(row, change, None)
        for owner in change.index_keys.owners:
            if owner not in state.uids and not uid:
                state.enqueue(f"garbage._.{owner}")
        state.unblock(objects=change.effects.unblocks)
        return stored

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
        bump_generation: bool = False,
        scheduling_generation: int | None = None,
        preconditions: Sequence[WritePrecondition] = (),
    ) -> StoredObject | Superseded:
        """Replace an object."""
        state, key, change = self.state, base.key, change_of(base, document)
        differs = change.differs or bump_generation
        if not differs and not preconditions and (last_applied, report_stamps, origin) == (None, None, None):
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
        )
        if superseded:
            return superseded
        row = state.rows[key]
        private = {"last_applied": last_applied, "report_stamps": report_stamps}
        kept = msgspec.structs.replace(row.stored, **{name: text for name, text in private.items() if text is not None})
        if differs and base.is_deleting and not change.parts.finalizers:
            version = state.remove(row, origin, unblock_index=change.effects.unblocks)
            return msgspec.structs.replace(kept, parts=change.parts, version=version)
        row.stored, row.origin = kept, origin or row.origin
        if differs:
            self._replace(row, change, bumped=change.spec or bump_generation)
        return row.stored

    def _replace(self, row: ObjectRow, change: ObjectChange, *, bumped: bool) -> None:
        state, old, seeds = self.state, row.stored, row.seeds
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
        if change.parts.seed_name:
            self._clear_unschedulable(row)
        freed = state.move_usage(old.key, seeds, row.seeds)
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

    def _clear_unschedulable(self, row: ObjectRow) -> None:
        row.stored = msgspec.structs.replace(row.stored, pending=b"")
        row.unschedulable_message, row.attempts, row.attempted_generation = "", 0, 0

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

    async def bind(self, bindings: Sequence[SeedBinding], usage_since: int | None = 0) -> BindResults:
        """Place shoots."""
        self.state.check_open()
        outcomes: list[BindOutcome] = []
        for binding in bindings:
            with tracing.within(binding.trace):
                outcomes.append(self._bind_one(binding))
        for binding, outcome in zip(bindings, outcomes, strict=True):
            if outcome == "bound":
                self.state.announce_followers(ObjectKey("shoot", binding.namespace, binding.name), ())
        return BindResults(outcomes, await self._usage_since(usage_since))

    def _bind_one(self, binding: SeedBinding) -> BindOutcome:
        state, key = self.state, ObjectKey("shoot", binding.namespace, binding.name)
        row = state.rows.get(key)
        if row is None or row.stored.uid != binding.uid:
            return "gone"
        if row.stored.is_deleting:
            return "deleting"
        if row.stored.parts.seed_name:
            return "scheduled"
        if row.stored.generation != binding.generation:
            return "changed"
        rejection = seed_rejection_reason(state, binding.seed, binding.scheduling_generation, key)
        if rejection is None:
            self._bind_shoot(row, binding)
        return rejection or "bound"

    def _bind_shoot(self, row: ObjectRow, binding: SeedBinding) -> None:
        state, old, seeds = self.state, row.stored, row.seeds
        finalizers = old.parts.finalizers
        spec = split({"apiVersion": "", "kind": "Shoot", "spec": binding.spec}).spec if binding.spec else old.parts.spec
        state.leave_class(row)
        row.stored = msgspec.structs.replace(
            old,
            parts=old.parts._replace(
                seed_name=binding.seed,
                spec=spec,
                finalizers=finalizers if FINALIZER in finalizers else (*finalizers, FINALIZER),
            ),
            version=state.next_version(),
            generation=old.generation + 1,
        )
        self._clear_unschedulable(row)
        state.move_usage(old.key, seeds, row.seeds)
        state.announce(row)
        now = state.now()
        row.bind_record = BindRecord(now, binding.decision_record) if binding.decision_record else None
        event = scheduled_event(old.key, old.uid, binding.seed, self._reporter)
        state.append(EventEntry(state.next_entry(), event, f"{old.uid}.{row.stored.version}", 1, now, now))
        if is_migrating(row.stored.parts):
            state.enqueue(f"migration.{old.key.namespace}.{old.key.name}")

    async def bind_record(self, key: ObjectKey) -> BindRecord | None:
        """Tell what was remembered with the bind."""
        self.state.check_open(with_outbox=False)
        row = self.state.rows.get(key)
        return row.bind_record if row is not None else None

    async def mark_unschedulable(
        self, unschedulable: Sequence[UnschedulableShoot], usage_since: int | None = 0
    ) -> UnschedulableResults:
        """Let shoots wait."""
        self.state.check_open()
        return UnschedulableResults(
            [self._mark_one(unschedulable_shoot) for unschedulable_shoot in unschedulable],
            await self._usage_since(usage_since),
        )

    def _mark_one(self, unschedulable_shoot: UnschedulableShoot) -> UnschedulableResult:
        state, key = self.state, ObjectKey("shoot", unschedulable_shoot.namespace, unschedulable_shoot.name)
        row = state.rows.get(key)
        if (
            row is None
            or not row.is_pending
            or (row.stored.uid, row.stored.generation, row.index_keys.scheduler_name)
            != (unschedulable_shoot.uid, unschedulable_shoot.generation, unschedulable_shoot.scheduler_name)
        ):
            return UnschedulableResult("done", 0)
        if (
            state.unblock_objects > unschedulable_shoot.seen.objects
            or state.unblock_usage != unschedulable_shoot.seen.usage
        ):
            return UnschedulableResult("again", 0)
        same_generation = row.attempted_generation == unschedulable_shoot.generation
        row.attempts, row.attempted_generation = row.attempts * same_generation + 1, unschedulable_shoot.generation
        state.leave_class(row)
        row.equivalence_class, row.activation_trace = unschedulable_shoot.equivalence_class, unschedulable_shoot.trace
        classes = state.waiting[unschedulable_shoot.scheduler_name]
        waiting = classes.setdefault(
            unschedulable_shoot.equivalence_class, UnschedulableIndex(unschedulable_shoot.descriptor)
        )
        waiting.descriptor = unschedulable_shoot.descriptor
        waiting.shoots[key] = state.total_unblock_index
        if row.unschedulable_message != unschedulable_shoot.message:
            self._mark_unschedulable(row, unschedulable_shoot)
        return UnschedulableResult("parked", row.attempts)

    def _mark_unschedulable(self, row: ObjectRow, unschedulable_shoot: UnschedulableShoot) -> None:
        state = self.state
        row.unschedulable_message = unschedulable_shoot.message
        row.stored = msgspec.structs.replace(
            row.stored,
            version=state.next_version(),
            pending=pending_operation(unschedulable_shoot.message, state.now()),
        )
        state.announce(row, with_binding=False)
        state.record_event(
            EventRecord(
                about=row.stored.key,
                uid=row.stored.uid,
                type="Warning",
                reason="SchedulingFailed",
                message=unschedulable_shoot.message,
                reporter=self._reporter,
                action="Reconcile",
            ),
            series=True,
        )

    async def activate(self, scheduler_name: str, equivalence_class: str, limit: int) -> int:
        """Queue waiting shoots again."""
        state = self.state
        state.check_open()
        waiting = state.waiting.get(scheduler_name, {}).get(equivalence_class)
        refused = waiting.shoots.items() if waiting else ()
        unseen = sorted(
            (unblock_index, member_of(key), key)
            for key, unblock_index in refused
            if unblock_index < state.total_unblock_index
        )
        for _, _, key in unseen[:limit]:
            row = state.rows[key]
            with tracing.within(row.activation_trace):
                state.leave_class(row)
                state.enqueue_shoot(scheduler_name, key)
        return len(unseen[:limit])

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

    async def is_fenced(self, seed: str) -> bool:
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
        self, key: ObjectKey, seed: str, uid: str = "", unknown: UnknownObject | None = None
    ) -> bool:
        """Announce an object again, or its removal, if the store has or remembers it."""
        state = self.state
        state.check_open(with_outbox=False)
        row, tombstone = state.rows.get(key), state.tombstones.get(key)
        if row and not (unknown is not None and unknown.runs and not state.is_settled(key, seed, uid)):
            state.announce(row, left=(seed,))
        elif not row and tombstone and uid in ("", tombstone.uid):
            state.announce_key(key, tombstone.version, tombstone.uid, "deleted", left=(seed,))
        else:
            if unknown is not None:
                state.unknown[seed, key] = unknown
            return False
        return True

    async def unknown_objects(self) -> Sequence[UnknownObject]:
        """Read what is unknown."""
        self.state.check_open(with_outbox=False)
        state = self.state
        found = [each for (seed, key), each in state.unknown.items() if not state.is_settled(key, seed, each.uid)]
        return sorted(found, key=lambda each: (each.key, each.seed))

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
            state.unknown.pop((seed, key), None)
            state.announce(row, left=(seed,))
            return
        if (uid or (seed, key) in state.unknown) and (tombstone is None or (uid and tombstone.uid != uid)):
            origin = origin_of_tombstone(tombstone)
            tombstone = state.tombstones[key] = Tombstone(uid, state.next_version(), state.now(), (seed,), origin)
        if tombstone is None:
            raise is_gone(key)
        state.unknown.pop((seed, key), None)
        state.announce_key(key, tombstone.version, tombstone.uid, "deleted", left=(seed,))

    async def close(self) -> None:
        """Nothing to release."""


def without_private(stored: StoredObject) -> StoredObject:
    """An object as lists and announcements carry it: without what only the apiserver reads."""
    return msgspec.structs.replace(stored, last_applied=b"", report_stamps=b"")
