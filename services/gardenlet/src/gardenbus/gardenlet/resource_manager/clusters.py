"""The clusters of a seed in which objects are made: the seed itself, and its shoots that have an API server."""

import asyncio
from collections.abc import Callable, Collection
from datetime import timedelta

import structlog

from gardenbus.agent.kubernetes.connection import Connector, KubeconfigSource
from gardenbus.common.api.document import Document
from gardenbus.common.errors import Conflict, NotFound, Transient
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.seed_backend import SeedBackend, kept
from gardenbus.gardenlet.domain.flows import CONTROL_PLANE
from gardenbus.gardenlet.domain.managed_resources.names import SEED_CLASS
from gardenbus.gardenlet.domain.shoot_record import HIBERNATED, ShootName, ShootRecord
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
        self._names: dict[str, ShootName] = {}
        """Shoots of the seed by their namespaces in it."""
        self._closing: set[asyncio.Task[None]] = set()
        self._lock = asyncio.Lock()

    async def of(self, resource_class: str, namespace: str) -> ResourceCluster:
        """The cluster for a ManagedResource of a namespace of the seed. Raises NoTarget, GardenbusError."""
        if resource_class == SEED_CLASS:
            return self._seed
        async with self._lock:
            try:
                self._record(namespace)
                target = self._shoots.get(namespace) or self._shoot(namespace)
                await target.connection()
            except (NoTarget, Conflict, NotFound) as error:
                self._drop(namespace)
                raise NoTarget(error.message) from error
            return target

    async def is_lost(self, resource_class: str, namespace: str) -> bool:
        """True if a cluster that gave no response is not there any more, or is hibernated."""
        if resource_class == SEED_CLASS:
            return False
        try:
            await self.of(resource_class, namespace)
        except NoTarget:
            return True
        return False

    def all(self) -> list[ResourceCluster]:
        """The seed, and the shoots that are connected."""
        return [self._seed, *self._shoots.values()]

    def retain(self, namespaces: Collection[str]) -> None:
        """Disconnect from the shoots of other namespaces."""
        for namespace in set(self._shoots) - set(namespaces):
            self._drop(namespace)

    async def close(self) -> None:
        """Disconnect from all shoots."""
        for each in self._closing:
            each.cancel()
        await asyncio.gather(*self._closing, *(each.close() for each in self._shoots.values()), return_exceptions=True)
        self._shoots.clear()

    def _shoot(self, namespace: str) -> ResourceCluster:
        connector = Connector(
            KubeconfigSource(None, lambda: self._kubeconfig(namespace)), self._clock, timeout_seconds=REQUEST_SECONDS
        )
        target = ResourceCluster(namespace, connector, self._clock, self._changed)
        target.open()
        self._shoots[namespace] = target
        return target

    def _drop(self, namespace: str) -> None:
        """Disconnect from a shoot, once requests that are under way have ended."""
        target = self._shoots.pop(namespace, None)
        if target is None:
            return
        target.stop_watches()
        closing = asyncio.create_task(self._close(target), name=f"end of {namespace}")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _close(self, target: ResourceCluster) -> None:
        try:
            await self._clock.sleep(REQUEST_SECONDS)
        finally:
            await target.close()

    async def _kubeconfig(self, namespace: str) -> str:
        """Kubeconfig of the shoot whose namespace this is. Raises NoTarget, Conflict."""
        try:
            made = await self._backend.admin_kubeconfig(self._record(namespace), user=USER, life=_KUBECONFIG_LIFE)
        except OSError as error:
            raise NoTarget(f"the kubeconfig of {namespace} cannot be made: {error}") from error
        return str(made["kubeconfig"])

    def _record(self, namespace: str) -> ShootRecord:
        """Record of the shoot whose namespace this is. Raises NoTarget for none that could have an API server."""
        if not self._backend.maker.has_kubeconfigs:
            raise NoTarget("the control planes of this seed have no API servers")
        if namespace not in self._names:
            self._names = {technical_id(*shoot): shoot for shoot in self._backend.shoots()}
        shoot = self._names.get(namespace)
        record = self._backend.load(shoot) if shoot is not None else None
        if record is None:
            self._names.pop(namespace, None)
            raise NoTarget(f"no shoot of this seed has namespace {namespace}")
        if kept(record).get(CONTROL_PLANE, {}).get(HIBERNATED):
            raise NoTarget(f"{namespace} is hibernated")
        return record
