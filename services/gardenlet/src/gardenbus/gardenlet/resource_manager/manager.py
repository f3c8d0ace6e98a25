"""The resource manager of one seed: caches, work queues, and the loops over what is in them."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from gardenbus.agent.kubernetes.connection import Connector, KubeconfigSource
from gardenbus.agent.work_loop import WorkLoop
from gardenbus.common.api.document import Document, section
from gardenbus.common.controller.delaying_queue import DelayingQueue
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.domain.managed_resources.names import (
    OPERATION,
    SEED_CLASS,
    SHOOT_CLASS,
    annotations_of,
    finalizers_of,
    is_ignored,
    owner_by_origin,
)
from gardenbus.gardenlet.domain.managed_resources.tokens import is_token_secret
from gardenbus.gardenlet.resource_manager.clusters import REQUEST_SECONDS, ResourceClusters
from gardenbus.gardenlet.resource_manager.compression import decompress
from gardenbus.gardenlet.resource_manager.garbage_collector import GARBAGE_SECONDS, ResourceGarbageCollector
from gardenbus.gardenlet.resource_manager.reconciler import SYNC_SECONDS, ManagedResourceReconciler
from gardenbus.gardenlet.resource_manager.source import FullName, SourceCluster, secret_names
from gardenbus.gardenlet.resource_manager.target import ResourceCluster
from gardenbus.gardenlet.resource_manager.token_requestor import TokenRequestor

RESTART_SECONDS = 5.0
RETRY_SECONDS = 30.0
"""Delay after a reconcile that the seed's API has interrupted: all of them may be."""

_WORKERS = 5
_SERVED = (SEED_CLASS, SHOOT_CLASS)


class ManagerContext(NamedTuple):
    """Surroundings of a resource manager. `kubeconfig` is that of the seed's Kubernetes API."""

    seed: str
    kubeconfig: Path
    backend: SeedBackend
    clock: Clock
    sync_seconds: float = SYNC_SECONDS
    garbage_seconds: float = GARBAGE_SECONDS


async def run_resource_manager(context: ManagerContext) -> None:
    """Run a seed's resource manager until cancelled; whatever fails is tried again.

    It runs in the gardenlet that holds the seed's Lease, so that there is one at a time.
    """

    async def run_once() -> None:
        manager = ResourceManager(context)
        manager.open()
        try:
            await manager.run()
        finally:
            await manager.close()

    await WorkLoop("resource_manager", run_once, lambda: RESTART_SECONDS, seed=context.seed).run()


class ResourceManager:
    """See the module. Implements `source.SourceEvents`."""

    def __init__(self, context: ManagerContext) -> None:
        clock, seed = context.clock, context.seed
        connector = Connector(KubeconfigSource(context.kubeconfig), clock, timeout_seconds=REQUEST_SECONDS)
        self._seed_cluster = ResourceCluster(seed, connector, clock, self._object_changed)
        self._source = SourceCluster(seed, connector, clock, self)
        self._clusters = ResourceClusters(self._seed_cluster, context.backend, clock, self._object_changed)
        self._reconciler = ManagedResourceReconciler(
            self._source,
            self._clusters,
            clock,
            served=_SERVED,
            decompress=decompress,
            sync_seconds=context.sync_seconds,
        )
        self._queue = self._work_queue("managed_resource", self._reconciler.reconcile, clock)
        tokens = TokenRequestor(self._source, self._clusters, clock)
        self._tokens = self._work_queue("token_requestor", tokens.reconcile, clock)
        collector, period = ResourceGarbageCollector(self._clusters, clock), context.garbage_seconds
        self._garbage = WorkLoop("garbage", collector.collect, lambda: period, seed=seed)
        self._housekeeping = WorkLoop("targets", self._disconnect_unused, lambda: None, starts_idle=True, seed=seed)

    def _work_queue(
        self, controller: str, reconcile: Callable[[FullName], Awaitable[float | None]], clock: Clock
    ) -> DelayingQueue[FullName]:
        return DelayingQueue(
            reconcile,
            clock=clock,
            limit=_WORKERS,
            controller=controller,
            describe="/".join,
            retry_seconds=RETRY_SECONDS,
        )

    def open(self) -> None:
        """Make the session of the seed."""
        self._seed_cluster.open()

    async def run(self) -> None:
        """Run all loops until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for work in (self._source, self._queue, self._tokens, self._garbage, self._housekeeping):
                tasks.create_task(work.run(), name=f"resource manager of {self._seed_cluster.name}")

    async def close(self) -> None:
        """End all watches and connections."""
        await self._clusters.close()
        await self._seed_cluster.close()

    # ------------------------------------------------------------------------------------------ events

    def managed_resource_changed(self, name: FullName, before: Document | None, now: Document | None) -> None:
        """Enqueue a ManagedResource; its objects are applied anew if its spec, or a request, has changed."""
        if now is None:
            self._housekeeping.trigger()
        elif before is None or _inputs(before) != _inputs(now) or annotations_of(now).get(OPERATION):
            self._reconciler.request_pass(name)
        elif finalizers_of(before) == finalizers_of(now):
            return
        self._queue.add(name)

    def secret_changed(self, name: FullName, before: Document | None, now: Document | None) -> None:
        """Enqueue the ManagedResources of a Secret, and the Secret itself if it requests a token."""
        if now is not None and is_token_secret(now):
            self._tokens.add(name)
        if before is None:
            return
        for each, managed_resource in self._source.managed_resources.items():
            if each[0] == name[0] and name[1] in secret_names(managed_resource):
                self._reconciler.request_pass(each)
                self._queue.add(each)

    def _object_changed(self, live: Document) -> None:
        """Have the ManagedResource of an object checked."""
        owner = owner_by_origin(live, self._source.identity)
        if owner is not None and owner in self._source.managed_resources:
            self._queue.add(owner)

    async def _disconnect_unused(self) -> None:
        """Disconnect from shoots in whose namespaces nothing is left to do."""
        used = {name[0] for name in self._source.managed_resources}
        used |= {name[0] for name, each in self._source.secrets.items() if is_token_secret(each)}
        self._clusters.retain(used)


def _inputs(managed_resource: Document) -> object:
    """Parts of a ManagedResource on which its objects depend."""
    metadata = section(managed_resource, "metadata")
    return (metadata.get("generation"), metadata.get("deletionTimestamp"), is_ignored(managed_resource))
