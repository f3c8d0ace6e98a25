"""The store on Redis: `ports.store.Store` over the Redis Functions in `functions/`.

Python works out what a write changes (resources/changes.py), the functions check and carry it out.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import msgspec

from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.preconditions import for_people, guards, seen_groups, unmet
from gardenbus.common.adapters.redis.reads import RedisReads, usage_of
from gardenbus.common.adapters.redis.records import (
    applied_reply,
    created_fields,
    event_fields,
    packed_fields,
    packed_text,
    written_fields,
)
from gardenbus.common.adapters.store_responses import (
    BATCH,
    OUTBOX_MAX,
    claim_conflict,
    exists_already,
    has_moved_on,
    is_gone,
    key_of,
    pending_operation,
    runs_unknown,
    seed_has_shoots,
    seed_rejection,
)
from gardenbus.common.api.changes import ObjectChange, change_of, creation_of, with_metadata_of
from gardenbus.common.api.document import UNKNOWN_LAST_APPLIED, Document, Parts, StoredObject, encode, split
from gardenbus.common.api.garden.resource_amounts import lines_of
from gardenbus.common.api.garden.scheduling_requirements import GATED, PRIORITIZED, resolved_of
from gardenbus.common.api.index_keys import effects_of
from gardenbus.common.api.keys import CLUSTER_SCOPE, ObjectKey
from gardenbus.common.errors import GardenbusError, Unsupported
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import StreamPosition
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import (
    BindOutcome,
    BindResults,
    CreateResult,
    Creation,
    EventRecord,
    RequestOrigin,
    SeedBinding,
    Superseded,
    UnknownObject,
    UnschedulableResult,
    UnschedulableResults,
    UnschedulableShoot,
    WritePrecondition,
)
from gardenbus.common.side_thread import beside_loop

MOST_SHARED = 200
"""Creations whose fields are kept for others that are like them."""


def origin_text(origin: RequestOrigin | None) -> str:
    """An origin as text whose lexical order is the order of the bus."""
    return f"{origin.created:020d}.{origin.sequence:020d}.{origin.document:010d}" if origin else ""


def _traced() -> dict[str, str]:
    trace = tracing.current()
    return {"trace": trace} if trace else {}


def _origin_of(text: bytes) -> RequestOrigin:
    created, sequence, document = text.decode().split(".")
    return RequestOrigin(int(created), int(sequence), int(document))


class RedisStore(RedisReads):
    """See `ports.store.Store`. `reporter` signs the Events of binds and of shoots marked unschedulable.

    `new_uid` gives the uid of a new object.
    """

    def __init__(
        self,
        connection: RedisConnection,
        clock: Clock,
        *,
        reporter: str = "gardenbus",
        new_uid: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        super().__init__(connection)
        self._clock = clock
        self._reporter = reporter
        self._new_uid = new_uid
        self._shared: dict[int, tuple[ObjectChange, Mapping[str, str | msgspec.Raw]]] = {}

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
        change, key = await beside_loop(len(last_applied), partial(creation_of, document)), key_of(document)
        beside = Creation(document, origin, last_applied, owner_setters)
        operation = self._creation(key, change, beside, self._now())
        operation["guards"] = guards(preconditions)
        if scheduling_generation is not None:
            operation["gate_seen"] = scheduling_generation
        return self._created(key, change, beside, await self._connection.call("put", operation), preconditions)

    async def create_many(self, creations: Sequence[Creation]) -> Sequence[CreateResult]:
        """Store new objects in one call."""
        now = self._now()
        changes = [
            (
                key_of(one.document),
                with_metadata_of(one.document, one.like)
                if one.like is not None
                else await beside_loop(len(one.last_applied), partial(creation_of, one.document)),
                one,
            )
            for one in creations
        ]
        operations = [self._creation(key, change, one, now) for key, change, one in changes]
        for operation, creation in zip(operations, creations, strict=True):
            if creation.trace:
                operation["trace"] = creation.trace
            if creation.preconditions:
                operation["guards"] = guards(creation.preconditions)
        replies = await self._connection.call_batch("put", operations)
        return [
            reply if isinstance(reply, GardenbusError) else self._ended(key, change, one, reply)
            for (key, change, one), reply in zip(changes, replies, strict=True)
        ]

    def _ended(self, key: ObjectKey, change: ObjectChange, creation: Creation, reply: Sequence[Any]) -> CreateResult:
        try:
            return self._created(key, change, creation, reply, creation.preconditions)
        except GardenbusError as error:
            return error

    def _creation(self, key: ObjectKey, change: ObjectChange, creation: Creation, now: str) -> dict[str, Any]:
        """Operation of `put` for a new object."""
        fields = dict(self._shared_fields(creation.like) if creation.like is not None else created_fields(change))
        fields["meta"] = change.parts.meta.decode()
        if creation.last_applied:
            fields["last"] = packed_text(creation.last_applied)
        if creation.owner_setters:
            fields["setters"] = creation.owner_setters.decode()
        return {
            "key": key.stored,
            "kind": key.kind,
            "ns": key.namespace or CLUSTER_SCOPE,
            "name": key.name,
            "now": now,
            "outbox_max": OUTBOX_MAX,
            "base": 0,
            "origin": origin_text(creation.origin),
            "gate": change.effects.outdates_decisions,
            "unblocks": change.effects.unblocks,
            "bindings": True,
            "guards": (),
            "set": fields,
            "uid": self._new_uid(),
            **_traced(),
        }

    def _shared_fields(self, like: ObjectChange) -> Mapping[str, str | msgspec.Raw]:
        """The fields of several creations that are like each other, made once."""
        shared = self._shared.get(id(like))
        if shared is None or shared[0] is not like:
            if len(self._shared) >= MOST_SHARED:
                del self._shared[next(iter(self._shared))]
            shared = self._shared[id(like)] = (like, created_fields(like))
        return shared[1]

    def _created(
        self,
        key: ObjectKey,
        change: ObjectChange,
        creation: Creation,
        reply: Sequence[Any],
        preconditions: Sequence[WritePrecondition],
    ) -> StoredObject | Superseded:
        if reply[0] != b"created":
            return self._raise_rejection(key, reply, preconditions)
        base = StoredObject(
            key=key,
            parts=change.parts,
            uid="",
            version=0,
            generation=0,
            created_at="",
            last_applied=creation.last_applied,
            owner_setters=creation.owner_setters,
        )
        return applied_reply(base, change.parts, reply[1])

    async def update(  # noqa: PLR0913  all that a write may depend on
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
        change = await beside_loop(base.size + len(last_applied or b""), partial(change_of, base, document))
        base = msgspec.structs.replace(
            base,
            last_applied=base.last_applied if last_applied is None else last_applied,
            report_stamps=base.report_stamps if report_stamps is None else report_stamps,
            owner_setters=base.owner_setters if owner_setters is None else owner_setters,
        )
        beside = {"last": last_applied, "rf": report_stamps, "setters": owner_setters}
        fields = {name: text.decode() for name, text in beside.items() if text is not None}
        operation = self._operation(base.key, base.version, origin, change, preconditions, scheduling_generation)
        operation["bump"] = bump_generation or (change.spec and not keep_generation)
        operation["bindings"] |= bump_generation  # the gardenlet has work to do though the manifest is the same
        if change.differs or bump_generation:
            fields |= _changed_fields(base.parts, change)
        elif fields or origin or preconditions:
            operation["quiet"] = True
        else:
            return base
        reply = await self._connection.call("put", operation | {"set": packed_fields(fields)})
        if reply[0] == b"ok":
            return applied_reply(base, change.parts, reply[1])
        if reply[0] == b"removed":
            return msgspec.structs.replace(base, parts=change.parts, version=int(reply[1]))
        return self._raise_rejection(base.key, reply, preconditions)

    async def delete(
        self,
        base: StoredObject,
        *,
        origin: RequestOrigin | None = None,
        preconditions: Sequence[WritePrecondition] = (),
    ) -> StoredObject | Superseded | None:
        """Mark an object for deletion, or remove it."""
        operation = {
            **self._object_fields(base.key),
            "base": base.version,
            "origin": origin_text(origin),
            "unblocks": effects_of(base.key.kind, base.document(), None).unblocks,
            "guards": guards(preconditions),
        }
        reply = await self._connection.call("delete", operation)
        if reply[0] == b"removed":
            return None
        if reply[0] == b"ok":
            return applied_reply(base, base.parts, reply[1])
        return self._raise_rejection(base.key, reply, preconditions)

    async def confirm_reads(self) -> None:
        """Have the replicas confirm them."""
        await self._connection.ensure_replicas()

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
        fields: dict[str, str] = {}
        if document is not None and base is None:
            change = creation_of(document)
            fields = written_fields(change.parts, change.index_keys)
        elif document is not None and base is not None and (change := change_of(base, document)).differs:
            fields = _changed_fields(base.parts, change)
        operation = {
            **self._object_fields(key),
            "base": base.version if base is not None else 0,
            "origin": "",
            "guards": guards(preconditions),
            "set": packed_fields(fields),
            **({} if scheduling_generation is None else {"gate_seen": scheduling_generation}),
            **({"unknown": key.stored} if is_adoption else {}),
        }
        reply = await self._connection.call("dry_run", operation, read_only=True)
        if reply[0] != b"ok":
            self._raise_rejection(key, reply, preconditions)

    async def bind(self, bindings: Sequence[SeedBinding], usage_since: int | None = 0) -> BindResults:
        """Place shoots."""
        now = self._now()
        items = [self._binding_item(binding, now) for binding in bindings]
        reply = await self._connection.call("bind", {"items": items, "outbox_max": OUTBOX_MAX} | _since(usage_since))
        return BindResults([cast("BindOutcome", outcome.decode()) for outcome in reply[1]], usage_of(reply[2]))

    async def mark_unschedulable(
        self, unschedulable: Sequence[UnschedulableShoot], usage_since: int | None = 0
    ) -> UnschedulableResults:
        """Let shoots wait."""
        now = self._now()
        items = [self._unschedulable_item(unschedulable_shoot, now) for unschedulable_shoot in unschedulable]
        operation = {"items": items, "outbox_max": OUTBOX_MAX} | _since(usage_since)
        reply = await self._connection.call("mark_unschedulable", operation)
        return UnschedulableResults(
            [UnschedulableResult(outcome.decode(), int(attempts)) for outcome, attempts in reply[1]], usage_of(reply[2])
        )

    async def activate(self, scheduler_name: str, equivalence_class: str, limit: int) -> int:
        """Queue waiting shoots again, BATCH a call."""
        activated = 0
        while activated < limit:
            wanted = min(BATCH, limit - activated)
            operation = {"sched": scheduler_name, "class": equivalence_class, "limit": wanted, "outbox_max": OUTBOX_MAX}
            reply = await self._connection.call("unblock", operation)
            activated += int(reply[1])
            if int(reply[1]) < wanted:
                break
        return activated

    async def record_event(self, event: EventRecord) -> None:
        """Announce an Event."""
        await self._connection.call(
            "event",
            event_fields(event, self._now()) | {"outbox_max": OUTBOX_MAX},
        )

    async def accept_fencing_token(
        self, seed: str, created: int, number: int, *, last: StreamPosition | None = None
    ) -> bool:
        """Compare a fencing number with the highest of its seed."""
        end = f"{last.created:020d}.{last.sequence:020d}" if last else ""
        operation = {"seed": seed, "number": f"{created:020d}.{number:020d}", "last": end}
        return bool((await self._connection.call("accept_fence", operation))[1])

    async def has_fencing_token(self, seed: str) -> bool:
        """Look for a fencing number of a seed."""
        reply = await self._connection.call("is_fenced", {"seed": seed}, read_only=True)
        return bool(reply[1])

    async def reannounce_object(
        self, key: ObjectKey, seed: str, uid: str = "", unknown: UnknownObject | None = None, *, is_own: bool = True
    ) -> bool:
        """Announce an object again, or its removal, if the store has or remembers it."""
        held = _held(unknown) if unknown is not None else ""
        runs = unknown is not None and unknown.runs
        operation = self._object_fields(key) | {"left": seed, "uid": uid, "held": held, "runs": runs, "own": is_own}
        return (await self._connection.call("announce_again", operation))[0] == b"ok"

    async def unknown_objects(self) -> Sequence[UnknownObject]:
        """Read what is unknown."""
        reply = await self._connection.call("unknown", {}, read_only=True)
        return sorted(map(_unknown, reply[1::2], reply[2::2]), key=lambda each: (each.key, each.seed))

    async def unknown_object(self, key: ObjectKey, seed: str) -> UnknownObject | None:
        """Read one of what is unknown."""
        reply = await self._connection.call("unknown", {"field": f"{seed} {key.stored}"}, read_only=True)
        return next(map(_unknown, reply[1::2], reply[2::2]), None)

    async def adopt(self, unknown: UnknownObject) -> StoredObject:
        """Store an unknown object."""
        metadata, key = unknown.manifest["metadata"], unknown.key
        change = creation_of(unknown.manifest)
        creation = Creation(unknown.manifest, last_applied=UNKNOWN_LAST_APPLIED)
        operation = self._creation(key, change, creation, self._now()) | {
            "uid": unknown.uid,
            "generation": metadata["generation"],
            "created": metadata["creationTimestamp"],
            "unknown": f"{unknown.seed} {key.stored}",
        }
        reply = await self._connection.call("put", operation)
        adopted = self._created(key, change, creation, reply, ())
        assert isinstance(adopted, StoredObject)  # it has no origin that could be superseded
        return adopted

    async def forget(self, key: ObjectKey, seed: str, uid: str = "") -> None:
        """Remember a removal."""
        operation = self._object_fields(key) | {"seed": seed, "uid": uid}
        reply = await self._connection.call("forget", operation)
        if reply[0] == b"exists":
            raise exists_already(key)
        if reply[0] == b"gone":
            raise is_gone(key)

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    # ------------------------------------------------------------------------------------------ parts of calls

    def _now(self) -> str:
        return timestamp(self._clock.now())

    def _object_fields(self, key: ObjectKey) -> dict[str, Any]:
        return {
            "key": key.stored,
            "kind": key.kind,
            "ns": key.namespace or CLUSTER_SCOPE,
            "name": key.name,
            "now": self._now(),
            "outbox_max": OUTBOX_MAX,
            **_traced(),
        }

    def _operation(
        self,
        key: ObjectKey,
        base: int,
        origin: RequestOrigin | None,
        change: ObjectChange,
        preconditions: Sequence[WritePrecondition],
        scheduling_generation: int | None,
    ) -> dict[str, Any]:
        return self._object_fields(key) | {
            "base": base,
            "origin": origin_text(origin),
            "gate": change.effects.outdates_decisions,
            "unblocks": change.effects.unblocks,
            "bindings": change.beyond_status or key.kind == "seed",
            "guards": guards(preconditions),
            **({} if scheduling_generation is None else {"gate_seen": scheduling_generation}),
        }

    def _binding_item(self, binding: SeedBinding, now: str) -> dict[str, Any]:
        item: dict[str, Any] = {
            "ns": binding.namespace,
            "name": binding.name,
            "uid": binding.uid,
            "gen": binding.generation,
            "seed": binding.seed,
            "by": self._reporter,
            "now": now,
        }
        if binding.scheduling_generation is not None:
            item["gate"] = binding.scheduling_generation
        if binding.trace:
            item["trace"] = binding.trace
        if binding.groups:
            item["groups"] = seen_groups(binding.groups)
        if binding.decision_record:
            item["why"] = f"{now} {binding.decision_record.decode()}"
        if binding.spec is not None:
            item["spec"] = packed_text(split({"apiVersion": "", "kind": "Shoot", "spec": binding.spec}).spec)
        return item

    def _unschedulable_item(self, unschedulable_shoot: UnschedulableShoot, now: str) -> dict[str, Any]:
        item: dict[str, Any] = {
            "ns": unschedulable_shoot.namespace,
            "name": unschedulable_shoot.name,
            "uid": unschedulable_shoot.uid,
            "gen": unschedulable_shoot.generation,
            "sched": unschedulable_shoot.scheduler_name,
            "class": unschedulable_shoot.equivalence_class,
            "descriptor": unschedulable_shoot.descriptor.decode(),
            "seen_objects": unschedulable_shoot.seen.objects,
            "seen_usage": unschedulable_shoot.seen.usage,
            "message": unschedulable_shoot.message,
            "pending": pending_operation(unschedulable_shoot.message, now).decode(),
            "by": self._reporter,
            "now": now,
        }
        if unschedulable_shoot.groups:
            item["groups"] = seen_groups(unschedulable_shoot.groups)
        return item | {"trace": unschedulable_shoot.trace} if unschedulable_shoot.trace else item

    def _raise_rejection(
        self, key: ObjectKey, reply: Sequence[Any], preconditions: Sequence[WritePrecondition]
    ) -> Superseded:
        match reply[0]:
            case b"superseded":
                return Superseded(_origin_of(reply[1]))
            case b"exists":
                raise exists_already(key)
            case b"gone":
                raise is_gone(key)
            case b"conflict":
                raise has_moved_on(key, int(reply[1]))
            case b"guarded" | b"regrouped" | b"held" | b"outdated" | b"exceeded" | b"beyond" | b"counted" | b"stored":
                raise unmet(preconditions[int(reply[1]) - 1], reply)
            case b"in-use":
                raise seed_has_shoots(key, int(reply[1]), for_people(reply[2]))
            case b"claimed":
                raise claim_conflict(reply[1].decode(), ObjectKey.from_stored(reply[2].decode()))
            case b"unknown":
                raise runs_unknown(key, reply[1].decode())
            case b"rejected":
                raise seed_rejection(key, reply[1].decode())
            case other:
                raise Unsupported(f"{key}: unexpected response of the store: {other!r}")


def _held(unknown: UnknownObject) -> str:
    requested = "\n".join(lines_of(resolved_of(unknown.manifest).requests))
    of_shoot = {"rq": requested} if requested else {}
    return encode({"uid": unknown.uid, "manifest": unknown.manifest, **of_shoot}).decode()


def _unknown(field: bytes, held: bytes) -> UnknownObject:
    seed, _, stored = field.decode().partition(" ")
    fields = {name: value for name, value in msgspec.json.decode(held).items() if name != "rq"}
    found = UnknownObject(key=ObjectKey.from_stored(stored), seed=seed, **fields)
    return msgspec.structs.replace(found, is_adoptable=found.is_adoptable or bool(found.manifest))


def _changed_fields(old: Parts, change: ObjectChange) -> dict[str, str]:
    """The fields of what differs, and all index values (they are short)."""
    fields = written_fields(change.parts, change.index_keys)
    same = {"av", "kd"} | {
        field
        for field, name in (
            ("meta", "meta"),
            ("labels", "labels"),
            ("fin", "finalizers"),
            ("spec", "spec"),
            ("status", "status"),
            ("rest", "rest"),
            ("seed", "seed_name"),
            ("sseed", "status_seed_name"),
        )
        if getattr(old, name) == getattr(change.parts, name)
    }
    if GATED not in old.meta:
        same.add("sched")  # immutable once stored
    if PRIORITIZED not in old.meta and not change.index_keys.band:
        same.add("bd")
    return {name: value for name, value in fields.items() if name not in same}


def _since(usage_since: int | None) -> dict[str, int]:
    return {} if usage_since is None else {"since": usage_since}
