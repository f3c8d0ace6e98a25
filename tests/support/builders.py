"""Manifests with good defaults, for tests: say only what a test is about.

Every builder takes `name` (and `namespace` where the kind has one) and any top-level field of the manifest
(`metadata`, `spec`, `status`, `data`); what is given is merged deep into the defaults (mappings key by key, anything
else replaced; None takes a field away).
"""

from collections.abc import Mapping
from typing import Any

from gardenbus.common.api.document import Document, canonical
from gardenbus.common.api.garden.scheduling_requirements import RESOLVED

NOW = "2026-01-02T03:04:05Z"
CORE = "core.gardener.cloud/v1beta1"


def merged(default: Mapping[str, Any], changes: Mapping[str, Any]) -> Document:
    """A copy of `default` with `changes` merged in; None removes."""
    result: Document = dict(default)
    for field, value in changes.items():
        old = result.get(field)
        if value is None:
            result.pop(field, None)
        elif isinstance(value, Mapping) and isinstance(old, Mapping):
            result[field] = merged(old, value)  # pyright: ignore[reportUnknownArgumentType]
        else:
            result[field] = value
    return result


def a_condition(kind: str, status: str = "True", **changes: Any) -> Document:
    """One condition as Gardener writes them."""
    return {
        "type": kind,
        "status": status,
        "reason": "Tested",
        "message": "All is well.",
        "lastTransitionTime": NOW,
        "lastUpdateTime": NOW,
        **changes,
    }


def a_seed(
    name: str = "aws-eu1", *, ready: bool = True, shoots: str | float | None = "250", **changes: Any
) -> Document:
    """A visible seed of provider `aws` in `eu-west-1` with three zones; `shoots`: allocatable (None: no limit)."""
    resources = {} if shoots is None else {"shoots": shoots}
    status: Document = {
        "conditions": [a_condition("GardenletReady")],
        "lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100, "lastUpdateTime": NOW},
        "capacity": resources,
        "allocatable": resources,
    }
    seed: Document = {
        "apiVersion": CORE,
        "kind": "Seed",
        "metadata": {"name": name},
        "spec": {
            "provider": {
                "type": "aws",
                "region": "eu-west-1",
                "zones": ["eu-west-1a", "eu-west-1b", "eu-west-1c"],
            },
            "networks": {"nodes": "10.240.0.0/16", "pods": "10.241.0.0/16", "services": "10.242.0.0/16"},
            "settings": {"scheduling": {"visible": True}},
        },
    }
    return merged(seed | ({"status": status} if ready else {}), changes)


def a_shoot(name: str = "apollo", namespace: str = "garden-dev", **changes: Any) -> Document:
    """A shoot that waits for a seed: provider `aws` in `eu-west-1`, profile `aws`, one worker pool."""
    shoot: Document = {
        "apiVersion": CORE,
        "kind": "Shoot",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "cloudProfile": {"kind": "CloudProfile", "name": "aws"},
            "purpose": "evaluation",
            "region": "eu-west-1",
            "kubernetes": {"version": "1.34.1"},
            "provider": {
                "type": "aws",
                "workers": [
                    {
                        "name": "pool-a",
                        "machine": {"type": "m5.large"},
                        "minimum": 1,
                        "maximum": 3,
                        "zones": ["eu-west-1a"],
                    }
                ],
            },
            "networking": {
                "type": "calico",
                "nodes": "10.0.0.0/16",
                "pods": "100.96.0.0/11",
                "services": "100.64.0.0/13",
            },
        },
    }
    return merged(shoot, changes)


def a_cloudprofile(name: str = "aws", **changes: Any) -> Document:
    """A CloudProfile of type `aws` with all that `a_shoot` names, and for any region."""
    profile: Document = {
        "apiVersion": CORE,
        "kind": "CloudProfile",
        "metadata": {"name": name},
        "spec": {
            "type": "aws",
            "kubernetes": {"versions": [{"version": "1.34.1"}]},
            "machineImages": [{"name": "gardenlinux", "versions": [{"version": "1592.3.0"}]}],
            "machineTypes": [{"name": "m5.large", "cpu": "2", "gpu": "0", "memory": "8Gi"}],
        },
    }
    return merged(profile, changes)


def a_namespaced_cloudprofile(name: str = "own", namespace: str = "garden-dev", **changes: Any) -> Document:
    """A NamespacedCloudProfile below the profile `aws`, with the merged profile in its status."""
    profile: Document = {
        "apiVersion": CORE,
        "kind": "NamespacedCloudProfile",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"parent": {"kind": "CloudProfile", "name": "aws"}},
        "status": {"cloudProfileSpec": a_cloudprofile()["spec"], "observedGeneration": 1},
    }
    return merged(profile, changes)


def a_project(name: str = "dev", namespace: str | None = None, **changes: Any) -> Document:
    """A Project with the namespace `garden-<name>` unless another is given."""
    project: Document = {
        "apiVersion": CORE,
        "kind": "Project",
        "metadata": {"name": name},
        "spec": {"namespace": namespace or f"garden-{name}"},
        "status": {"phase": "Ready"},
    }
    return merged(project, changes)


def a_region_configmap(
    name: str = "regions-aws",
    cloudprofiles: str = "aws",
    data: Mapping[str, str] | None = None,
    **changes: Any,
) -> Document:
    """A region ConfigMap for the profiles named (comma list); `data` is region → YAML map of distances."""
    configmap: Document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": "garden",
            "labels": {"scheduling.gardener.cloud/purpose": "region-config"},
            "annotations": {"scheduling.gardener.cloud/cloudprofiles": cloudprofiles},
        },
        "data": dict(data if data is not None else {"eu-west-1": "eu-central-1: 50\nus-east-1: 200\n"}),
    }
    return merged(configmap, changes)


def a_managed_seed(name: str = "aws-eu1", shoot: str | None = None, **changes: Any) -> Document:
    """The ManagedSeed, in the namespace garden, that makes a shoot there (of its own name by default) a seed."""
    managed_seed: Document = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {"name": name, "namespace": "garden"},
        "spec": {"shoot": {"name": shoot or name}, "gardenlet": {}},
    }
    return merged(managed_seed, changes)


def resolved_as(requirements: Document) -> Document:
    """Changes that give a shoot resolved requirements."""
    return {"annotations": {RESOLVED: canonical(requirements).decode()}}


def a_requesting_shoot(name: str, requests: Mapping[str, int], **changes: Any) -> Document:
    """A shoot that requests amounts of resources, as admission resolves it."""
    return merged(a_shoot(name, **changes), {"metadata": resolved_as({"requests": dict(requests)})})


def a_shoot_state(name: str = "apollo", namespace: str = "garden-dev", **changes: Any) -> Document:
    """The state that a source seed saves of the shoot of the same name."""
    state: Document = {
        "apiVersion": CORE,
        "kind": "ShootState",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"gardener": [{"name": "ca", "type": "secret", "data": {}}]},
    }
    return merged(state, changes)


def a_gardenlet_configuration(seed: str = "seed-a", shoots: int = 2) -> Document:
    """The configuration of a gardenlet with room for so many shoots, whose backend takes hardly any time."""
    return {
        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
        "kind": "GardenletConfiguration",
        "resources": {"capacity": {"shoots": shoots}},
        "backend": {"type": "local", "stepSeconds": 0.02},
        "seedConfig": {
            "metadata": {"name": seed},
            "spec": {"provider": {"type": "aws", "region": "eu-west-1", "zones": ["eu-west-1a"]}},
        },
    }
