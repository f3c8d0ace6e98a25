"""Looks at sets: read, decide, write the intent, act on it.

1. The set is read, then all about it (`surveying`); owners are put right first, as they say what the replicas are.
2. `decide.actuator` decides.
3. The set's status is written, on the version that was read: of two replicas of this service only one can.
4. The actions follow, each only while the set has the version of that write. Whoever dies in between leaves the intent
   behind, and the next look carries it out.
"""

import structlog

from gardenbus.common.errors import Conflict, Forbidden, NotFound, Terminal, Transient, Unavailable
from gardenbus.common.machinery.controller import After, Again, Done, Outcome, WorkRequest
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import EventRecord, Guard, Store
from gardenbus.common.resources.derived import FINALIZER
from gardenbus.common.resources.document import Document, StoredObject, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.seed_management import MARKED_FOR_REMOVAL
from gardenbus.managedseedset.decide.actions import (
    Action,
    Apply,
    Bind,
    Decision,
    Delete,
    DeleteManagedSeed,
    DrainUnknown,
    MarkSeed,
    Patch,
    SetEvent,
)
from gardenbus.managedseedset.decide.actuator import ActuatorSettings, decide
from gardenbus.managedseedset.decide.refusals import with_creation_refused, with_refusal
from gardenbus.managedseedset.decide.replicas import is_deleting
from gardenbus.managedseedset.reconcilers import counters
from gardenbus.managedseedset.reconcilers.garden import Condition, Garden
from gardenbus.managedseedset.reconcilers.surveying import Surroundings, Surveyor

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

REPORTER = "managedseedset"
KIND = "managedseedset"


class SetReconciler:
    """Looks at one set at a time; any number of them, in any number of processes, may look at once."""

    def __init__(
        self, store: Store, garden: Garden, surveyor: Surveyor, clock: Clock, settings: ActuatorSettings
    ) -> None:
        self._store = store
        self._garden = garden
        self._surveyor = surveyor
        self._clock = clock
        self._settings = settings

    async def reconcile(self, request: WorkRequest) -> Outcome:
        """Look at a set. Raises Conflict, Unavailable."""
        stored = await self._store.get(ObjectKey(KIND, request.namespace, request.name))
        if stored is None:
            return Done("it is gone")
        if stored.is_deleting and FINALIZER not in stored.parts.finalizers:
            return Done("it is leaving")
        try:
            return await self._look(stored)
        except Terminal as error:
            await self._tell(stored, (SetEvent("ReconcileError", error.message, "Warning"),))
            raise Unavailable(error.message) from error  # what refuses may change, and nobody would tell

    async def rejected(self, request: WorkRequest, reason: str) -> None:
        """Work that ended every process which took it is given up, aloud."""
        log.error("work.rejected", object=request.tail, reason=reason)
        stored = await self._store.get(ObjectKey(KIND, request.namespace, request.name))
        if stored is not None:
            await self._tell(stored, (SetEvent("ReconcileError", reason, "Warning"),))

    async def _look(self, stored: StoredObject) -> Outcome:
        around = await self._surveyor.survey(stored)
        if await self._put_owners_right(stored, around):
            return Again("replicas were adopted or released")
        decision = await self._decision(around)
        written = await self._write(stored, decision)
        if written is None:
            counters.forget(str(stored.key))
            log.info("set.released", set=str(stored.key))
            return Done("all its replicas are gone")
        await self._tell(written, decision.events)
        try:
            for action in decision.actions:
                if not await self._carry_out(action, written):
                    break
        except Conflict as error:
            await self._outrun(decision, written, error)
            raise
        self._count(written, decision)
        return After(decision.after_seconds)

    async def _put_owners_right(self, stored: StoredObject, around: Surroundings) -> bool:
        """Adopt and release; whether anything changed. What is refused is told, and left as it is."""
        changed = False
        condition = Condition(stored.key, stored.version)
        for change in around.family.changes:
            try:
                await self._garden.patch(change.key, change.patch, condition)
            except NotFound:
                changed = True
            except Terminal as error:
                message = f"The owners of {change.key} cannot be changed: {error.message}"
                await self._tell(stored, (SetEvent("ReconcileError", message, "Warning"),))
            else:
                changed = True
                await self._done(change, stored)
        return changed

    async def _decision(self, around: Surroundings) -> Decision:
        world = around.world
        while True:
            decision = decide(world, self._settings)
            if not isinstance(decision, DrainUnknown):
                return decision
            drain = await self._surveyor.drain_of(decision, around)
            world = world.with_drain(decision.seed, drain)

    async def _write(self, stored: StoredObject, decision: Decision) -> StoredObject | None:
        """Write the status and keep, or drop, the finalizer; None when the set is removed by that."""
        document = stored.document()
        others = [each for each in stored.parts.finalizers if each != FINALIZER]
        if decision.released:
            document["metadata"]["finalizers"] = others
        elif not stored.is_deleting:
            document["metadata"]["finalizers"] = [*others, FINALIZER]
        document["status"] = decision.status
        guards = [Guard("version", key.stored, f"{key} has come about meanwhile") for key in decision.absent]
        written = await self._updated(stored, document, guards)
        return None if decision.released and not others else written

    async def _updated(self, stored: StoredObject, document: Document, guards: list[Guard]) -> StoredObject:
        try:
            written = await self._store.update(stored, document, guards=guards)
        except NotFound as error:
            raise Conflict(f"{stored.key} is gone") from error
        if not isinstance(written, StoredObject):
            raise Conflict(f"{stored.key} changed meanwhile")
        return written

    async def _carry_out(self, action: Action, written: StoredObject) -> bool:
        """Do one thing; whether to go on with the next. Raises Conflict when the decision has to be made anew."""
        condition = Condition(written.key, written.version)
        try:
            await self._request(action, condition)
        except Terminal as error:
            counters.REFUSALS.labels(error.reason).inc()
            if isinstance(action, Apply):
                return await self._refused(action, written, error)
            if isinstance(error, Forbidden) and not isinstance(action, Patch):
                raise Conflict(error.message) from error  # in use by now, or full
            raise
        await self._done(action, written)
        return True

    async def _request(self, action: Action, condition: Condition) -> None:
        match action:
            case Apply(document=document):
                await self._garden.apply(document, condition)
            case Patch(key=key, patch=patch):
                await self._garden.patch(key, patch, condition)
            case Delete(key=key):
                await self._garden.delete(key, condition)
            case DeleteManagedSeed():
                await self._delete_managed_seed(action, condition)
            case Bind(shoot=shoot, seed=seed):
                await self._garden.bind(shoot, seed, condition)
            case MarkSeed(seed=seed, marked=marked):
                await self._mark(seed, condition, marked=marked)

    async def _delete_managed_seed(self, action: DeleteManagedSeed, condition: Condition) -> None:
        """Delete it in one write that holds all that the removal of a seed depends on."""
        stored = await self._store.get(action.key)
        if stored is None or stored.is_deleting:
            return
        if stored.version != action.version:
            raise Conflict(f"{action.key} changed meanwhile")
        name = action.key.name
        guards = [_unchanged(condition), Guard("usage", name, f"{action.key}: shoots are on its seed")]
        if action.without_seed:
            seed = ObjectKey("seed", "", name)
            guards.append(Guard("version", seed.stored, f"{seed} has come about meanwhile"))
        try:
            await self._store.delete(stored, guards=guards)
        except NotFound:
            return

    async def _mark(self, seed: str, condition: Condition, *, marked: bool) -> None:
        """Mark in one write that fails unless nothing is on the seed, and after which nothing comes; or undo it."""
        stored = await self._store.get(ObjectKey("seed", "", seed))
        if stored is None:
            return
        document = stored.document()
        annotations = section(document, "metadata", "annotations")
        kept = {name: value for name, value in annotations.items() if name != MARKED_FOR_REMOVAL}
        owner = f"{condition.key.namespace}/{condition.key.name}"
        document["metadata"]["annotations"] = kept | ({MARKED_FOR_REMOVAL: owner} if marked else {})
        guards = [_unchanged(condition)]
        if marked:
            guards.append(Guard("usage", seed, f"seed {seed} is in use"))
        try:
            await self._store.update(stored, document, guards=guards)
        except NotFound:
            return

    async def _refused(self, action: Apply, written: StoredObject, error: Terminal) -> bool:
        """Note what admission refused: an update waits for the set to change, a new replica keeps its ordinal."""
        current = written.document()
        if action.updates:
            noted = with_refusal(current, action.updates, error.message, self._clock.now())
            await self._updated(written, noted, [])
            await self._tell(written, (SetEvent("UpdateFailed", error.message, "Warning"),))
            return False
        if action.creates:
            key = ObjectKey("shoot", written.key.namespace, action.creates)
            noted = with_creation_refused(current, action.creates, error.message)
            await self._updated(written, noted, [Guard("version", key.stored, f"{key} is there")])
        raise error

    async def _outrun(self, decision: Decision, written: StoredObject, error: Conflict) -> None:
        """Say that an announced replica was not made, as the set changed before: nobody has to wait for it."""
        announced = section(written.document(), "status").get("pendingReplica")
        name = next((each.creates for each in decision.actions if isinstance(each, Apply) and each.creates), "")
        stored = await self._store.get(written.key) if name else None
        if stored is None or section(stored.document(), "status").get("pendingReplica") != announced:
            return
        key = ObjectKey("shoot", written.key.namespace, name)
        noted = with_creation_refused(stored.document(), name, error.message)
        await self._updated(stored, noted, [Guard("version", key.stored, f"{key} is there")])

    async def _done(self, action: Action, stored: StoredObject) -> None:
        name, about = _described(action)
        counters.ACTIONS.labels(name, about.kind).inc()
        log.info("action.finished", action=name, set=str(stored.key), object=str(about))
        if action.event is not None:
            await self._tell(stored, (action.event,))

    async def _tell(self, stored: StoredObject, events: tuple[SetEvent, ...]) -> None:
        verb = "Delete" if stored.is_deleting else "Reconcile"
        for event in events:
            record = EventRecord(
                about=stored.key,
                uid=stored.uid,
                type=event.type,
                reason=event.reason,
                message=event.message,
                reporter=REPORTER,
                action=verb,
            )
            try:
                await self._store.record_event(record)
            except Transient as error:
                log.warning("event.lost", set=str(stored.key), event_reason=event.reason, reason=error.message)

    def _count(self, stored: StoredObject, decision: Decision) -> None:
        name, document = str(stored.key), stored.document()
        counters.REPLICAS.labels(name).set(decision.status.get("replicas", 0))
        counters.READY_REPLICAS.labels(name).set(decision.status.get("readyReplicas", 0))
        wanted = 0 if is_deleting(document) else section(document, "spec").get("replicas", 1)
        counters.WANTED_REPLICAS.labels(name).set(wanted)


def _unchanged(condition: Condition) -> Guard:
    key = condition.key
    return Guard("version", key.stored, f"{key} changed meanwhile", condition.version)


def _described(action: Action) -> tuple[str, ObjectKey]:
    match action:
        case Apply(document=document):
            metadata = section(document, "metadata")
            namespace, name = str(metadata.get("namespace") or ""), str(metadata.get("name"))
            return "apply", ObjectKey(str(document["kind"]).lower(), namespace, name)
        case Patch(key=key):
            return "patch", key
        case Delete(key=key) | DeleteManagedSeed(key=key):
            return "delete", key
        case Bind(shoot=shoot):
            return "bind", shoot
        case MarkSeed(seed=seed, marked=marked):
            return "mark" if marked else "unmark", ObjectKey("seed", "", seed)
