"""Definition of loops: a queue, the kinds whose changes it follows, and how its reconciler is built.

Each loop is a constant `LOOP` of its module; `app.LOOPS` lists them. All share one informer, which caches the kinds
that any of them follows. Their queues have rows in `common.api.queues`.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

from gardenbus.common.api.configuration.controller_manager import ControllerManagerConfiguration
from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.queues import QUEUES
from gardenbus.common.controller.api_client import ApiserverClient
from gardenbus.common.controller.controller import (
    Done,
    Reconcile,
    ReconcileRequest,
    ReconcileResult,
    RequeueAfter,
)
from gardenbus.common.controller.enqueue_on_change import ObjectLister
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.recovery import RECOVERY_POLL_SECONDS
from gardenbus.common.ports.store import Store
from gardenbus.controllermanager.watch.cached_bindings import CachedBindings
from gardenbus.controllermanager.watch.project_namespaces import ProjectNamespaces

REPORTER = "controllermanager"
"""Signs Events."""

USER = "controllermanager"
"""Sends requests to the apiserver."""


class LoopContext(NamedTuple):
    """Collaborators that a loop is built with."""

    store: Store
    clock: Clock
    objects: ObjectLister
    """The informer's cache of the kinds that loops follow; it may be older than the store."""

    projects: ProjectNamespaces
    bindings: CachedBindings
    api: ApiserverClient
    """Writes as a user does, through admission."""

    configuration: ControllerManagerConfiguration
    enqueue: Callable[[ObjectKey], None]
    """Puts an object on the loop's own queue."""

    cluster_identity: str = ""
    """Identity that the landscape is to have; "" for one that is made."""

    root_ca: str = ""
    """File of the authorities of the Kubernetes API's certificate; "" without any."""


ChangeCallback = Callable[[ObjectKey, StoredObject | None, StoredObject | None], None]
"""Called with what is new of an object: its key, what was cached, and what it is now."""


class BuiltLoop(NamedTuple):
    """A loop's reconciler, and its callback on changes of what it follows, also on each object of the first list."""

    reconcile: Reconcile
    changed: ChangeCallback
    run: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Runs beside it, until cancelled: enqueues objects by the clock."""


def existing(
    context: LoopContext, kind: str, reconcile: Callable[[StoredObject], Awaitable[ReconcileResult]]
) -> Reconcile:
    """Reconciler of requests that reads the object first; nothing is left to do for one that is gone."""

    async def reconcile_request(request: ReconcileRequest) -> ReconcileResult:
        stored = await context.store.get(ObjectKey(kind, request.namespace, request.name))
        return Done("it is gone") if stored is None else await reconcile(stored)

    return reconcile_request


def while_whole(
    context: LoopContext, reconcile: Callable[[StoredObject], Awaitable[ReconcileResult]]
) -> Callable[[StoredObject], Awaitable[ReconcileResult]]:
    """A reconciler that deletes what is over, and waits while a store recovers that may have lost what it goes by."""

    async def reconcile_whole(stored: StoredObject) -> ReconcileResult:
        recovery = await context.store.recovery()
        return await reconcile(stored) if recovery is None else RequeueAfter(RECOVERY_POLL_SECONDS, recovery.text)

    return reconcile_whole


class Loop(NamedTuple):
    """A loop over the objects of one kind."""

    name: str
    """Of the queue, which has a row in the table, and the metrics' label."""

    follows: tuple[str, ...]
    build: Callable[[LoopContext], BuiltLoop]
    workers: Callable[[ControllerManagerConfiguration], int]
    """Objects that are reconciled at once."""

    @property
    def kind(self) -> str:
        """Kind of the objects that it reconciles."""
        return QUEUES[self.name].kind
