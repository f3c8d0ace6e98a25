"""Manifests to measure with: seeds, profiles and Shoots of realistic size (2 to 4 KB of JSON). Pure.

A *uniform* landscape has one kind of shoot that every seed takes. A *mixed* one has 200 classes of shoots in 20
regions, 5 of them without seeds. 30 % of its shoots have their distances from a region ConfigMap (the others by name),
20 % have networks of their own (which some seeds use themselves), and there are selectors, taints, zones and access
restrictions. A *weighted* one is mixed, for a profile with scores: besides, its seeds state cpu, each shoot requests
some of it in one of four sizes and prefers some seeds by their label, and a tenth of the shoots are in groups of ten
that are kept apart.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_requirements import RESOLVED

Mix = Literal["uniform", "mixed", "weighted"]

NAMESPACE = "garden-bench"
PROVIDER = "aws"
CREDENTIALS = "infrastructure-credentials"
AUDIT_POLICY, AUTHENTICATION = "audit-policy", "structured-authentication"
MAPPED = "aws-mapped"
"""The CloudProfile whose distances a ConfigMap holds."""

REGIONS = 20
REGIONS_WITH_SEEDS = 15
CLASSES = 200
RINGS = 10
SIZES = (1000, 2000, 4000, 8000)
"""Requests of shoots, in thousandths of a cpu."""

CPU = "1000000"
_GROUPED, _OF_A_GROUP = 10, 100
_CORE = "core.gardener.cloud/v1beta1"
_DAY = "2026-01-02T03:04:05Z"


def basics(mix: Mix) -> list[Document]:
    """The project, credentials, profiles and distances that all shoots need."""
    project: Document = {
        "apiVersion": _CORE,
        "kind": "Project",
        "metadata": {"name": "bench"},
        "spec": {
            "namespace": NAMESPACE,
            "tolerations": {
                "whitelist": [
                    {"key": key} for key in (*map(_taint, range(4)), *map(_taint_family, range(CLASSES // REGIONS)))
                ]
            },
        },
    }
    namespace: Document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    garden: Document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden"}}
    mapped = [_profile(MAPPED), _distances()] if mix != "uniform" else []
    named = [_named("Secret", CREDENTIALS), *(_named("ConfigMap", name) for name in (AUDIT_POLICY, AUTHENTICATION))]
    return [namespace, garden, project, *named, _credentials(), _profile(PROVIDER), *mapped]


def in_namespace(document: Document, namespace: str) -> Document:
    """An object of the project, or what makes it, as one of another project's namespace."""
    text = msgspec.json.encode(document).replace(NAMESPACE.encode(), namespace.encode())
    moved: Document = msgspec.json.decode(text)
    if moved["kind"] == "Project":
        moved["metadata"]["name"] = namespace.removeprefix("garden-")
    return moved


def _named(kind: str, name: str) -> Document:
    """An object that shoots, or their binding, name."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}}


def _credentials() -> Document:
    return {
        "apiVersion": "security.gardener.cloud/v1alpha1",
        "kind": "CredentialsBinding",
        "metadata": {"name": CREDENTIALS, "namespace": NAMESPACE},
        "provider": {"type": PROVIDER},
        "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": CREDENTIALS, "namespace": NAMESPACE},
    }


def _profile(name: str) -> Document:
    regions = [
        {"name": _region(number), "zones": [{"name": zone} for zone in _zones(number)]} for number in range(REGIONS)
    ]
    return {
        "apiVersion": _CORE,
        "kind": "CloudProfile",
        "metadata": {"name": name},
        "spec": {
            "type": PROVIDER,
            "kubernetes": {"versions": [{"version": "1.34.2"}]},
            "machineImages": [{"name": "gardenlinux", "versions": [{"version": "1877.4.0"}]}],
            "machineTypes": [{"name": "large", "cpu": "8", "gpu": "0", "memory": "32Gi"}],
            "volumeTypes": [{"name": "gp3", "class": "standard"}],
            "regions": regions,
        },
    }


def seed(number: int, mix: Mix, *, capacity: int | None = None, ready: bool = True) -> Document:
    """A Seed that has reported. In a mixed landscape every eighth is tainted, and a third support a restriction."""
    region = number % REGIONS_WITH_SEEDS if mix != "uniform" else 0
    spec: Document = {
        "provider": {"type": PROVIDER, "region": _region(region), "zones": _zones(region)},
        "networks": {"nodes": "10.240.0.0/16", "pods": "10.241.0.0/16", "services": "10.242.0.0/16"},
        "settings": {"scheduling": {"visible": True}},
    }
    if mix != "uniform":
        spec["networks"] = {
            "nodes": f"10.{200 + number % 50}.0.0/16",
            "pods": "172.16.0.0/16",
            "services": "172.17.0.0/16",
        }
        in_region = number // REGIONS_WITH_SEEDS
        if in_region % 8 == 7:  # noqa: PLR2004 - every eighth of a region
            spec["taints"] = [{"key": _taint(number % 4)}]
        if in_region % 3 == 0:
            spec["accessRestrictions"] = [{"name": "eu-access-only"}]
        if in_region % 4 == 1:
            spec["settings"]["zoneSelection"] = {"mode": "Prefer"}
    resources = {} if capacity is None else {"shoots": str(capacity)}
    if mix == "weighted":
        resources["cpu"] = CPU
    return {
        "apiVersion": _CORE,
        "kind": "Seed",
        "metadata": {"name": seed_name(number), "labels": {"ring": str(number % RINGS)}},
        "spec": spec,
        "status": {
            "conditions": [ready_condition(is_ready=ready)],
            "lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100, "lastUpdateTime": _DAY},
            "capacity": resources,
            "allocatable": resources,
        },
    }


def ready_condition(*, is_ready: bool) -> Document:
    """The condition with which a seed's gardenlet reports itself."""
    return {
        "type": "GardenletReady",
        "status": "True" if is_ready else "False",
        "reason": "GardenletReady",
        "message": "",
        "lastTransitionTime": _DAY,
        "lastUpdateTime": _DAY,
    }


def shoot(name: str, number: int, mix: Mix, *, impossible: bool = False) -> Document:
    """A pending Shoot of 2 to 4 KB. `number` picks its class; an impossible one requires labels that no seed has."""
    region = number % REGIONS if mix != "uniform" else 0
    spec: Document = {
        "cloudProfile": {"kind": "CloudProfile", "name": PROVIDER},
        "credentialsBindingName": CREDENTIALS,
        "purpose": "production",
        "region": _region(region),
        "schedulerName": "default-scheduler",
        "kubernetes": _kubernetes(),
        "maintenance": {
            "autoUpdate": {"kubernetesVersion": True, "machineImageVersion": True},
            "timeWindow": {"begin": "220000+0000", "end": "230000+0000"},
        },
        "networking": {"type": "cilium", "nodes": "10.0.0.0/16", "pods": "100.96.0.0/11", "services": "100.64.0.0/13"},
        "provider": {"type": PROVIDER, "workers": [_worker_pool(pool, _zones(region)) for pool in range(3)]},
    }
    if mix != "uniform":
        _vary(spec, number)
    if impossible:
        spec["seedSelector"] = {"matchLabels": {"ring": f"none-{number % CLASSES}"}}
    annotations = {"gardener.cloud/created-by": f"user-{number % 500}@example.org"}
    if mix == "weighted":
        annotations[RESOLVED] = msgspec.json.encode(_requirements(name, number)).decode()
    return {
        "apiVersion": _CORE,
        "kind": "Shoot",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"landscape": "bench", "team": f"team-{number % 50}"},
            "annotations": annotations,
        },
        "spec": spec,
    }


def groups_of(name: str, number: int, mix: Mix) -> Sequence[str]:
    """The groups that a shoot is a member of."""
    is_grouped = mix == "weighted" and number % _GROUPED == 0
    return [f"{name.rpartition('-')[0]}-{number // _OF_A_GROUP}"] if is_grouped else []


def _requirements(name: str, number: int) -> Document:
    """Requirements of a weighted shoot, as admission resolves them."""
    kind = number % CLASSES
    preferred = [{"weight": 80, "preference": {"matchLabels": {"ring": str(kind % RINGS)}}}]
    affinity: Document = {"seedAffinity": {"preferred": preferred}}
    groups = groups_of(name, number, "weighted")
    of_groups: Document = {}
    if groups:
        affinity["shootAntiAffinity"] = {"required": [{"group": groups[0], "topologyKey": "seed"}]}
        spread = {"group": groups[0], "topologyKey": "region", "whenUnsatisfiable": "ScheduleAnyway"}
        of_groups = {"groups": groups, "topologySpreadConstraints": [spread]}
    return {"affinity": affinity, "requests": {"cpu": SIZES[kind % len(SIZES)]}, **of_groups}


def _vary(spec: Document, number: int) -> None:
    """Make the shoot one of its class, and give some networks of their own."""
    kind = number % CLASSES
    tolerated = [_taint_family(kind // REGIONS)]  # no seed has this taint: it only distinguishes classes of one region
    if kind // REGIONS < 3:  # noqa: PLR2004 - 30 %
        spec["cloudProfile"]["name"] = MAPPED
    if kind % 3 == 0:
        spec["seedSelector"] = {"matchLabels": {"ring": str(kind % RINGS)}}
    if kind % 4 == 0:
        spec["accessRestrictions"] = [{"name": "eu-access-only"}]
    if kind % 7 == 0:
        tolerated.append(_taint(kind % 4))
    if kind % 11 == 0:
        spec["controlPlane"] = {"highAvailability": {"failureTolerance": {"type": "zone"}}}
    spec["tolerations"] = [{"key": key} for key in tolerated]
    if number // REGIONS % 5 == 0:
        spec["networking"] |= {"nodes": f"10.{number % 250}.0.0/16"}


def placed(name: str, number: int, seed_name: str, mix: Mix) -> Document:
    """The same Shoot, long since on a seed."""
    document = shoot(name, number, mix)
    document["spec"]["seedName"] = seed_name
    document["status"] = {
        "seedName": seed_name,
        "observedGeneration": 1,
        "technicalID": f"shoot--bench--{name}",
        "lastOperation": {
            "type": "Reconcile",
            "state": "Succeeded",
            "progress": 100,
            "description": "Shoot cluster has been successfully reconciled.",
            "lastUpdateTime": _DAY,
        },
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": _DAY, "lastUpdateTime": _DAY, "reason": "Healthy"}
            for kind in ("APIServerAvailable", "ControlPlaneHealthy", "EveryNodeReady", "SystemComponentsHealthy")
        ],
    }
    return document


def _distances() -> Document:
    """A ConfigMap with the distances between regions."""
    rows = {
        _region(one): "".join(
            f"{_region(other)}: {10 * abs(one - other)}\n" for other in range(REGIONS) if other != one
        )
        for one in range(REGIONS)
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "distances",
            "namespace": "garden",
            "labels": {"scheduling.gardener.cloud/purpose": "region-config"},
            "annotations": {"scheduling.gardener.cloud/cloudprofiles": MAPPED},
        },
        "data": rows,
    }


def _kubernetes() -> Document:
    return {
        "version": "1.34.2",
        "kubeAPIServer": {
            "requests": {"maxNonMutatingInflight": 400, "maxMutatingInflight": 200},
            "defaultNotReadyTolerationSeconds": 300,
            "defaultUnreachableTolerationSeconds": 300,
            "auditConfig": {"auditPolicy": {"configMapRef": {"name": AUDIT_POLICY}}},
            "structuredAuthentication": {"configMapName": AUTHENTICATION},
            "eventTTL": "1h0m0s",
        },
        "kubeControllerManager": {"nodeCIDRMaskSize": 24, "nodeMonitorGracePeriod": "40s"},
        "kubeScheduler": {"profile": "balanced"},
        "kubeProxy": {"enabled": False},
        "kubelet": {"failSwapOn": True, "maxPods": 110, "serializeImagePulls": False},
        "verticalPodAutoscaler": {"enabled": True, "updaterInterval": "1m0s", "recommenderInterval": "1m0s"},
    }


def _worker_pool(pool: int, zones: list[str]) -> Document:
    return {
        "name": f"pool-{pool}",
        "cri": {"name": "containerd"},
        "machine": {
            "type": "large",
            "architecture": "amd64",
            "image": {"name": "gardenlinux", "version": "1877.4.0"},
        },
        "minimum": 3,
        "maximum": 20,
        "maxSurge": 1,
        "maxUnavailable": 0,
        "volume": {"type": "gp3", "size": "50Gi"},
        "labels": {"worker.example.org/purpose": f"purpose-{pool}"},
        "taints": [{"key": "dedicated", "value": f"pool-{pool}", "effect": "NoSchedule"}] if pool else [],
        "kubernetes": {"kubelet": {"maxPods": 250}},
        "systemComponents": {"allow": pool == 0},
        "zones": zones,
    }


def _region(number: int) -> str:
    return f"region-{number:02}"


def _zones(number: int) -> list[str]:
    return [f"{_region(number)}{letter}" for letter in "abc"]


def _taint(number: int) -> str:
    return f"bench.example.org/dedicated-{number}"


def _taint_family(number: int) -> str:
    return f"bench.example.org/family-{number}"


def seed_name(number: int) -> str:
    """Name of the seed of a number."""
    return f"seed-{number:05}"


def names(prefix: str, count: int) -> Iterator[str]:
    """`count` names in order."""
    return (f"{prefix}-{number:07}" for number in range(count))
