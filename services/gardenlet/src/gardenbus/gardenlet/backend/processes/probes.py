"""Health of control planes that are processes: found by requests to each component, and to the cluster's API."""

import ssl
from collections.abc import Sequence
from pathlib import Path

import aiohttp

from gardenbus.agent.kubernetes.client import KubernetesClient, client_tls
from gardenbus.common.errors import GardenbusError
from gardenbus.gardenlet.backend.processes.cluster import Cluster
from gardenbus.gardenlet.backend.processes.etcd_client import EtcdClient
from gardenbus.gardenlet.domain.control_plane import (
    ADMIN,
    CA,
    ETCD,
    ETCD_CA,
    ETCD_CLIENT,
    PORTS,
    Component,
    etcd_url,
    least_nodes,
)
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.system_components import (
    SystemComponent,
    differs,
    nodes_problem,
    system_components,
    webhook_problem,
)

TOO_MANY_RESTARTS = 3
_OK = 200
_PROBE_SECONDS = 5.0
_LONGEST_TEXT = 200
_WEBHOOKS = (
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
)


class ProbeSession:
    """One HTTP session for all control planes of a seed, with the certificates of each."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._tls: dict[Path, tuple[int, ssl.SSLContext]] = {}

    def open(self) -> None:
        """Make the session; a loop must run."""
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=5))

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()

    def client(self, cluster: Cluster) -> KubernetesClient:
        """A client of the cluster's API that may do everything. Raises BadRequest."""
        assert self._session is not None
        return KubernetesClient(self._session, cluster.url, self._tls_of(cluster, CA))

    def etcd(self, cluster: Cluster, name: str = ETCD) -> EtcdClient:
        """A client of one of the cluster's etcds. Raises BadRequest."""
        assert self._session is not None
        return EtcdClient(self._session, etcd_url(cluster.where, name), self._tls_of(cluster, ETCD_CA))

    async def component_problem(self, cluster: Cluster, component: Component) -> str | None:
        """Problem of a component: it has ended, or its health check fails."""
        if cluster.child(component.name) is None:
            return f"{component.name} has ended"
        port = cluster.where.ports[component.health.port]
        url = f"https://{cluster.where.address}:{port}{component.health.path}"
        return await self.url_problem(cluster, url, component.health.authority)

    async def url_problem(self, cluster: Cluster, url: str, authority: str = CA) -> str | None:
        """Problem of a GET; None for status 200."""
        assert self._session is not None
        timeout = aiohttp.ClientTimeout(total=_PROBE_SECONDS)
        try:
            async with self._session.get(url, ssl=self._tls_of(cluster, authority), timeout=timeout) as response:
                text = " ".join((await response.text())[-_LONGEST_TEXT:].split())
                return None if response.status == _OK else f"{url} responded with {response.status}: {text}"
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return f"{url} does not respond: {type(error).__name__}"
        except GardenbusError as error:
            return error.message

    def _tls_of(self, cluster: Cluster, authority: str) -> ssl.SSLContext:
        """Certificates for what is signed by an authority; read again when they were renewed."""
        keys, name = cluster.keys, ETCD_CLIENT if authority == ETCD_CA else ADMIN
        file = keys / f"{name}.crt"
        stamp = file.stat().st_mtime_ns
        cached = self._tls.get(file)
        if cached is None or cached[0] != stamp:
            tls = client_tls(
                authority=f"{keys / authority}.crt", certificate=str(file), key=str(file.with_suffix(".key"))
            )
            cached = self._tls[file] = (stamp, tls)
        return cached[1]


def components_of(cluster: Cluster, observed: ObservedShoot) -> Sequence[SystemComponent]:
    """Objects that are kept in a shoot's cluster."""
    assert cluster.state is not None
    return system_components(observed.spec, cluster.state.parameters, shoot=observed.full_name, uid=observed.uid)


async def control_plane_problems(session: ProbeSession, cluster: Cluster, observed: ObservedShoot) -> dict[str, str]:
    """Problems by condition and constraint type; empty when all is well."""
    assert cluster.state is not None
    found: dict[str, str] = {}
    unhealthy = [await session.component_problem(cluster, each) for each in cluster.components(PORTS)]
    unhealthy += [
        f"{name} was started {cluster.restarts(name)} times anew"
        for name in cluster.state.parameters.components
        if cluster.restarts(name) > TOO_MANY_RESTARTS
    ]
    if texts := [text for text in unhealthy if text]:
        found["ControlPlaneHealthy"] = f"{'; '.join(texts)}."
    away = await session.url_problem(cluster, f"{cluster.url}/healthz")
    if away is not None:
        unseen = ("APIServerAvailable", "SystemComponentsHealthy", "EveryNodeReady")
        return {**found, **dict.fromkeys(unseen, f"{away}.")}
    try:
        return found | await _problems_inside(session.client(cluster), cluster, observed)
    except (GardenbusError, OSError) as error:
        return {**found, "SystemComponentsHealthy": f"{error}."}


async def _problems_inside(client: KubernetesClient, cluster: Cluster, observed: ObservedShoot) -> dict[str, str]:
    found: dict[str, str] = {}
    missing = [each.path for each in components_of(cluster, observed) if differs(each, await client.get(each.path))]
    if missing:
        found["SystemComponentsHealthy"] = f"Missing, or changed by somebody: {', '.join(missing)}."
    nodes = nodes_problem(await client.items("/api/v1/nodes"), wanted=least_nodes(observed.spec))
    if nodes is not None:
        found["EveryNodeReady"] = nodes
    webhooks = webhook_problem([each for path in _WEBHOOKS for each in await client.items(path)])
    if webhooks is not None:
        found |= dict.fromkeys(("HibernationPossible", "MaintenancePreconditionsSatisfied"), webhooks)
    return found
