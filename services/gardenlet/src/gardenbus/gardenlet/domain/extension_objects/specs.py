"""Extension objects of a shoot, by its spec.

What a machine is told (units and files of Gardener's node agent) is not in the OperatingSystemConfigs: no machine
starts one here. Source: Gardener's `pkg/component/extensions`.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.document_parts import entry_named, mappings, only_text
from gardenbus.common.api.durations import parse_duration
from gardenbus.common.api.garden.extensions import cluster_type, enabled_types, resources_of
from gardenbus.gardenlet.domain.extension_objects.cluster import CLOUD_PROVIDER
from gardenbus.gardenlet.domain.extension_objects.kinds import ExtensionObject

POOL = "worker.gardener.cloud/pool"
PROVISION, RECONCILE = "provision", "reconcile"
CLOUD_CONFIG = "cloud_config"
_RUNTIME_BINARIES = "/var/bin/containerruntimes"
_PREFIX = "gardener-node-agent"

Moment = Literal["BeforeKubeAPIServer", "AfterKubeAPIServer", "AfterWorker"]
"""Place of an Extension in a flow."""

Handling = Literal["reconcile", "delete", "migrate"]
_MOMENTS: Mapping[Handling, Moment] = {
    "reconcile": "AfterKubeAPIServer",
    "delete": "BeforeKubeAPIServer",
    "migrate": "BeforeKubeAPIServer",
}


class ShootFacts(NamedTuple):
    """A shoot as its extension objects depend on it. `namespace` is that of its control plane on the seed."""

    namespace: str
    name: str
    spec: Document

    @property
    def provider(self) -> Document:
        """spec.provider."""
        return section(self.spec, "provider")

    @property
    def pools(self) -> Sequence[Document]:
        """The worker pools."""
        return mappings(self.provider.get("workers"))


def infrastructure(facts: ShootFacts) -> ExtensionObject:
    """The Infrastructure."""
    spec = _of_provider(facts) | _configuration(facts.provider.get("infrastructureConfig"))
    return ExtensionObject("Infrastructure", facts.namespace, facts.name, spec)


def networking_status(infrastructure: Document) -> Document:
    """A Shoot's `status.networking`: networks and addresses that its Infrastructure has chosen."""
    status = section(infrastructure, "status")
    chosen = section(status, "networking")
    nodes = chosen.get("nodes") or ([status["nodesCIDR"]] if status.get("nodesCIDR") else None)
    found = {"nodes": nodes, "egressCIDRs": status.get("egressCIDRs")}
    found |= {field: chosen.get(field) for field in ("pods", "services")}
    return {field: value for field, value in found.items() if value}


def control_plane(facts: ShootFacts, infrastructure_status: object) -> ExtensionObject:
    """The ControlPlane. `infrastructure_status` is the Infrastructure's `status.providerStatus`."""
    spec = _of_provider(facts) | _configuration(facts.provider.get("controlPlaneConfig"))
    if infrastructure_status is not None:
        spec["infrastructureProviderStatus"] = infrastructure_status
    return ExtensionObject("ControlPlane", facts.namespace, facts.name, spec)


def network(facts: ShootFacts) -> ExtensionObject:
    """The Network."""
    networking = section(facts.spec, "networking")
    spec: Document = {
        "type": networking.get("type"),
        "podCIDR": networking.get("pods") or "",
        "serviceCIDR": networking.get("services") or "",
        "ipFamilies": networking.get("ipFamilies") or ["IPv4"],
    }
    return ExtensionObject(
        "Network", facts.namespace, facts.name, spec | _configuration(networking.get("providerConfig"))
    )


def operating_system_configs(facts: ShootFacts) -> Iterator[ExtensionObject]:
    """Two OperatingSystemConfigs a pool: for a machine that starts, and for one that runs."""
    for pool in facts.pools:
        for purpose, suffix in ((PROVISION, "init"), (RECONCILE, "original")):
            image = section(pool, "machine", "image")
            spec: Document = {
                "type": image.get("name"),
                "purpose": purpose,
                "criConfig": {"name": section(pool, "cri").get("name") or "containerd"},
                **_configuration(image.get("providerConfig")),
            }
            labels = {POOL: str(pool.get("name"))}
            yield ExtensionObject(
                "OperatingSystemConfig", facts.namespace, f"{_pool_key(facts, pool)}-{suffix}", spec, labels
            )


def container_runtimes(facts: ShootFacts) -> Iterator[ExtensionObject]:
    """A ContainerRuntime for each runtime of each pool."""
    for pool in facts.pools:
        name = str(pool.get("name"))
        for runtime in mappings(section(pool, "cri").get("containerRuntimes")):
            spec: Document = {
                "type": runtime.get("type"),
                "binaryPath": _RUNTIME_BINARIES,
                "workerPool": {"name": name, "selector": {"matchLabels": {POOL: name}}},
                **_configuration(runtime.get("providerConfig")),
            }
            yield ExtensionObject("ContainerRuntime", facts.namespace, f"{runtime.get('type')}-{name}", spec)


def worker(
    facts: ShootFacts, infrastructure_status: object, user_data: Mapping[str, str], cloud_profile: Document
) -> ExtensionObject:
    """The Worker. `user_data`: the Secret with what a machine of a pool starts with, by pool."""
    spec = _of_provider(facts) | {"pools": [_pool(facts, each, user_data, cloud_profile) for each in facts.pools]}
    if infrastructure_status is not None:
        spec["infrastructureProviderStatus"] = infrastructure_status
    return ExtensionObject("Worker", facts.namespace, facts.name, spec)


def enabled(spec: Document, registrations: Sequence[Document]) -> frozenset[str]:
    """Types of the Extensions of a shoot."""
    return enabled_types(spec, registrations, cluster_type("Shoot", spec))


def extensions(facts: ShootFacts, registrations: Sequence[Document], moment: Moment) -> tuple[ExtensionObject, ...]:
    """The Extensions that are reconciled at a moment: those that the shoot names, and those that come by themselves."""
    return tuple(
        ExtensionObject(
            "Extension",
            facts.namespace,
            each,
            {
                "type": each,
                **_configuration(entry_named(facts.spec.get("extensions"), each, "type").get("providerConfig")),
            },
            timeout_seconds=_timeout_seconds(registrations, each),
        )
        for each in sorted(enabled(facts.spec, registrations))
        if moment_of(registrations, each, "reconcile") == moment
    )


def moment_of(registrations: Sequence[Document], extension_type: str, handling: Handling) -> Moment:
    """Moment at which Extensions of a type are handled, by the registration that is primary for it."""
    lifecycle = section(_primary(registrations, extension_type), "lifecycle")
    moment = lifecycle.get(handling)
    return moment if moment in ("BeforeKubeAPIServer", "AfterKubeAPIServer", "AfterWorker") else _MOMENTS[handling]


def user_data_secrets(configs: Sequence[Document]) -> Mapping[str, str]:
    """Secrets with what machines start with, by pool, out of the status of their OperatingSystemConfigs."""
    return {
        str(section(each, "metadata", "labels").get(POOL)): str(secret.get("name"))
        for each in configs
        if section(each, "spec").get("purpose") == PROVISION
        and (secret := section(each, "status", "cloudConfig", "secretRef"))
    }


def _pool(facts: ShootFacts, pool: Document, user_data: Mapping[str, str], cloud_profile: Document) -> Document:
    name, machine = str(pool.get("name")), section(pool, "machine")
    image, profile = section(machine, "image"), section(cloud_profile, "spec")
    machine_type = entry_named(profile.get("machineTypes"), machine.get("type"))
    zones = pool.get("zones") or [each.get("name") for each in _zones(profile, facts.spec.get("region"))]
    made: Document = {
        "name": name,
        "minimum": pool.get("minimum") or 0,
        "maximum": pool.get("maximum") or 0,
        "maxSurge": pool.get("maxSurge", 1),
        "maxUnavailable": pool.get("maxUnavailable", 0),
        "machineType": machine.get("type"),
        "architecture": machine.get("architecture") or machine_type.get("architecture") or "amd64",
        "machineImage": {field: image.get(field) for field in ("name", "version")},
        "kubernetesVersion": section(pool, "kubernetes").get("version")
        or section(facts.spec, "kubernetes").get("version"),
        "userDataSecretRef": {"name": user_data.get(name, _pool_key(facts, pool)), "key": CLOUD_CONFIG},
        "nodeAgentSecretName": _pool_key(facts, pool),
        "zones": zones,
        "labels": {**section(pool, "labels"), POOL: name, "worker.gardener.cloud/system-components": "true"},
        "nodeTemplate": {
            "capacity": {field: machine_type.get(field) or "0" for field in ("cpu", "gpu", "memory")},
        },
    }
    optional = ("annotations", "taints", "providerConfig", "dataVolumes", "kubeletDataVolumeName", "priority")
    made |= {field: pool[field] for field in optional if pool.get(field) is not None}
    if volume := section(pool, "volume"):
        made["volume"] = {
            field: volume[source]
            for field, source in (("name", "name"), ("type", "type"), ("size", "size"), ("encrypted", "encrypted"))
            if volume.get(source) is not None
        }
    return made


def _zones(profile: Document, region: object) -> Sequence[Document]:
    return mappings(entry_named(profile.get("regions"), region).get("zones"))


def _pool_key(facts: ShootFacts, pool: Document) -> str:
    """Name of what the machines of a pool have in common: another one when they are to be replaced."""
    machine = section(pool, "machine")
    version = section(pool, "kubernetes").get("version") or section(facts.spec, "kubernetes").get("version") or ""
    parts = {
        "kubernetes": ".".join(str(version).split(".")[:2]),
        "machine": machine.get("type"),
        "image": {field: section(machine, "image").get(field) for field in ("name", "version")},
        "volume": pool.get("volume"),
        "cri": section(pool, "cri").get("name"),
    }
    return f"{_PREFIX}-{pool.get('name')}-{hashlib.sha256(encode(parts)).hexdigest()[:5]}"


def _of_provider(facts: ShootFacts) -> Document:
    return {
        "type": facts.provider.get("type"),
        "region": facts.spec.get("region") or "",
        "secretRef": {"name": CLOUD_PROVIDER, "namespace": facts.namespace},
    }


def _configuration(given: object) -> Document:
    return {"providerConfig": given} if isinstance(given, dict) and given else {}


def _primary(registrations: Sequence[Document], extension_type: str) -> Document:
    nothing: Document = {}
    return next(
        (
            resource
            for registration in registrations
            for resource in resources_of(registration)
            if resource.get("kind") == "Extension"
            and resource.get("type") == extension_type
            and resource.get("primary", True) is not False
        ),
        nothing,
    )


def _timeout_seconds(registrations: Sequence[Document], extension_type: str) -> float:
    timeout = only_text(_primary(registrations, extension_type).get("reconcileTimeout"))
    return parse_duration(timeout).total_seconds() if timeout else 0.0
