"""A cluster in which objects of ManagedResources are made, with a cache of those that are managed.

The cache holds objects with the label of managed ones, by a watch of each kind of which there are some. An object that
is not in it is requested: it has not come yet, has lost its label, or is ignored.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Collection
from typing import NamedTuple

import structlog

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.agent.kubernetes.connection import ClusterConnection, Connector
from gardenbus.agent.kubernetes.discovery import Resource
from gardenbus.agent.kubernetes.errors import Unauthorized
from gardenbus.agent.kubernetes.watch import Listed, follow
from gardenbus.common.api.document import Document, section
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.errors import GardenbusError, NotFound
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.domain.managed_resources.names import MANAGED_BY, MANAGED_BY_VALUE
from gardenbus.gardenlet.domain.managed_resources.references import ResourceReference

_log = structlog.stdlib.get_logger()

FIELD_MANAGER = "gardener-resource-manager"
_BACKOFF = Backoff(base_seconds=1.0, cap_seconds=30.0)
_SELECTOR = {"labelSelector": f"{MANAGED_BY}={MANAGED_BY_VALUE}"}


class ServedObject(NamedTuple):
    """An object by its reference, as the cluster serves its kind."""

    resource: Resource
    namespace: str
    name: str

    @property
    def path(self) -> str:
        """Path of the object."""
        return self.resource.path(self.namespace, self.name)


class ResourceCluster:
    """See the module. `changed` is called with each object that somebody else has changed, made or removed."""

    def __init__(self, name: str, connector: Connector, clock: Clock, changed: Callable[[Document], None]) -> None:
        self.name = name
        self._connector = connector
        self._clock = clock
        self._changed = changed
        self._cached: dict[Resource, dict[tuple[str, str], Document]] = {}
        self._newest: dict[Resource, Document] = {}
        """The object of the newest event of a kind: an object that is older and not cached is gone."""
        self._watches: dict[Resource, asyncio.Task[None]] = {}

    def open(self) -> None:
        """Make the session; a loop must run."""
        self._connector.open()

    def stop_watches(self) -> None:
        """End the watches; the session stays for requests that are under way."""
        for each in self._watches.values():
            each.cancel()
        self._cached.clear()

    async def close(self) -> None:
        """End the watches and close the session."""
        self.stop_watches()
        await asyncio.gather(*self._watches.values(), return_exceptions=True)
        self._watches.clear()
        await self._connector.close()

    async def connection(self) -> ClusterConnection:
        """The connection; another one when its kubeconfig has expired. Raises GardenbusError."""
        return await self._connector.connection()

    async def client(self) -> KubernetesClient:
        """Client of the connection. Raises GardenbusError."""
        return (await self._connector.connection()).client

    async def served(self, reference: ResourceReference) -> ServedObject | None:
        """An object of the cluster, there or not; None where it does not serve the kind. Raises GardenbusError."""
        discovery = (await self.connection()).discovery
        resource = await discovery.find(reference.group, reference.version, reference.kind)
        if resource is None:
            return None
        return ServedObject(resource, reference.namespace if resource.namespaced else "", reference.name)

    async def live(self, served: ServedObject) -> Document | None:
        """An object as it was last observed, or as it is. None without one. Raises GardenbusError."""
        cached = self._cached.get(served.resource, {}).get((served.namespace, served.name))
        return cached if cached is not None else await self.read(served)

    async def read(self, served: ServedObject) -> Document | None:
        """An object as it is now; None without one. Raises GardenbusError."""
        found = await (await self.client()).get(served.path)
        return None if found is None else _complete(served.resource, found)

    async def create(self, served: ServedObject, manifest: Document) -> Document:
        """Create an object. Raises AlreadyExists, GardenbusError."""
        collection = served.resource.collection(served.namespace)
        made = await (await self.client()).create(collection, manifest, manager=FIELD_MANAGER)
        return self._remember(served.resource, made)

    async def replace(self, served: ServedObject, manifest: Document) -> Document:
        """Replace an object. Raises Conflict, NotFound, GardenbusError."""
        made = await (await self.client()).replace(served.path, manifest, manager=FIELD_MANAGER)
        return self._remember(served.resource, made)

    async def patch(self, served: ServedObject, patch: Document) -> Document:
        """Patch an object. Raises NotFound, GardenbusError."""
        made = await (await self.client()).merge_patch(served.path, patch, manager=FIELD_MANAGER)
        return self._remember(served.resource, made)

    # ------------------------------------------------------------------------------------------ watches

    def watch(self, resources: Collection[Resource]) -> None:
        """Watch these kinds as well."""
        for resource in set(resources) - set(self._watches):
            name = f"watch of {resource.plural} in {self.name}"
            self._watches[resource] = asyncio.create_task(self._watch(resource), name=name)

    async def _watch(self, resource: Resource) -> None:
        failures = 0
        while True:
            try:
                client = await self.client()
                async with contextlib.aclosing(follow(client, resource.collection(), self._clock, _SELECTOR)) as events:
                    async for event in events:
                        failures = 0
                        if isinstance(event, Listed):
                            self._take_all(resource, event.objects)
                        else:
                            self._take_one(resource, event.object, is_gone=event.type == "DELETED")
            except GardenbusError as error:
                failures += 1
                self._cached.pop(resource, None)
                if isinstance(error, Unauthorized):
                    self._connector.forget()
                elif isinstance(error, NotFound):
                    self._connector.forget()  # the kind is not served any more: discover anew
                _log.warning("watch.ended", cluster=self.name, kind=resource.kind, reason=error.message)
            await self._clock.sleep(_BACKOFF.delay_seconds(max(1, failures), random.random()))

    def _take_all(self, resource: Resource, objects: Collection[Document]) -> None:
        before = self._cached.get(resource, {})
        there = {_key(each): _complete(resource, each) for each in objects}
        self._cached[resource] = there
        self._newest.pop(resource, None)
        for each in objects:
            self._observe(resource, each)
        for key in before.keys() | there.keys():
            old, new = before.get(key), there.get(key)
            if old is None or new is None or _version(old) != _version(new):
                self._changed(new if new is not None else old or {})

    def _take_one(self, resource: Resource, live: Document, *, is_gone: bool) -> None:
        cached = self._cached.setdefault(resource, {})
        before = cached.get(_key(live))
        if before is not None and is_older(live, before):
            return
        self._observe(resource, live)
        if is_gone:
            cached.pop(_key(live), None)
        else:
            cached[_key(live)] = _complete(resource, live)
        if is_gone or before is None or _version(before) != _version(live):
            self._changed(live)

    def _remember(self, resource: Resource, live: Document) -> Document:
        """Keep what a write has returned, where the kind is watched, until its event comes if it has not come yet."""
        complete = _complete(resource, live)
        labels = section(live, "metadata", "labels")
        cached = self._cached.get(resource)
        if cached is not None and labels.get(MANAGED_BY) == MANAGED_BY_VALUE:
            events = (cached.get(_key(live)), self._newest.get(resource))
            if not any(each is not None and is_older(live, each) for each in events):
                cached[_key(live)] = complete
        return complete

    def _observe(self, resource: Resource, live: Document) -> None:
        newest = self._newest.get(resource)
        if newest is None or is_older(newest, live):
            self._newest[resource] = live


def _complete(resource: Resource, live: Document) -> Document:
    """An object with its kind, which lists leave out, and without the managers of its fields: they take most room."""
    metadata = {name: value for name, value in section(live, "metadata").items() if name != "managedFields"}
    return {**live, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


def _key(live: Document) -> tuple[str, str]:
    metadata = section(live, "metadata")
    return (str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))


def _version(live: Document) -> str:
    return str(section(live, "metadata").get("resourceVersion") or "")


def is_older(live: Document, other: Document) -> bool:
    """True for a version of an object that came before another one of it."""
    versions = (_version(live), _version(other))
    return all(each.isdigit() for each in versions) and int(versions[0]) < int(versions[1])
