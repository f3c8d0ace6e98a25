"""ConfigMaps of the landscape about itself: `cluster-identity`, `gardener-info` and `kube-root-ca.crt`."""

import asyncio
import secrets
from pathlib import Path

import structlog

from gardenbus.common.api.configuration.controller_manager import ControllerManagerConfiguration
from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import CLUSTER_IDENTITY, ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileRequest, ReconcileResult, RequeueAfter
from gardenbus.common.controller.wait import forever
from gardenbus.common.controller.writes import update
from gardenbus.common.errors import AlreadyExists
from gardenbus.common.ports.recovery import RECOVERY_POLL_SECONDS
from gardenbus.controllermanager.domain.gardener_info import (
    INFO_CONFIG_MAPS,
    LandscapeFacts,
    identity_in,
    is_info,
    wanted_config_map,
)
from gardenbus.controllermanager.watch.loop import BuiltLoop, Loop, LoopContext

NAME = "gardenerinfo"
KIND = "configmap"
CHECK_SECONDS = 300
"""Period of a check of the cache: what enqueued a ConfigMap that is missing may be lost with the queue."""

PRIVATE_KEY = "PRIVATE KEY-----"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class GardenerInfoReconciler:
    """Reconciles one of them at a time; any number of replicas may run concurrently, of which one creates it."""

    def __init__(self, context: LoopContext) -> None:
        self._store = context.store
        self._context = context

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
            wanted = wanted_config_map(key, present, await asyncio.to_thread(_facts, self._context))
            if wanted is not None and wanted != present:
                await update(self._store, stored, wanted)
        return Done()

    async def _create(self, key: ObjectKey) -> None:
        facts = await asyncio.to_thread(_facts, self._context)
        made = facts.identity or f"landscape-{secrets.token_hex(8)}"
        wanted = wanted_config_map(key, None, facts._replace(identity=made))
        if wanted is None:
            return
        try:
            await self._store.create(wanted)
        except AlreadyExists:  # another replica was faster, and its identity is the landscape's
            return
        log.info("configmap.created", name=key.name, namespace=key.namespace)


def _facts(context: LoopContext) -> LandscapeFacts:
    """The facts as they are now: authorities that follow one another are in the file together."""
    return LandscapeFacts(context.cluster_identity, _certificates(context.root_ca) if context.root_ca else "")


def _certificates(file: str) -> str:
    """The certificates in a file; "" where it cannot be read, or has what is nobody's to know."""
    try:
        text = Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        text, problem = "", str(error)
    else:
        problem = "" if text else "it is empty"
        if PRIVATE_KEY in text:
            problem = "it has a private key: name a file of certificates alone"
    if problem:
        log.warning("configuration.ignored", fields=["GARDENBUS_ROOT_CA"], reason=f"{file}: {problem}")
        return ""
    return text


def _build(context: LoopContext) -> BuiltLoop:
    def check(key: ObjectKey, stored: StoredObject | None) -> None:
        document = None if stored is None else stored.document()
        wanted = wanted_config_map(key, document, _facts(context))
        if wanted is not None and wanted != document:
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

    def check_all() -> None:
        cached = context.objects.objects(KIND)
        for key in INFO_CONFIG_MAPS:
            check(key, cached.get(key))

    async def run() -> None:
        await forever(check_all, period_seconds=CHECK_SECONDS, sleep=context.clock.sleep)

    return BuiltLoop(GardenerInfoReconciler(context).reconcile, changed, run)


def _workers(_: ControllerManagerConfiguration) -> int:
    return 1


LOOP = Loop(NAME, (KIND,), _build, _workers)
