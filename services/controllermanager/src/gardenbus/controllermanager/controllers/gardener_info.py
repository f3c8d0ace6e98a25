"""The ConfigMaps `gardener-system-public/gardener-info` and `kube-system/cluster-identity` of the landscape."""

import secrets

import structlog

from gardenbus.common.api.configuration.controller_manager import ControllerManagerConfiguration
from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import CLUSTER_IDENTITY, GARDENER_INFO, ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileRequest, ReconcileResult, RequeueAfter
from gardenbus.common.controller.wait import forever
from gardenbus.common.controller.writes import update
from gardenbus.common.errors import AlreadyExists
from gardenbus.common.ports.recovery import RECOVERY_POLL_SECONDS
from gardenbus.controllermanager.domain.gardener_info import identity_in, is_info, wanted_config_map
from gardenbus.controllermanager.watch.loop import BuiltLoop, Loop, LoopContext

NAME = "gardenerinfo"
KIND = "configmap"
CHECK_SECONDS = 300
"""Period of a check of the cache: what enqueued a ConfigMap that is missing may be lost with the queue."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class GardenerInfoReconciler:
    """Reconciles one of the two at a time; any number of replicas may run concurrently, of which one creates it."""

    def __init__(self, context: LoopContext) -> None:
        self._store = context.store
        self._identity = context.cluster_identity

    async def reconcile(self, request: ReconcileRequest) -> ReconcileResult:
        """Create or complete a ConfigMap; an identity stays as it is. Raises Conflict and Unavailable.

        A store that recovers may get back the identity that it had, so nothing new is made until then.
        """
        if (recovery := await self._store.recovery()) is not None:
            return RequeueAfter(RECOVERY_POLL_SECONDS, recovery.text)
        key = ObjectKey(KIND, request.namespace, request.name)
        stored = await self._store.get(key)
        if stored is None:
            await self._create(key)
        elif not stored.is_deleting:
            present = stored.document()
            if (wanted := wanted_config_map(key, present, self._identity)) != present:
                await update(self._store, stored, wanted)
        return Done()

    async def _create(self, key: ObjectKey) -> None:
        identity = self._identity or f"landscape-{secrets.token_hex(8)}"
        try:
            await self._store.create(wanted_config_map(key, None, identity))
        except AlreadyExists:  # another replica was faster, and its identity is the landscape's
            return
        log.info("configmap.created", name=key.name, namespace=key.namespace)


def _build(context: LoopContext) -> BuiltLoop:
    def check(key: ObjectKey, stored: StoredObject | None) -> None:
        document = None if stored is None else stored.document()
        if document is None or wanted_config_map(key, document, context.cluster_identity) != document:
            context.enqueue(key)

    def changed(key: ObjectKey, _: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue one that is gone or is not as it should be."""
        if not is_info(key):
            return
        check(key, new)
        if key == CLUSTER_IDENTITY and new is not None and context.cluster_identity:
            identity = identity_in(new.document())
            if identity != context.cluster_identity:
                reason = f"the landscape is {identity!r} by {key}; delete that to have another identity"
                log.warning("configuration.ignored", fields=["GARDENBUS_CLUSTER_IDENTITY"], reason=reason)

    def check_both() -> None:
        cached = context.objects.objects(KIND)
        for key in (CLUSTER_IDENTITY, GARDENER_INFO):
            check(key, cached.get(key))

    async def run() -> None:
        await forever(check_both, period_seconds=CHECK_SECONDS, sleep=context.clock.sleep)

    return BuiltLoop(GardenerInfoReconciler(context).reconcile, changed, run)


def _workers(_: ControllerManagerConfiguration) -> int:
    return 1


LOOP = Loop(NAME, (KIND,), _build, _workers)
