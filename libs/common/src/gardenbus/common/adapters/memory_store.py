"""The store in memory: `ports.store.Store` in plain Python, the executable specification of the Redis Functions.

It answers, raises and announces what the store on Redis does (one contract suite and one state machine hold them
together), forgets everything at the end of the process, and serves one event loop.
"""

import uuid
from collections.abc import Mapping, Sequence

import msgspec

from gardenbus.common.adapters.memory_refusals import check_write, refusal_of
from gardenbus.common.adapters.memory_state import (
    MemoryState,
    Row,
    Waiting,
    is_migrating,
    member_of,
    origin_of_grave,
    seeds_of,
)
from gardenbus.common.adapters.store_answers import (
    OUTBOX_MAX,
    PAGE_MAX,
    Token,
    key_of,
    parked_operation,
    read_token,
    refused_since,
    scheduled_event,
    write_token,
)
from gardenbus.common.errors import Conflict, GardenbusError
from gardenbus.common.ports import tracing
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.outbox import EventNews
from gardenbus.common.ports.store import (
    Binding,
    BindOutcome,
    BindReply,
    Created,
    Creation,
    EventRecord,
    Gains,
    Guard,
    Page,
    Parked,
    Parking,
    ParkReply,
    Recorded,
    RequestOrigin,
    Superseded,
    Usage,
    WaitingClass,
    WaitingShoot,
)
from gardenbus.common.resources.changes import Change, change_of, creation_of
from gardenbus.common.resources.derived import FINALIZER, Derived, followed_shoot, meaning_of
from gardenbus.common.resources.document import Document, StoredObject, split
from gardenbus.common.resources.keys import CLUSTER_SCOPE, ObjectKey


class MemoryStore:
    """See `ports.store.Store`. `reporter` signs the Events that binding and parking raise.

    `is_open=False` starts it as a Redis that no relay has opened yet. The next `conflicts` updates (`math.inf`: all)
    are refused with Conflict whatever they are based on, to test how callers look again.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        reporter: str = "gardenbus",
        is_open: bool = True,
        conflicts: float = 0,
        outbox_max: int = OUTBOX_MAX,
    ) -> None:
        self.state = MemoryState(clock, is_open=is_open, outbox_max=outbox_max)
        self.conflicts = conflicts
        self._reporter = reporter

    def fence(self) -> None:
        """Close it, as a restart closes Redis."""
        self.state.is_open = False

    # ------------------------------------------------------------------------------------------ reads

    async def get(self, key: ObjectKey) -> StoredObject | None:
        """Read one object."""
        row = self.state.rows.get(key)
        return row.stored if row else None

    async def get_many(self, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
        """Read several objects."""
        return [await self.get(key) for key in keys]

    async def glance_many(self, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
        """Read several objects without what only the apiserver needs of them."""
        return [
            stored and msgspec.structs.replace(stored, last_applied=b"", report_fences=b"")
            for stored in await self.get_many(keys)
        ]

    async def list_page(
        self, kind: str, namespace: str | None = None, *, limit: int = 500, continue_token: str | None = None
    ) -> Page:
        """Read a page."""
        token = read_token(continue_token) if continue_token else None
        limit = max(1, min(limit, PAGE_MAX))
        members = {
            member_of(key): row.stored
            for key, row in self.state.rows.items()
            if key.kind == kind and (not namespace or (key.namespace or CLUSTER_SCOPE) == namespace)
        }
        names = sorted(name for name in members if token is None or name > token.after)[:limit]
        version, gain = (token.version, token.gain) if token else (self.state.version, self.state.gain_objects)
        return Page(
            [without_private(members[name]) for name in names],
            version,
            gain,
            write_token(Token(names[-1], version, gain)) if len(names) == limit else None,
        )

    async def usage(self, since: int = 0) -> Usage:
        """Read the usage that changed after `since`."""
        state = self.state
        changed = {seed: len(state.usage[seed]) for seed, version in state.usage_changed.items() if version > since}
        return Usage(state.usage_version, changed, Gains(state.gain_objects, state.gain_usage))

    async def _usage_since(self, since: int | None) -> Usage:
        return Usage(0, {}, Gains(0, 0)) if since is None else await self.usage(since)

    async def shoots_on(self, seed: str) -> Sequence[ObjectKey]:
        """Read the shoots that count on a seed."""
        return sorted(self.state.usage[seed])

    async def dependents(self, owner_uid: str) -> Sequence[ObjectKey]:
        """Read the objects owned by a uid."""
        return sorted(self.state.owned[owner_uid])

    async def exists_uid(self, uid: str) -> bool:
        """Tell whether a uid is stored."""
        return uid in self.state.uids

    async def waiting(self, scheduler_name: str) -> Sequence[WaitingClass]:
        """Read the waiting classes."""
        gain = self.state.total_gain
        return [
            WaitingClass(name, waiting.descriptor, len(waiting.shoots), sum(n < gain for n in waiting.shoots.values()))
            for name, waiting in self.state.waiting.get(scheduler_name, {}).items()
        ]

    async def waiting_shoots(self, scheduler_name: str | None = None, *, limit: int = 1_000) -> Sequence[WaitingShoot]:
        """Read the shoots that wait."""
        found = sorted(
            (gain, member_of(key), key, name)
            for name, classes in self.state.waiting.items()
            if scheduler_name in (None, name)
            for waiting in classes.values()
            for key, gain in waiting.shoots.items()
        )
        rows = [(self.state.rows[key], name) for _, _, key, name in found[:limit]]
        return [
            WaitingShoot(row.stored.key, name, row.refusal, refused_since(row.stored.pending), row.attempts)
            for row, name in rows
        ]

    async def pending(self, scheduler_name: str) -> int:
        """Count the pending shoots of a scheduler."""
        rows = self.state.rows.values()
        return sum(row.is_pending and row.derived.scheduler_name == scheduler_name for row in rows)

    async def census(self) -> Mapping[str, int]:
        """Count objects by kind, pending and waiting shoots, and what the outbox still holds."""
        state = self.state
        classes = [waiting for scheduler_name in [*state.waiting] for waiting in await self.waiting(scheduler_name)]
        return {
            "outbox": len(state.outbox),
            **{f"objects.{kind}": sum(key.kind == kind for key in state.rows) for kind in state.kinds},
            "shoots.pending": sum(row.is_pending for row in state.rows.values()),
            "shoots.waiting": sum(waiting.waiting for waiting in classes),
            "shoots.waiting_unseen": sum(waiting.unseen for waiting in classes),
        }

    # ------------------------------------------------------------------------------------------ writes

    async def create(
        self,
        document: Document,
        *,
        origin: RequestOrigin | None = None,
        last_applied: bytes = b"",
        gate: int | None = None,
        guards: Sequence[Guard] = (),
    ) -> StoredObject | Superseded:
        """Store a new object."""
        state, change, key = self.state, creation_of(document), key_of(document)
        state.check_open()
        superseded = check_write(state, key, 0, origin=origin, change=change, guards=guards, gate=gate)
        if superseded:
            return superseded
        version = state.next_version()
        stored = StoredObject(
            key=key,
            parts=change.parts,
            uid=str(uuid.uuid4()),
            version=version,
            generation=1,
            created_at=state.now(),
            gate=version if change.meaning.gate else 0,
            last_applied=last_applied,
        )
        row = Row(stored, change.derived, origin or origin_of_grave(state.graves.get(key)))
        state.place(row)
        state.reindex(key, Derived(), change.derived)
        state.move_usage(key, (), row.seeds)
        self._announce_write(row, change, None)
        for owner in change.derived.owners:
            if owner not in state.uids:
                state.enqueue(f"garbage._.{owner}")
        state.gained(objects=change.meaning.gain)
        return stored

    async def create_many(self, creations: Sequence[Creation]) -> Sequence[Created]:
        """Store new objects, each on its own."""
        return [await self._created(creation) for creation in creations]

    async def _created(self, creation: Creation) -> Created:
        try:
            with tracing.within(creation.trace or tracing.current()):
                return await self.create(
                    creation.document,
                    origin=creation.origin,
                    last_applied=creation.last_applied,
                    guards=creation.guards,
                )
        except GardenbusError as error:
            return error

    async def update(  # noqa: PLR0913  all that a write may depend on
        self,
        base: StoredObject,
        document: Document,
        *,
        origin: RequestOrigin | None = None,
        last_applied: bytes | None = None,
        report_fences: bytes | None = None,
        bump_generation: bool = False,
        gate: int | None = None,
        guards: Sequence[Guard] = (),
    ) -> StoredObject | Superseded:
        """Replace an object."""
        state, key, change = self.state, base.key, change_of(base, document)
        differs = change.differs or bump_generation
        if not differs and not guards and (last_applied, report_fences, origin) == (None, None, None):
            return base
        state.check_open()
        if self.conflicts > 0:
            self.conflicts -= 1
            raise Conflict(f"{key} is refused every update")
        superseded = check_write(
            state, key, base.version, origin=origin, change=change if differs else None, guards=guards, gate=gate
        )
        if superseded:
            return superseded
        row = state.rows[key]
        private = {"last_applied": last_applied, "report_fences": report_fences}
        kept = msgspec.structs.replace(row.stored, **{name: text for name, text in private.items() if text is not None})
        if differs and base.is_deleting and not change.parts.finalizers:
            version = state.remove(row, origin, gain=change.meaning.gain)
            return msgspec.structs.replace(kept, parts=change.parts, version=version)
        row.stored, row.origin = kept, origin or row.origin
        if differs:
            self._replace(row, change, bumped=change.spec or bump_generation)
        return row.stored

    def _replace(self, row: Row, change: Change, *, bumped: bool) -> None:
        state, old, seeds = self.state, row.stored, row.seeds
        followed = followed_shoot(old.key, row.derived)
        derived = change.derived._replace(scheduler_name=row.derived.scheduler_name)
        state.reindex(old.key, row.derived, derived)
        version = state.next_version()
        row.derived = derived
        row.stored = msgspec.structs.replace(
            old,
            parts=change.parts,
            version=version,
            generation=old.generation + bumped,
            gate=version if change.meaning.gate else old.gate,
        )
        if change.parts.seed_name:
            self._forget_refusals(row)
        freed = state.move_usage(old.key, seeds, row.seeds)
        if bumped:
            state.stop_waiting(row)
        change = change._replace(beyond_status=change.beyond_status or bumped)
        left = seeds - row.seeds
        if followed and followed != (follows := followed_shoot(old.key, derived)):
            left = state.seeds_at(followed) - state.seeds_at(follows)
            row.past |= left
        self._announce_write(row, change, old, left=left, requeue=bumped)
        state.gained(freed=freed, objects=change.meaning.gain)

    def _announce_write(
        self,
        row: Row,
        change: Change,
        old: StoredObject | None,
        *,
        left: frozenset[str] = frozenset(),
        requeue: bool = True,
    ) -> None:
        state, key = self.state, row.stored.key
        state.gain_objects += change.meaning.gain
        with_binding = change.beyond_status or key.kind == "seed"
        state.announce(row, "modified" if old else "added", with_binding=with_binding, left=left)
        if key.kind == "shoot":
            if row.seeds != (seeds_of(old.parts) if old else frozenset()):
                state.announce_followers(key, left)
            if is_migrating(row.stored.parts) != (old is not None and is_migrating(old.parts)):
                state.enqueue(f"migration.{key.namespace}.{key.name}")
        if requeue and row.is_pending:
            state.enqueue_shoot(row.derived.scheduler_name, row.stored.key)

    def _forget_refusals(self, row: Row) -> None:
        row.stored = msgspec.structs.replace(row.stored, pending=b"")
        row.refusal, row.attempts, row.attempted_generation = "", 0, 0

    async def delete(
        self, base: StoredObject, *, origin: RequestOrigin | None = None, guards: Sequence[Guard] = ()
    ) -> StoredObject | Superseded | None:
        """Mark an object for deletion, or remove it."""
        state = self.state
        state.check_open()
        superseded = check_write(state, base.key, base.version, origin=origin, change=None, guards=guards)
        if superseded:
            return superseded
        row, gain = state.rows[base.key], meaning_of(base.key.kind, base.document(), None).gain
        if not row.stored.parts.finalizers:
            state.remove(row, origin, gain=gain)
            return None
        row.origin = origin or row.origin
        if not row.stored.is_deleting:
            self._mark(row, gain=gain and base.key.kind == "seed")
        return row.stored

    async def rehearse(
        self,
        key: ObjectKey,
        base: StoredObject | None,
        document: Document | None,
        *,
        gate: int | None = None,
        guards: Sequence[Guard] = (),
    ) -> None:
        """Check a write without carrying it out."""
        self.state.check_open()
        change = None
        if document is not None:
            change = creation_of(document) if base is None else change_of(base, document)
        version = base.version if base is not None else 0
        differs = change if change is not None and change.differs else None
        check_write(self.state, key, version, origin=None, change=differs, guards=guards, gate=gate)

    def _mark(self, row: Row, *, gain: bool) -> None:
        """Mark for deletion. A seed takes nobody from here on: for the others it is lost now, not when it is gone."""
        state, version = self.state, self.state.next_version()
        state.stop_waiting(row)
        row.stored = msgspec.structs.replace(
            row.stored,
            version=version,
            deleting_at=state.now(),
            generation=row.stored.generation + 1,
            gate=version if row.stored.key.kind == "seed" else row.stored.gate,
        )
        state.gain_objects += gain
        state.announce(row)
        state.gained(objects=gain)

    async def bind(self, bindings: Sequence[Binding], usage_since: int | None = 0) -> BindReply:
        """Place shoots."""
        self.state.check_open()
        outcomes: list[BindOutcome] = []
        for binding in bindings:
            with tracing.within(binding.trace):
                outcomes.append(self._bind_one(binding))
        for binding, outcome in zip(bindings, outcomes, strict=True):
            if outcome == "bound":
                self.state.announce_followers(ObjectKey("shoot", binding.namespace, binding.name), ())
        return BindReply(outcomes, await self._usage_since(usage_since))

    def _bind_one(self, binding: Binding) -> BindOutcome:
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
        refusal = refusal_of(state, binding.seed, binding.gate, key)
        if refusal is None:
            self._place(row, binding)
        return refusal or "bound"

    def _place(self, row: Row, binding: Binding) -> None:
        state, old, seeds = self.state, row.stored, row.seeds
        finalizers = old.parts.finalizers
        spec = split({"apiVersion": "", "kind": "Shoot", "spec": binding.spec}).spec if binding.spec else old.parts.spec
        state.stop_waiting(row)
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
        self._forget_refusals(row)
        state.move_usage(old.key, seeds, row.seeds)
        state.announce(row)
        now = state.now()
        row.recorded = Recorded(now, binding.grounds) if binding.grounds else None
        event = scheduled_event(old.key, old.uid, binding.seed, self._reporter)
        state.append(EventNews(state.next_entry(), event, f"{old.uid}.{row.stored.version}", 1, now, now))
        if is_migrating(row.stored.parts):
            state.enqueue(f"migration.{old.key.namespace}.{old.key.name}")

    async def recorded(self, key: ObjectKey) -> Recorded | None:
        """Tell what was remembered with the bind."""
        row = self.state.rows.get(key)
        return row.recorded if row is not None else None

    async def park(self, parkings: Sequence[Parking], usage_since: int | None = 0) -> ParkReply:
        """Let shoots wait."""
        self.state.check_open()
        return ParkReply([self._park_one(parking) for parking in parkings], await self._usage_since(usage_since))

    def _park_one(self, parking: Parking) -> Parked:
        state, key = self.state, ObjectKey("shoot", parking.namespace, parking.name)
        row = state.rows.get(key)
        if (
            row is None
            or not row.is_pending
            or (row.stored.uid, row.stored.generation, row.derived.scheduler_name)
            != (parking.uid, parking.generation, parking.scheduler_name)
        ):
            return Parked("done", 0)
        if state.gain_objects > parking.seen.objects or state.gain_usage != parking.seen.usage:
            return Parked("again", 0)
        same_generation = row.attempted_generation == parking.generation
        row.attempts, row.attempted_generation = row.attempts * same_generation + 1, parking.generation
        state.stop_waiting(row)
        row.waiting_class, row.waiting_trace = parking.waiting_class, parking.trace
        classes = state.waiting[parking.scheduler_name]
        waiting = classes.setdefault(parking.waiting_class, Waiting(parking.descriptor))
        waiting.descriptor = parking.descriptor
        waiting.shoots[key] = state.total_gain
        if row.refusal != parking.message:
            self._refuse(row, parking)
        return Parked("parked", row.attempts)

    def _refuse(self, row: Row, parking: Parking) -> None:
        state = self.state
        row.refusal = parking.message
        row.stored = msgspec.structs.replace(
            row.stored, version=state.next_version(), pending=parked_operation(parking.message, state.now())
        )
        state.announce(row, with_binding=False)
        state.record_event(
            EventRecord(
                about=row.stored.key,
                uid=row.stored.uid,
                type="Warning",
                reason="SchedulingFailed",
                message=parking.message,
                reporter=self._reporter,
                action="Reconcile",
            )
        )

    async def wake(self, scheduler_name: str, waiting_class: str, limit: int) -> int:
        """Queue waiting shoots again."""
        state = self.state
        state.check_open()
        waiting = state.waiting.get(scheduler_name, {}).get(waiting_class)
        refused = waiting.shoots.items() if waiting else ()
        unseen = sorted((gain, member_of(key), key) for key, gain in refused if gain < state.total_gain)
        for _, _, key in unseen[:limit]:
            row = state.rows[key]
            with tracing.within(row.waiting_trace):
                state.stop_waiting(row)
                state.enqueue_shoot(scheduler_name, key)
        return len(unseen[:limit])

    async def record_event(self, event: EventRecord) -> None:
        """Announce an Event."""
        self.state.check_open()
        self.state.record_event(event)

    async def accept_fence(self, seed: str, created: int, number: int) -> bool:
        """Compare a fencing number with the highest of its seed."""
        self.state.check_open(with_outbox=False)
        if (created, number) < self.state.fences.get(seed, (0, 0)):
            return False
        self.state.fences[seed] = (created, number)
        return True

    async def announce_again(self, key: ObjectKey, seed: str) -> None:
        """Announce an object again, and to `seed` that it is not (or no longer) its own if so."""
        state = self.state
        state.check_open(with_outbox=False)
        row, grave = state.rows.get(key), state.graves.get(key)
        if row:
            state.announce(row, left=(seed,))
        elif grave:
            state.announce_key(key, grave.version, grave.uid, "deleted", left=(seed,))
        else:
            state.announce_key(key, state.version, "", "deleted", left=(seed,))

    async def close(self) -> None:
        """Nothing to release."""


def without_private(stored: StoredObject) -> StoredObject:
    """An object as lists and announcements carry it: without what only the apiserver reads."""
    return msgspec.structs.replace(stored, last_applied=b"", report_fences=b"")
