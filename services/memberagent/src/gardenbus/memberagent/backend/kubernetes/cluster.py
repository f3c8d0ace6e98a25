"""Backend `kubernetes`: Works go to the API server that a kubeconfig names, by server-side apply.

    problem of the cluster                     kubeconfig missing or wrong, credentials rejected, server away, forbidden
    loop `run`                                 connection → AppliedWorks read → watches and facts, until either changes
    watch of each kind that a Work has         changes by others, and what becomes available: its Work is reconciled

Whatever is requested while the cluster is unreachable raises Unavailable, and is done when it is back.
"""

import asyncio
import contextlib
import random
from collections.abc import Sequence

import structlog

from gardenbus.agent.domain.cluster_facts import ClusterFacts
from gardenbus.agent.kubernetes.connection import ClusterConnection, Connector, KubeconfigSource
from gardenbus.agent.kubernetes.discovery import Resource
from gardenbus.agent.kubernetes.errors import Throttled, Unauthorized
from gardenbus.agent.kubernetes.watch import Changed, Listed, follow
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.apply_strategies import DEFAULT_STRATEGY, ApplyStrategy
from gardenbus.common.api.fleet.member_clusters import namespace_of
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.errors import Forbidden, GardenbusError, NotFound
from gardenbus.memberagent.backend.kubernetes.applier import WorkApplication
from gardenbus.memberagent.backend.kubernetes.inventory import Inventory
from gardenbus.memberagent.backend.kubernetes.ownership import APPLIED_BY, APPLIED_LABEL, works_of
from gardenbus.memberagent.backend.kubernetes.removal import abandon_resources, remove_resources
from gardenbus.memberagent.backend.port import ApplyResult, BackendContext, WorkManifest
from gardenbus.memberagent.domain.cluster_measures import properties_of, usage_of

_log = structlog.stdlib.get_logger()

REFRESH_SECONDS = 10.0
"""Interval of measurements, and of checks for another kubeconfig."""

_BACKOFF = Backoff(base_seconds=1.0, cap_seconds=30.0)
_NAMESPACES = "/api/v1/namespaces"


def kubernetes_backend(context: BackendContext) -> "KubernetesBackend":
    """The backend `kubernetes`. A kubeconfig's path is relative to the cluster's directory."""
    configured = context.configured
    name = (configured.kubeconfig if configured is not None else "") or context.settings.kubeconfig
    return KubernetesBackend(context, KubeconfigSource(context.directory / name, context.garden_kubeconfig))


class KubernetesBackend:
    """See the module. Implements `backend.port.ClusterBackend`."""

    def __init__(self, context: BackendContext, source: KubeconfigSource) -> None:
        self._context = context
        self._clock = context.clock
        self._connector = Connector(source, context.clock, timeout_seconds=context.settings.timeout_seconds)
        self._inventory = Inventory(namespace_of(context.cluster), context.clock)
        self._problem: str | None = "the cluster was not reached yet"
        self._namespaces: set[str] = set()
        self._properties: dict[str, str] = {}
        self._usage: dict[str, dict[str, str]] = {}
        self._versions: dict[str, str] = {}
        self._watched: dict[Resource, asyncio.Task[None]] = {}
        self._tasks: asyncio.TaskGroup | None = None

    async def start(self) -> None:
        """Make the session: the cluster itself may be away."""
        self._connector.open()

    async def stop(self) -> None:
        """Close the session."""
        await self._connector.close()

    def facts(self) -> ClusterFacts:
        """State of the cluster as it was last measured."""
        made = {
            each.name: work.name
            for work in (self._inventory.works.values() if self._inventory.is_loaded else ())
            for each in work.resources
            if (each.group, each.kind) == ("", "Namespace")
        }
        return ClusterFacts(
            properties=self._properties,
            usage=self._usage,
            namespaces={name: made.get(name, "") for name in sorted(self._namespaces)},
            problem=self._problem,
        )

    def works(self) -> set[str]:
        """Works with an AppliedWork. Raises Unavailable while these are not yet read."""
        return set(self._inventory.works)

    async def apply(
        self, work: str, manifests: Sequence[WorkManifest], strategy: ApplyStrategy = DEFAULT_STRATEGY
    ) -> ApplyResult:
        """Apply manifests by server-side apply, and watch their kinds."""
        application = await self._application(work, strategy)
        try:
            return await application.apply(manifests)
        finally:
            self._versions |= application.versions
            self._watch_all()

    async def compare(
        self, work: str, manifests: Sequence[WorkManifest], strategy: ApplyStrategy = DEFAULT_STRATEGY
    ) -> ApplyResult:
        """Compare manifests with the cluster."""
        return await (await self._application(work, strategy)).compare(manifests)

    async def remove(self, work: str) -> str | None:
        """Remove the objects of a Work, then its AppliedWork."""
        if work not in self._inventory.works:
            return None
        connection = await self._connector.connection()
        resources = self._inventory.works[work].resources
        problem = await remove_resources(connection, self._inventory, work, resources)
        if problem is None:
            await self._inventory.forget(connection, work)
        return problem

    async def abandon(self, work: str) -> str | None:
        """Take the marks of a Work off its objects, then remove its AppliedWork."""
        if work not in self._inventory.works:
            return None
        connection = await self._connector.connection()
        problem = await abandon_resources(connection, work, self._inventory.works[work].resources)
        if problem is None:
            await self._inventory.forget(connection, work)
        return problem

    async def _application(self, work: str, strategy: ApplyStrategy) -> WorkApplication:
        _ = self._inventory.works
        return WorkApplication(await self._connector.connection(), self._inventory, work, strategy)

    # ------------------------------------------------------------------------------------------ observation

    async def run(self) -> None:
        """Observe the cluster; a new connection is observed from the start."""
        failures = 0
        while True:
            before = self._clock.monotonic()
            try:
                await self._observe(await self._connector.connection())
                failures = 0
            except* GardenbusError as group:
                error = _first(group)
                failures = 1 if self._clock.monotonic() - before > _BACKOFF.cap_seconds else failures + 1
                self._cannot_reach(error)
                pause = _BACKOFF.delay_seconds(failures, random.random())
                await self._pause(max(pause, error.retry_after_seconds if isinstance(error, Throttled) else 0.0))

    async def _pause(self, seconds: float) -> None:
        """Wait, but not longer than until there is another kubeconfig."""
        deadline = self._clock.monotonic() + seconds
        while (left := deadline - self._clock.monotonic()) > 0 and not self._connector.is_outdated():
            await self._clock.sleep(min(left, 1.0))

    async def _observe(self, connection: ClusterConnection) -> None:
        """Observe one connection, until there is another. Raises GardenbusError, also in groups."""
        await self._inventory.load(connection)
        try:
            async with asyncio.TaskGroup() as self._tasks:
                self._watch_all()
                self._tasks.create_task(self._follow_namespaces(connection), name="namespaces")
                await self._measure(connection)
                self._is_reached()
                while connection is await self._connector.connection():
                    await self._clock.sleep(REFRESH_SECONDS)
                    await self._measure(connection)
                raise _Replaced  # noqa: TRY301 - ends the watches
        except* _Replaced:
            _log.info("kubeconfig.replaced", cluster=self._context.cluster)
        finally:
            self._tasks = None
            self._watched.clear()

    def _cannot_reach(self, error: GardenbusError) -> None:
        if isinstance(error, Unauthorized):
            self._connector.forget()
        if self._problem != error.message:
            _log.warning(
                "cluster.unreachable", cluster=self._context.cluster, reason=error.reason, message=error.message
            )
        self._problem = f"{error.reason}: {error.message}"

    def _is_reached(self) -> None:
        """Have everything reconciled that waited for the cluster."""
        self._problem = None
        _log.info("cluster.reached", cluster=self._context.cluster, works=len(self._inventory.works))
        self._context.reached()

    async def _measure(self, connection: ClusterConnection) -> None:
        client = connection.client
        version = str((await client.request("GET", "/version")).get("gitVersion") or "")
        nodes = await client.items("/api/v1/nodes")
        pods = await client.items("/api/v1/pods", fieldSelector="spec.nodeName!=") if nodes else []
        self._properties = properties_of(version, nodes)
        self._usage = usage_of(nodes, pods)

    async def _follow_namespaces(self, connection: ClusterConnection) -> None:
        async with contextlib.aclosing(follow(connection.client, _NAMESPACES, self._clock)) as events:
            async for event in events:
                if isinstance(event, Listed):
                    self._namespaces = {_name(each) for each in event.objects}
                elif event.type == "DELETED":
                    self._namespaces.discard(_name(event.object))
                else:
                    self._namespaces.add(_name(event.object))

    # ------------------------------------------------------------------------------------------ watches

    def _watch_all(self) -> None:
        """Watch every kind of which a Work has something, and no other."""
        if self._tasks is None or not self._inventory.is_loaded:
            return
        kinds = {each.served_as for work in self._inventory.works.values() for each in work.resources}
        for resource in kinds - set(self._watched):
            self._watched[resource] = self._tasks.create_task(self._watch(resource), name=f"watch of {resource.plural}")
        for resource in set(self._watched) - kinds:
            self._watched.pop(resource).cancel()

    async def _watch(self, resource: Resource) -> None:
        connection = await self._connector.connection()
        query = {"labelSelector": f"{APPLIED_LABEL}={APPLIED_BY}"}
        events = follow(connection.client, resource.collection(), self._clock, query)
        try:
            async with contextlib.aclosing(events):
                async for event in events:
                    self._take(resource, event)
        except (NotFound, Forbidden) as error:
            if isinstance(error, Unauthorized):
                raise
            _log.warning("watch.ended", cluster=self._context.cluster, kind=resource.kind, reason=error.message)
            connection.discovery.forget(resource.group)
            for work in self._works_with(resource):
                self._context.changed(work)

    def _take(self, resource: Resource, event: Listed | Changed) -> None:
        if isinstance(event, Changed):
            if event.type == "DELETED":
                self._versions.pop(_uid(event.object), None)
            self._take_object(event.object, is_gone=event.type == "DELETED")
            return
        for each in event.objects:
            self._take_object(each)
        there = {(str(section(each, "metadata").get("namespace") or ""), _name(each)) for each in event.objects}
        for work in self._inventory.works.values():
            listed = {(each.namespace, each.name) for each in work.resources if each.served_as == resource}
            if not listed <= there:
                self._context.changed(work.name)

    def _take_object(self, live: Document, *, is_gone: bool = False) -> None:
        """Have the Works of an object reconciled, unless it is as this process has left it."""
        if not is_gone and self._versions.get(_uid(live)) == section(live, "metadata").get("resourceVersion"):
            return
        for work in works_of(live):
            self._context.changed(work)

    def _works_with(self, resource: Resource) -> list[str]:
        works = self._inventory.works.values()
        return [work.name for work in works if any(each.served_as == resource for each in work.resources)]


class _Replaced(Exception):
    """The connection was replaced."""


def _first(group: BaseExceptionGroup[GardenbusError]) -> GardenbusError:
    """One of the errors of a group of groups."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, GardenbusError)
    return error


def _name(live: Document) -> str:
    return str(section(live, "metadata").get("name"))


def _uid(live: Document) -> str:
    return str(section(live, "metadata").get("uid"))
