"""Plan of a shoot's control plane: components, flags, files, certificates, health checks and memory.

The same for whoever carries it out: a process is started with these arguments, and a container would be given them with
its own paths and addresses. Source: Gardener's botanist (`pkg/component/kubernetes`), reduced to one replica, and the
flags that an idle control plane saves most with.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple, cast

import msgspec

from gardenbus.common.api.document import Document, section

ETCD, EVENTS_ETCD, API_SERVER = "etcd", "etcd-events", "kube-apiserver"
CONTROLLER_MANAGER, SCHEDULER = "kube-controller-manager", "kube-scheduler"
PEER, EVENTS_PEER = "etcd-peer", "etcd-events-peer"
ETCDS = (ETCD, EVENTS_ETCD)
"""Components that keep data: everything but Events, which the other one keeps for an hour and nobody backs up."""

PORTS = (ETCD, PEER, EVENTS_ETCD, EVENTS_PEER, API_SERVER, CONTROLLER_MANAGER, SCHEDULER)
"""Names of the ports of a control plane; all are on its own address."""

CA, ETCD_CA, FRONT_PROXY_CA = "ca", "ca-etcd", "ca-front-proxy"
AUTHORITIES = (CA, ETCD_CA, FRONT_PROXY_CA)
"""Certificate authorities of a shoot. They and the service account key last as long as the shoot."""

SERVICE_ACCOUNT_KEY = "service-account"
SERVER_CERTIFICATE, ETCD_CLIENT, ADMIN = "kube-apiserver", "etcd-client", "gardenlet"
MASTERS = "system:masters"
"""Group of those who may do everything."""

LEAF_LIFE = timedelta(days=90)
DEFAULT_SERVICES, DEFAULT_PODS = "100.64.0.0/13", "100.96.0.0/11"
"""Gardener's defaults of spec.networking."""

ISSUER = "https://kubernetes.default.svc.cluster.local"
"""Issuer of service account tokens; the same wherever the shoot moves."""

_CONTROLLERS = (
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-cleaner-controller",
    "certificatesigningrequest-signing-controller",
    "clusterrole-aggregation-controller",
    "daemonset-controller",
    "deployment-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "persistentvolumeclaim-protection-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
)
"""Controllers that have something to do in a cluster without a cloud; fewer start in half the time."""


class ClusterParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a Shoot that its control plane depends on."""

    technical_id: str
    version: str
    services: str = DEFAULT_SERVICES
    pods: str = DEFAULT_PODS
    has_workers: bool = False

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the components, in the order of their start; a shoot without workers needs no scheduler."""
        return (*ETCDS, API_SERVER, CONTROLLER_MANAGER, *((SCHEDULER,) if self.has_workers else ()))


class Location(NamedTuple):
    """The place of a control plane: its address, its ports by name, and the directories of its keys and data.

    Without a port of the etcd of Events, the other one keeps them: a control plane that was made before there was one.
    """

    address: str
    ports: Mapping[str, int]
    keys: str
    data: str
    events: str = ""


class HealthCheck(NamedTuple):
    """A GET to which a component that is ready responds with 200, with the certificates of `authority`."""

    port: str
    path: str
    authority: str = CA


class Component(NamedTuple):
    """One component. `environment` has the limits of Go's runtime."""

    name: str
    arguments: tuple[str, ...]
    health: HealthCheck
    environment: Mapping[str, str]

    @property
    def program(self) -> str:
        """Name of its program."""
        return ETCD if self.name in ETCDS else self.name


class WantedCertificate(NamedTuple):
    """A certificate, `<name>.crt` with `<name>.key`; with `hosts` (names and addresses) it is a server's, too."""

    name: str
    authority: str
    common_name: str
    organizations: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


def cluster_parameters(spec: Document, *, technical_id: str) -> ClusterParameters:
    """Parameters of a Shoot's control plane, by its spec."""
    networking = section(spec, "networking")
    workers = cast("list[Document]", section(spec, "provider").get("workers") or [])
    return ClusterParameters(
        technical_id=technical_id,
        version=str(section(spec, "kubernetes").get("version") or "").removeprefix("v"),
        services=str(networking.get("services") or DEFAULT_SERVICES),
        pods=str(networking.get("pods") or DEFAULT_PODS),
        has_workers=bool(workers),
    )


def least_nodes(spec: Document) -> int:
    """Nodes that the worker pools of a Shoot have at least."""
    workers = cast("list[Document]", section(spec, "provider").get("workers") or [])
    return sum(int(pool.get("minimum") or 0) for pool in workers)


def certificates(cluster: ClusterParameters, address: str) -> tuple[WantedCertificate, ...]:
    """Certificates of a control plane that is reached by this address."""
    first = str(next(ipaddress.ip_network(cluster.services, strict=False).hosts()))
    domain = "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"
    hosts = tuple(dict.fromkeys((address, "localhost", *domain, cluster.technical_id, "127.0.0.1", first)))
    return (
        WantedCertificate(
            ETCD, ETCD_CA, "etcd-server", hosts=tuple(dict.fromkeys((address, "localhost", "127.0.0.1")))
        ),
        WantedCertificate(ETCD_CLIENT, ETCD_CA, "etcd-client"),
        WantedCertificate(SERVER_CERTIFICATE, CA, "kube-apiserver", hosts=hosts),
        WantedCertificate("front-proxy-client", FRONT_PROXY_CA, "front-proxy-client"),
        WantedCertificate(ADMIN, CA, "gardener.cloud:system:gardenlet", (MASTERS,)),
        WantedCertificate(CONTROLLER_MANAGER, CA, "system:kube-controller-manager"),
        WantedCertificate(SCHEDULER, CA, "system:kube-scheduler"),
    )


def kubeconfig_files(cluster: ClusterParameters) -> tuple[str, ...]:
    """Components that reach the API server by a file `<name>.kubeconfig` with the certificate of the same name."""
    return tuple(name for name in cluster.components if name in {CONTROLLER_MANAGER, SCHEDULER})


def control_plane(cluster: ClusterParameters, where: Location) -> tuple[Component, ...]:
    """The components, in the order of their start."""
    build = {
        ETCD: _etcd,
        EVENTS_ETCD: _events_etcd,
        API_SERVER: _api_server,
        CONTROLLER_MANAGER: _controller_manager,
        SCHEDULER: _scheduler,
    }
    return tuple(build[name](cluster, where) for name in cluster.components if name in where.ports)


def component_of(arguments: Sequence[str]) -> str | None:
    """Name of the component that runs with these arguments, the program being the first, or the second after a shell.

    Both etcds have one program, and names of their own.
    """
    names = {argument.rpartition("/")[2] for argument in arguments[:2]}
    name = next((each for each in PORTS if each in names), None)
    return EVENTS_ETCD if name == ETCD and f"--name={EVENTS_ETCD}" in arguments else name


def api_server_url(where: Location) -> str:
    """URL of the API server."""
    return f"https://{where.address}:{where.ports[API_SERVER]}"


def etcd_url(where: Location, name: str = ETCD) -> str:
    """URL of an etcd for its clients."""
    return f"https://{where.address}:{where.ports[name]}"


def kubeconfig(*, server: str, name: str, user: Document, authority: Document) -> Document:
    """Build a kubeconfig of one cluster, one user and one context, all of this name."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, **authority}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def _limits(memory_mib: int) -> Mapping[str, str]:
    return {"GOMEMLIMIT": f"{memory_mib}MiB", "GOGC": "50", "GOMAXPROCS": "2"}


def _etcd(cluster: ClusterParameters, where: Location) -> Component:
    arguments = _etcd_flags(cluster, where, member="etcd-main", client=etcd_url(where), peer=where.ports[PEER])
    return Component(ETCD, _flags(arguments), HealthCheck(ETCD, "/readyz", ETCD_CA), _limits(256))


def _events_etcd(cluster: ClusterParameters, where: Location) -> Component:
    client, peer = etcd_url(where, EVENTS_ETCD), where.ports[EVENTS_PEER]
    arguments = _etcd_flags(cluster, where, member=EVENTS_ETCD, client=client, peer=peer) | {"data-dir": where.events}
    return Component(EVENTS_ETCD, _flags(arguments), HealthCheck(EVENTS_ETCD, "/readyz", ETCD_CA), _limits(128))


def _etcd_flags(cluster: ClusterParameters, where: Location, *, member: str, client: str, peer: int) -> dict[str, str]:
    peer_url = f"https://{where.address}:{peer}"
    return {
        "name": member,
        "data-dir": where.data,
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer_url,
        "initial-advertise-peer-urls": peer_url,
        "initial-cluster": f"{member}={peer_url}",
        "initial-cluster-token": cluster.technical_id,
        "cert-file": f"{where.keys}/{ETCD}.crt",
        "key-file": f"{where.keys}/{ETCD}.key",
        "trusted-ca-file": f"{where.keys}/{ETCD_CA}.crt",
        "client-cert-auth": "true",
        "peer-cert-file": f"{where.keys}/{ETCD}.crt",
        "peer-key-file": f"{where.keys}/{ETCD}.key",
        "peer-trusted-ca-file": f"{where.keys}/{ETCD_CA}.crt",
        "peer-client-cert-auth": "true",
        "auto-compaction-mode": "periodic",
        "auto-compaction-retention": "5m",
        "logger": "zap",
        "log-level": "warn",
    }


def _api_server(cluster: ClusterParameters, where: Location) -> Component:
    keys = where.keys
    has_events = EVENTS_ETCD in where.ports
    events = {"etcd-servers-overrides": f"/events#{etcd_url(where, EVENTS_ETCD)}"} if has_events else {}
    arguments = {
        "etcd-servers": etcd_url(where),
        **events,
        "etcd-cafile": f"{keys}/{ETCD_CA}.crt",
        "etcd-certfile": f"{keys}/{ETCD_CLIENT}.crt",
        "etcd-keyfile": f"{keys}/{ETCD_CLIENT}.key",
        "bind-address": where.address,
        "secure-port": str(where.ports[API_SERVER]),
        "advertise-address": where.address,
        "endpoint-reconciler-type": "none",
        "service-cluster-ip-range": cluster.services,
        "authorization-mode": "Node,RBAC",
        "anonymous-auth": "false",
        "client-ca-file": f"{keys}/{CA}.crt",
        "tls-cert-file": f"{keys}/{SERVER_CERTIFICATE}.crt",
        "tls-private-key-file": f"{keys}/{SERVER_CERTIFICATE}.key",
        "service-account-issuer": ISSUER,
        "service-account-key-file": f"{keys}/{SERVICE_ACCOUNT_KEY}.key",
        "service-account-signing-key-file": f"{keys}/{SERVICE_ACCOUNT_KEY}.key",
        "requestheader-client-ca-file": f"{keys}/{FRONT_PROXY_CA}.crt",
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-username-headers": "X-Remote-User",
        "proxy-client-cert-file": f"{keys}/front-proxy-client.crt",
        "proxy-client-key-file": f"{keys}/front-proxy-client.key",
        "enable-bootstrap-token-auth": "true",
        "allow-privileged": "true",
        "profiling": "false",
        "watch-cache": "false",
        "enable-priority-and-fairness": "false",
        "max-requests-inflight": "50",
        "max-mutating-requests-inflight": "25",
        "shutdown-delay-duration": "0s",
    }
    return Component(API_SERVER, _flags(arguments), HealthCheck(API_SERVER, "/readyz"), _limits(512))


def _controller_manager(cluster: ClusterParameters, where: Location) -> Component:
    keys = where.keys
    arguments = {
        **_client_flags(CONTROLLER_MANAGER, where),
        "root-ca-file": f"{keys}/{CA}.crt",
        "service-account-private-key-file": f"{keys}/{SERVICE_ACCOUNT_KEY}.key",
        "cluster-signing-cert-file": f"{keys}/{CA}.crt",
        "cluster-signing-key-file": f"{keys}/{CA}.key",
        "cluster-cidr": cluster.pods,
        "service-cluster-ip-range": cluster.services,
        "use-service-account-credentials": "true",
        "controllers": ",".join(_CONTROLLERS),
    }
    health = HealthCheck(CONTROLLER_MANAGER, "/healthz")
    return Component(CONTROLLER_MANAGER, _flags(arguments), health, _limits(192))


def _scheduler(_cluster: ClusterParameters, where: Location) -> Component:
    return Component(
        SCHEDULER, _flags(_client_flags(SCHEDULER, where)), HealthCheck(SCHEDULER, "/healthz"), _limits(128)
    )


def _client_flags(name: str, where: Location) -> dict[str, str]:
    file = f"{where.keys}/{name}.kubeconfig"
    return {
        "kubeconfig": file,
        "authentication-kubeconfig": file,
        "authorization-kubeconfig": file,
        "bind-address": where.address,
        "secure-port": str(where.ports[name]),
        "tls-cert-file": f"{where.keys}/{SERVER_CERTIFICATE}.crt",
        "tls-private-key-file": f"{where.keys}/{SERVER_CERTIFICATE}.key",
        "leader-elect": "false",
        "profiling": "false",
    }


def _flags(arguments: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"--{name}={value}" for name, value in arguments.items())
