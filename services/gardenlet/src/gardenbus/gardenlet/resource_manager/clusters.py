"""The clusters of a seed in which objects are made: the seed itself, and its shoots that have an API server."""

import asyncio
from collections.abc import Callable, Collection
from datetime import timedelta

import structlog

from gardenbus.agent.kubernetes.connection import Connector, KubeconfigSource
from gardenbus.common.api.document import Document
from gardenbus.common.errors import Conflict, NotFound, Transient
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.domain.managed_resources.names import SEED_CLASS
from gardenbus.gardenlet.domain.shoot_status import technical_id
from gardenbus.gardenlet.resource_manager.target import ResourceCluster

_log = structlog.stdlib.get_logger()

USER = "gardener.cloud:resource-manager"
_KUBECONFIG_LIFE = timedelta(hours=12)
REQUEST_SECONDS = 20.0


class NoTarget(Transient):
    """There is no API server for the objects of a ManagedResource: no shoot has its namespace, or it is hibernated."""

    reason = "NoTarget"


class ResourceClusters:
    """See the module. `changed` is called with each object of a shoot that somebody else has changed."""

    def __init__(
        self, seed: ResourceCluster, backend: SeedBackend, clock: Clock, changed: Callable[[Document], None]
    ) -> None:
        self._seed = seed
        self._backend = backend
        self._clock = clock
        self._changed = changed
        self._shoots: dict[str, ResourceCluster] = {}
        self._lock = asyncio.Lock()

    async def of(self, resource_class: str, namespace: str) -> ResourceCluster:
        """The cluster for a ManagedResource of a namespace of the seed. Raises NoTarget, GardenbusError."""
        if resource_class == SEED_CLASS:
            return self._seed
        async with self._lock:
            target = self._shoots.get(namespace)
            if target is None:
                target = self._shoot(namespace)
            try:
                await target.connection()
            except (NoTarget, Conflict, NotFound) as error:
                await self._drop(namespace)
                raise NoTarget(error.message) from error
            return target

    def all(self) -> list[ResourceCluster]:
        """The seed, and the shoots that are connected."""
        return [self._seed, *self._shoots.values()]

    async def retain(self, namespaces: Collection[str]) -> None:
        """Disconnect from the shoots of other namespaces."""
        for namespace in set(self._shoots) - set(namespaces):
            await self._drop(namespace)

    async def close(self) -> None:
        """Disconnect from all shoots."""
        await self.retain(())

    def _shoot(self, namespace: str) -> ResourceCluster:
        connector = Connector(
            KubeconfigSource(None, lambda: self._kubeconfig(namespace)), self._clock, timeout_seconds=REQUEST_SECONDS
        )
        target = ResourceCluster(namespace, connector, self._clock, self._changed)
        target.open()
        self._shoots[namespace] = target
        return target

    async def _drop(self, namespace: str) -> None:
        target = self._shoots.pop(namespace, None)
        if target is not None:
            await target.close()

    async def _kubeconfig(self, namespace: str) -> str:
        """Kubeconfig of the shoot whose namespace this is. Raises NoTarget, Conflict."""
        if not self._backend.maker.has_kubeconfigs:
            raise NoTarget("the control planes of this seed have no API servers")
        for shoot in self._backend.shoots():
            if technical_id(*shoot) == namespace and (record := self._backend.load(shoot)) is not None:
                try:
                    made = await self._backend.admin_kubeconfig(record, user=USER, life=_KUBECONFIG_LIFE)
                except OSError as error:
                    raise NoTarget(f"the kubeconfig of {namespace} cannot be made: {error}") from error
                return str(made["kubeconfig"])
        raise NoTarget(f"no shoot of this seed has namespace {namespace}")
