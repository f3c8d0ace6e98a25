"""Reconciles sets: read, decide, write the intent, execute it.

1. The set is read, then all that belongs to it (`state_collector`); owner references are corrected first, as they
   define the replicas.
2. `domain.actuator` decides.
3. The set's status is written, on the version that was read: of two replicas of this service only one succeeds.
4. The actions follow, each only while the set has the version of that write. A process that ends in between leaves the
   intent behind, and the next reconciliation executes it.
"""

import structlog

from gardenbus.common.api.document import StoredObject, section
from gardenbus.common.api.document_parts import FINALIZER, is_deleting
from gardenbus.common.api.garden.seed_management import REMOVAL_ANNOTATION
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.agent_credentials import AgentCredentials
from gardenbus.common.controller.api_client import RequestPrecondition
from gardenbus.common.controller.controller import Done, ReconcileRequest, ReconcileResult, Requeue, RequeueAfter
from gardenbus.common.controller.event_recorder import EventRecorder
from gardenbus.common.controller.writes import update
from gardenbus.common.errors import Conflict, Forbidden, NotFound, Terminal, Unavailable
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.recovery import RECOVERY_POLL_SECONDS, Recovery
from gardenbus.common.ports.store import Store, WritePrecondition
from gardenbus.managedseedset import metrics
from gardenbus.managedseedset.domain.actions import (
    AnnotateForRemoval,
    Apply,
    Bind,
    Delete,
    DeleteManagedSeed,
    DrainForecastNeeded,
    Patch,
    SetAction,
    SetDecision,
    SetEvent,
)
from gardenbus.managedseedset.domain.actuator import ActuatorSettings, decide
from gardenbus.managedseedset.domain.conditions import ConditionBuilder
from gardenbus.managedseedset.domain.rejections import with_rejected_creation, with_rejected_update
from gardenbus.managedseedset.garden_client import GardenClient
from gardenbus.managedseedset.watch.state_collector import SetState, StateCollector

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

REPORTER = "managedseedset"
KIND = "managedseedset"


class ManagedSeedSetReconciler:
    """Reconciles one set at a time; any number of replicas may run concurrently."""

    def __init__(
        self, store: Store, garden: GardenClient, collector: StateCollector, clock: Clock, settings: ActuatorSettings
    ) -> None:
        self._store = store
        self._events = EventRecorder(store, REPORTER)
        self._credentials = AgentCredentials(store, clock)
        self._garden = garden
        self._collector = collector
        self._clock = clock
        self._settings = settings

    async def reconcile(self, request: ReconcileRequest) -> ReconcileResult:
        """Reconcile a set. Raises Conflict, Unavailable."""
        stored = await self._store.get(ObjectKey(KIND, request.namespace, request.name))
        if stored is None:
            return Done("it is gone")
        if stored.is_deleting and FINALIZER not in stored.parts.finalizers:
            return Done("it is being deleted")
        try:
            return await self._reconcile(stored)
        except Terminal as error:
            await self._record_events(stored, (SetEvent("ReconcileError", error.message, "Warning"),))
            raise Unavailable(error.message) from error  # the cause of a rejection may go away without any event

    async def _reconcile(self, stored: StoredObject) -> ReconcileResult:
        recovery = await self._store.recovery()
        if recovery is not None:
            return await self._wait(stored, recovery)
        collected = await self._collector.collect(stored)
        if await self._reconcile_owners(stored, collected):
            return Requeue("replicas were adopted or released")
        decision = await self._decision(collected)
        written = await self._write(stored, decision)
        if written is None:
            metrics.forget(str(stored.key))
            log.info("set.released", set=str(stored.key))
            return Done("all its replicas are gone")
        await self._record_events(written, decision.events)
        try:
            for action in decision.actions:
                if not await self._execute(action, written):
                    break
        except Conflict as error:
            await self._superseded(decision, written, error)
            raise
        self._count(written, decision)
        return RequeueAfter(decision.after_seconds)

    async def _wait(self, stored: StoredObject, recovery: Recovery) -> ReconcileResult:
        """Do nothing on a store that does not know yet what runs on its seeds; the condition says so."""
        document = stored.document()
        conditions = ConditionBuilder(document, self._clock.now())
        conditions.recovering(recovery.text)
        document["status"] = {**section(document, "status"), "conditions": conditions.conditions}
        await update(self._store, stored, document, [])
        await self._record_events(stored, tuple(conditions.events))
        log.warning("set.waiting", set=str(stored.key), reason=recovery.text)
        return RequeueAfter(RECOVERY_POLL_SECONDS, "the store recovers")

    async def _reconcile_owners(self, stored: StoredObject, collected: SetState) -> bool:
        """Adopt and release; whether anything changed. A rejected change is reported and skipped."""
        changed = False
        precondition = RequestPrecondition(stored.key, stored.version)
        for change in collected.ownership.changes:
            try:
                await self._garden.patch(change.key, change.patch, precondition)
            except NotFound:
                changed = True
            except Terminal as error:
                message = f"The owners of {change.key} cannot be changed: {error.message}"
                await self._record_events(stored, (SetEvent("ReconcileError", message, "Warning"),))
            else:
                changed = True
                await self._executed(change, stored)
        return changed

    async def _decision(self, collected: SetState) -> SetDecision:
        inputs = collected.inputs
        while True:
            decision = decide(inputs, self._settings)
            if not isinstance(decision, DrainForecastNeeded):
                return decision
            drain = await self._collector.forecast_drain(decision, collected)
            inputs = inputs.with_drain(decision.seed, drain)

    async def _write(self, stored: StoredObject, decision: SetDecision) -> StoredObject | None:
        """Write the status and set or remove the finalizer; None when that removes the set."""
        document = stored.document()
        others = [each for each in stored.parts.finalizers if each != FINALIZER]
        if decision.released:
            document["metadata"]["finalizers"] = others
        elif not stored.is_deleting:
            document["metadata"]["finalizers"] = [*others, FINALIZER]
        document["status"] = decision.status
        preconditions = [
            WritePrecondition("version", key.stored, f"{key} was created meanwhile") for key in decision.absent
        ]
        written = await update(self._store, stored, document, preconditions)
        return None if decision.released and not others else written

    async def _execute(self, action: SetAction, written: StoredObject) -> bool:
        """Execute one action; whether to go on with the next. Raises Conflict when the decision is outdated."""
        precondition = RequestPrecondition(written.key, written.version)
        try:
            await self._request(action, precondition)
        except Terminal as error:
            metrics.REJECTIONS.labels(error.reason).inc()
            if isinstance(action, Apply):
                return await self._on_rejected(action, written, error)
            if isinstance(error, Forbidden) and not isinstance(action, Patch):
                raise Conflict(error.message) from error  # in use by now, or full
            raise
        await self._executed(action, written)
        return True

    async def _request(self, action: SetAction, precondition: RequestPrecondition) -> None:
        match action:
            case Apply(document=document):
                await self._garden.apply(document, precondition)
            case Patch(key=key, patch=patch):
                await self._garden.patch(key, patch, precondition)
            case Delete(key=key):
                await self._garden.delete(key, precondition)
            case DeleteManagedSeed():
                await self._delete_managed_seed(action, precondition)
            case Bind(shoot=shoot, seed=seed):
                await self._garden.bind(shoot, seed, precondition)
            case AnnotateForRemoval(seed=seed, annotated=annotated):
                await self._annotate_for_removal(seed, precondition, annotated=annotated)

    async def _delete_managed_seed(self, action: DeleteManagedSeed, precondition: RequestPrecondition) -> None:
        """Delete it in one write that checks all that the removal of a seed depends on."""
        stored = await self._store.get(action.key)
        if stored is None or stored.is_deleting:
            return
        if stored.version != action.version:
            raise Conflict(f"{action.key} changed meanwhile")
        name = action.key.name
        preconditions = [
            _unchanged(precondition),
            WritePrecondition("usage", name, f"{action.key}: shoots are on its seed"),
        ]
        if action.without_seed:
            seed = ObjectKey("seed", "", name)
            preconditions.append(WritePrecondition("version", seed.stored, f"{seed} was created meanwhile"))
        try:
            if not stored.parts.finalizers:
                await self._credentials.end_with(stored)
            await self._store.delete(stored, preconditions=preconditions)
        except NotFound:
            return

    async def _annotate_for_removal(self, seed: str, precondition: RequestPrecondition, *, annotated: bool) -> None:
        """Annotate a seed in one write that fails unless it is empty and keeps it so; or undo it."""
        stored = await self._store.get(ObjectKey("seed", "", seed))
        if stored is None:
            return
        document = stored.document()
        annotations = section(document, "metadata", "annotations")
        kept = {name: value for name, value in annotations.items() if name != REMOVAL_ANNOTATION}
        owner = f"{precondition.key.namespace}/{precondition.key.name}"
        document["metadata"]["annotations"] = kept | ({REMOVAL_ANNOTATION: owner} if annotated else {})
        preconditions = [_unchanged(precondition)]
        if annotated:
            preconditions.append(WritePrecondition("usage", seed, f"seed {seed} is in use"))
        try:
            await self._store.update(stored, document, preconditions=preconditions)
        except NotFound:
            return

    async def _on_rejected(self, action: Apply, written: StoredObject, error: Terminal) -> bool:
        """Record what admission rejected: an update waits for the set to change, a new replica keeps its ordinal."""
        current = written.document()
        if action.updates:
            noted = with_rejected_update(current, action.updates, error.message, self._clock.now())
            await update(self._store, written, noted, [])
            await self._record_events(written, (SetEvent("UpdateFailed", error.message, "Warning"),))
            return False
        if action.creates:
            key = ObjectKey("shoot", written.key.namespace, action.creates)
            noted = with_rejected_creation(current, action.creates, error.message)
            await update(self._store, written, noted, [WritePrecondition("version", key.stored, f"{key} is there")])
        raise error

    async def _superseded(self, decision: SetDecision, written: StoredObject, error: Conflict) -> None:
        """Record that an announced replica was not created, as the set changed before: its ordinal is free again."""
        announced = section(written.document(), "status").get("pendingReplica")
        name = next((each.creates for each in decision.actions if isinstance(each, Apply) and each.creates), "")
        stored = await self._store.get(written.key) if name else None
        if stored is None or section(stored.document(), "status").get("pendingReplica") != announced:
            return
        key = ObjectKey("shoot", written.key.namespace, name)
        noted = with_rejected_creation(stored.document(), name, error.message)
        await update(self._store, stored, noted, [WritePrecondition("version", key.stored, f"{key} is there")])

    async def _executed(self, action: SetAction, stored: StoredObject) -> None:
        name, about = _description(action)
        metrics.ACTIONS.labels(name, about.kind).inc()
        log.info("action.finished", action=name, set=str(stored.key), object=str(about))
        if action.event is not None:
            await self._record_events(stored, (action.event,))

    async def _record_events(self, stored: StoredObject, events: tuple[SetEvent, ...]) -> None:
        verb = "Delete" if stored.is_deleting else "Reconcile"
        for event in events:
            await self._events.record(
                stored.key, stored.uid, type=event.type, reason=event.reason, message=event.message, action=verb
            )

    def _count(self, stored: StoredObject, decision: SetDecision) -> None:
        name, document = str(stored.key), stored.document()
        metrics.REPLICAS.labels(name).set(decision.status.get("replicas", 0))
        metrics.READY_REPLICAS.labels(name).set(decision.status.get("readyReplicas", 0))
        wanted = 0 if is_deleting(document) else section(document, "spec").get("replicas", 1)
        metrics.DESIRED_REPLICAS.labels(name).set(wanted)


def _unchanged(precondition: RequestPrecondition) -> WritePrecondition:
    key = precondition.key
    return WritePrecondition("version", key.stored, f"{key} changed meanwhile", precondition.version)


def _description(action: SetAction) -> tuple[str, ObjectKey]:
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
        case AnnotateForRemoval(seed=seed, annotated=annotated):
            return "mark" if annotated else "unmark", ObjectKey("seed", "", seed)
