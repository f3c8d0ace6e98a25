"""Garbage collector of ConfigMaps and Secrets with names by their content, in the seed and in connected shoots.

Source: Gardener's `pkg/resourcemanager/controller/garbagecollector/reconciler.go`.
"""

from collections.abc import AsyncIterator

import structlog

from gardenbus.common.api.document import Document
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.domain.managed_resources.garbage import (
    COLLECTED_KINDS,
    REFERRING_KINDS,
    SELECTOR,
    Collectable,
    collectable_of,
    garbage,
)
from gardenbus.gardenlet.domain.managed_resources.references import ResourceReference
from gardenbus.gardenlet.resource_manager.clusters import ResourceClusters
from gardenbus.gardenlet.resource_manager.target import ResourceCluster

_log = structlog.stdlib.get_logger()

GARBAGE_SECONDS = 3600.0
"""Interval of collections."""

_KINDS = {kind.lower(): (api_version, kind) for api_version, kind in COLLECTED_KINDS}


class ResourceGarbageCollector:
    """See the module."""

    def __init__(self, clusters: ResourceClusters, clock: Clock) -> None:
        self._clusters = clusters
        self._clock = clock

    async def collect(self) -> None:
        """Collect once in each cluster; one that is away leaves the others alone."""
        for target in self._clusters.all():
            try:
                await self._collect(target)
            except GardenbusError as error:
                _log.warning("garbage.not_collected", cluster=target.name, reason=error.message)

    async def _collect(self, target: ResourceCluster) -> None:
        now = self._clock.now()
        found: set[Collectable] = set()
        for api_version, kind in COLLECTED_KINDS:
            async for each in _listed(target, api_version, kind, labelSelector=SELECTOR):
                collectable = collectable_of(kind, each, now)
                found |= {collectable} if collectable is not None else set()
        if not found:
            return
        referring = [each for kind in REFERRING_KINDS async for each in _listed(target, *kind)]
        for collectable in garbage(found, referring):
            api_version, kind = _KINDS[collectable.kind]
            reference = ResourceReference(api_version, kind, collectable.namespace, collectable.name)
            served = await target.served(reference)
            if served is not None and await (await target.client()).delete(served.path):
                _log.info("garbage.collected", cluster=target.name, object=reference.text)


async def _listed(target: ResourceCluster, api_version: str, kind: str, **query: str) -> AsyncIterator[Document]:
    """Metadata of all objects of a kind; none where the cluster does not serve it. Raises GardenbusError."""
    served = await target.served(ResourceReference(api_version, kind, "", ""))
    if served is None:
        return
    client = (await target.client()).metadata_only()
    for each in await client.items(served.resource.collection(), **query):
        yield each
