"""The seed's API as the source of ManagedResources: caches of them, and of the versions of Secrets.

Of Secrets only the metadata is watched; their content is read when it is needed.
"""

import asyncio
import base64
import binascii
import contextlib
import random
from collections.abc import Coroutine, Iterable
from typing import Any, Protocol

import structlog

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.agent.kubernetes.connection import Connector
from gardenbus.agent.kubernetes.errors import Unauthorized
from gardenbus.agent.kubernetes.watch import Listed, follow
from gardenbus.common.api.document import Document, section
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.errors import GardenbusError, NotFound
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.domain.managed_resources.definition import DEFINITION
from gardenbus.gardenlet.domain.managed_resources.manifests import SecretData
from gardenbus.gardenlet.domain.managed_resources.names import API_VERSION, KIND
from gardenbus.gardenlet.resource_manager.target import FIELD_MANAGER, is_older

_log = structlog.stdlib.get_logger()

FullName = tuple[str, str]
"""Namespace and name."""

_MANAGED_RESOURCES = f"/apis/{API_VERSION}/managedresources"
_SECRETS = "/api/v1/secrets"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_IDENTITY = "/api/v1/namespaces/kube-system/configmaps/cluster-identity"
_BACKOFF = Backoff(base_seconds=1.0, cap_seconds=30.0)


class SourceEvents(Protocol):
    """Consumer of changes of the source."""

    def managed_resource_changed(self, name: FullName, before: Document | None, now: Document | None) -> None:
        """A ManagedResource was made, changed or removed."""
        ...

    def secret_changed(self, name: FullName, before: Document | None, now: Document | None) -> None:
        """The metadata of a Secret has changed."""
        ...


class SourceCluster:
    """See the module."""

    def __init__(self, seed: str, connector: Connector, clock: Clock, events: SourceEvents) -> None:
        self._seed = seed
        self._connector = connector
        self._clock = clock
        self._events = events
        self.managed_resources: dict[FullName, Document] = {}
        self.secrets: dict[FullName, Document] = {}
        self.identity = ""
        """Identity of the seed's cluster, which the origins of objects name."""

    async def client(self) -> KubernetesClient:
        """Client of the connection. Raises GardenbusError."""
        return (await self._connector.connection()).client

    async def run(self) -> None:
        """Follow both kinds, until cancelled."""
        failures = 0
        while True:
            try:
                await self._prepare()
                await _both(self._follow_managed_resources(), self._follow_secrets())
            except GardenbusError as error:
                failures += 1
                if isinstance(error, Unauthorized):
                    self._connector.forget()
                _log.warning("source.interrupted", seed=self._seed, reason=error.message)
            else:
                failures = 0
            await self._clock.sleep(_BACKOFF.delay_seconds(max(1, failures), random.random()))

    async def secret(self, namespace: str, name: str) -> SecretData | None:
        """A Secret with its values; None without one. Raises GardenbusError."""
        found = await (await self.client()).get(f"/api/v1/namespaces/{namespace}/secrets/{name}")
        return None if found is None else SecretData(namespace, name, _values(section(found, "data")))

    async def patch(self, managed_resource: Document, patch: Document, *, is_status: bool = False) -> Document | None:
        """Patch a ManagedResource, or its status; None when it is gone. Raises GardenbusError."""
        name = name_of(managed_resource)
        path = f"/apis/{API_VERSION}/namespaces/{name[0]}/managedresources/{name[1]}"
        try:
            after = await (await self.client()).merge_patch(
                f"{path}/status" if is_status else path, patch, manager=FIELD_MANAGER
            )
        except NotFound:
            return None
        after = {"apiVersion": API_VERSION, "kind": KIND, **after}
        before = self.managed_resources.get(name)
        if before is not None and is_older(before, after):
            # its own event is dropped then, and so are those of changes by others that the response has, too
            self._set_managed_resource(name, after)
        return after

    # ------------------------------------------------------------------------------------------ following

    async def _prepare(self) -> None:
        """Read the cluster's identity, and have the definition be there."""
        client = await self.client()
        found = await client.get(_IDENTITY)
        self.identity = str(section(found or {}, "data").get("cluster-identity") or "")
        name = str(DEFINITION["metadata"]["name"])
        if await client.get(f"{_DEFINITIONS}/{name}") is None:
            await client.apply(f"{_DEFINITIONS}/{name}", DEFINITION, manager=FIELD_MANAGER)
            _log.info("definition.created", seed=self._seed, name=name)

    async def _follow_managed_resources(self) -> None:
        events = follow(await self.client(), _MANAGED_RESOURCES, self._clock)
        async with contextlib.aclosing(events):
            async for event in events:
                if isinstance(event, Listed):
                    listed = {name_of(each): _typed(each) for each in event.objects}
                    for name in self.managed_resources.keys() - listed.keys():
                        self._set_managed_resource(name, None)
                    for name, each in listed.items():
                        self._set_managed_resource(name, each)
                else:
                    self._take_event(name_of(event.object), _typed(event.object), is_gone=event.type == "DELETED")

    async def _follow_secrets(self) -> None:
        events = follow((await self.client()).metadata_only(), _SECRETS, self._clock)
        async with contextlib.aclosing(events):
            async for event in events:
                if isinstance(event, Listed):
                    listed = {name_of(each): _metadata_alone(each) for each in event.objects}
                    for name in self.secrets.keys() - listed.keys():
                        self._set_secret(name, None)
                    for name, each in listed.items():
                        self._set_secret(name, each)
                else:
                    is_gone = event.type == "DELETED"
                    self._set_secret(name_of(event.object), None if is_gone else _metadata_alone(event.object))

    def _take_event(self, name: FullName, live: Document, *, is_gone: bool) -> None:
        before = self.managed_resources.get(name)
        if before is None or not is_older(live, before):
            self._set_managed_resource(name, None if is_gone else live)

    def _set_managed_resource(self, name: FullName, now: Document | None) -> None:
        before = self.managed_resources.get(name)
        if now is None:
            self.managed_resources.pop(name, None)
        else:
            self.managed_resources[name] = now
        self._events.managed_resource_changed(name, before, now)

    def _set_secret(self, name: FullName, now: Document | None) -> None:
        before = self.secrets.get(name)
        if now is None:
            self.secrets.pop(name, None)
        else:
            self.secrets[name] = now
        if before is None or now is None or version_of(before) != version_of(now):
            self._events.secret_changed(name, before, now)


def name_of(live: Document) -> FullName:
    """Namespace and name of an object."""
    metadata = section(live, "metadata")
    return (str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))


def version_of(live: Document) -> str:
    """Version of an object."""
    return str(section(live, "metadata").get("resourceVersion") or "")


def secret_names(managed_resource: Document) -> list[str]:
    """Names of the Secrets of a ManagedResource, in their order."""
    references: Iterable[Document] = section(managed_resource, "spec").get("secretRefs") or []
    return [str(each.get("name") or "") for each in references]


async def _both(*work: Coroutine[Any, Any, None]) -> None:
    """Run until one of them ends, then end the others. Raises what it raised."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _typed(live: Document) -> Document:
    metadata = {name: value for name, value in section(live, "metadata").items() if name != "managedFields"}
    return {**live, "apiVersion": API_VERSION, "kind": KIND, "metadata": metadata}


def _metadata_alone(live: Document) -> Document:
    metadata = section(live, "metadata")
    return {"metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def _values(data: Document) -> dict[str, bytes]:
    values: dict[str, bytes] = {}
    for key, value in data.items():
        with contextlib.suppress(binascii.Error, ValueError):
            values[key] = base64.b64decode(str(value))
    return values
