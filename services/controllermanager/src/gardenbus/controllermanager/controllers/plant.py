"""Plants: clusters that somebody else made, registered by a Secret with a kubeconfig, and checked every 30 seconds."""

from operator import attrgetter

import structlog

from gardenbus.common.api.document import StoredObject, section
from gardenbus.common.api.document_parts import PLANT_FINALIZER, with_finalizer, without_finalizer
from gardenbus.common.api.garden.plants import secret_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileResult, RequeueAfter
from gardenbus.common.controller.writes import update
from gardenbus.common.ports.clock import timestamp
from gardenbus.controllermanager.domain.plants import (
    NOT_FOUND,
    PlantFindings,
    not_reachable,
    with_findings,
)
from gardenbus.controllermanager.plant_clusters import PlantClusters
from gardenbus.controllermanager.watch.loop import BuiltLoop, Loop, LoopContext, existing

NAME = KIND = "plant"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class PlantReconciler:
    """Reconciles one Plant at a time; any number of replicas may run concurrently."""

    def __init__(self, context: LoopContext, clusters: PlantClusters) -> None:
        self._store = context.store
        self._clock = context.clock
        self._objects = context.objects
        self._clusters = clusters
        self._period = context.configuration.plant.sync_period.total_seconds()

    async def reconcile(self, stored: StoredObject) -> ReconcileResult:
        """Check a Plant, or release it. Raises Conflict, Unavailable."""
        if stored.is_deleting:
            return await self._release(stored)
        plant = stored.document()
        if (protected := with_finalizer(plant, PLANT_FINALIZER)) != plant:
            stored = await update(self._store, stored, protected)
            plant = stored.document()
        findings = await self._findings(secret_of(plant))
        checked = with_findings(plant, findings, timestamp(self._clock.now()))
        if checked != plant:
            await update(self._store, stored, checked)
            log.info("plant.checked", plant=str(stored.key), reason=findings.api_server.reason)
        return RequeueAfter(self._period)

    async def _findings(self, key: ObjectKey) -> PlantFindings:
        secret = await self._store.get(key)
        if secret is None:
            return not_reachable(NOT_FOUND)
        if PLANT_FINALIZER not in secret.parts.finalizers and not secret.is_deleting:
            secret = await update(self._store, secret, with_finalizer(secret.document(), PLANT_FINALIZER))
        return await self._clusters.check(secret)

    async def _release(self, stored: StoredObject) -> ReconcileResult:
        """Take the finalizers off a deleted Plant and its Secret; one that another Plant names keeps its own."""
        key = secret_of(stored.document())
        if not self._is_named_by_another(stored.key, key):
            secret = await self._store.get(key)
            if secret is not None and PLANT_FINALIZER in secret.parts.finalizers:
                await update(self._store, secret, without_finalizer(secret.document(), PLANT_FINALIZER))
        if PLANT_FINALIZER in stored.parts.finalizers:
            await update(self._store, stored, without_finalizer(stored.document(), PLANT_FINALIZER))
        return Done("it is released")

    def _is_named_by_another(self, plant: ObjectKey, secret: ObjectKey) -> bool:
        return any(
            key != plant
            and key.namespace == plant.namespace
            and not each.is_deleting  # two that go at once would each leave the Secret to the other
            and secret_of(each.document()) == secret
            for key, each in self._objects.objects(KIND).items()
        )


def _build(context: LoopContext) -> BuiltLoop:
    naming: dict[ObjectKey, set[ObjectKey]] = {}
    clusters = PlantClusters()

    def changed(key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue Plants that are new, changed or deleted, and those whose Secret has another content."""
        if key.kind != KIND:
            if key in naming and _content(old) != _content(new):
                for plant in naming[key]:
                    context.enqueue(plant)
            return
        if new is not None:
            naming.setdefault(secret_of(new.document()), set()).add(key)
            if old is None or (old.generation, old.deleting_at) != (new.generation, new.deleting_at):
                context.enqueue(key)
        elif old is not None:
            plants = naming.get(secret := secret_of(old.document()), set())
            plants.discard(key)
            if not plants:
                naming.pop(secret, None)
                clusters.forget(secret)

    reconcile = PlantReconciler(context, clusters).reconcile
    return BuiltLoop(existing(context, KIND, reconcile), changed, clusters.run)


def _content(secret: StoredObject | None) -> object:
    return None if secret is None else section(secret.document(), "data")


LOOP = Loop(NAME, (KIND, "secret"), _build, attrgetter("plant.concurrent_syncs"))
