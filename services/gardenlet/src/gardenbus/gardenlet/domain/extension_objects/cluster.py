"""The Cluster of a shoot, and its namespace: what extensions read besides their objects.

Source: Gardener's `pkg/extensions/cluster.go` and `pkg/gardenlet/operation/botanist/namespaces.go`.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, section
from gardenbus.gardenlet.domain.extension_objects.kinds import API_VERSION
from gardenbus.gardenlet.domain.flows import OperationType
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_status import last_operation, technical_id

_decode = json_decoder(dict[str, Any])
CORE = "core.gardener.cloud/v1beta1"
CLOUD_PROVIDER = "cloudprovider"
"""Name of the Secret with a shoot's credentials, in its namespace."""

COPIED = ("gardenbus.io/copied-for", "spec.resources")
"""Label of the copies of what a shoot names."""


def cluster(shoot: Document, seed: Document, cloud_profile: Document, *, name: str) -> Document:
    """The Cluster, with whole manifests."""
    spec = {
        "shoot": _whole(shoot, "Shoot"),
        "seed": _whole(seed, "Seed"),
        "cloudProfile": _whole(cloud_profile, "CloudProfile"),
    }
    return {"apiVersion": API_VERSION, "kind": "Cluster", "metadata": {"name": name}, "spec": spec}


def shoot_of(observed: ObservedShoot, operation: OperationType, *, nodes: str, now: datetime) -> Document:
    """The Shoot for its Cluster, with the operation that runs. `nodes`: the network of its infrastructure."""
    shoot = _decode(observed.manifest)
    spec = section(shoot, "spec")
    if nodes and not section(spec, "networking").get("nodes"):
        spec = {**spec, "networking": {**section(spec, "networking"), "nodes": nodes}}
    kind = "Migrate" if operation == "Leave" else operation
    status = {
        **observed.status,
        "technicalID": technical_id(*observed.full_name),
        "uid": observed.uid,
        "lastOperation": last_operation(kind, "Processing", 0, f"{kind} of the shoot in progress.", now=now),
    }
    return {**shoot, "spec": spec, "status": status}


def merged_profile(profile: Document | None, namespaced: Document | None) -> Document:
    """The CloudProfile; of a NamespacedCloudProfile, its own with that spec."""
    if namespaced is not None:
        spec = section(namespaced, "status", "cloudProfileSpec")
        return {"metadata": section(namespaced, "metadata"), "spec": spec}
    return profile or {}


def is_current(live: Document | None, wanted: Document) -> bool:
    """True if a Cluster differs in nothing but the time and progress of the shoot's last operation."""
    return live is not None and _compared(live) == _compared(wanted)


def namespace(name: str, shoot: Document, seed: Document, extensions: Iterable[str]) -> Document:
    """The namespace of a shoot's control plane."""
    provider = section(shoot, "spec", "provider").get("type") or ""
    labels = {
        "gardener.cloud/role": "shoot",
        "seed.gardener.cloud/provider": section(seed, "spec", "provider").get("type") or "",
        "shoot.gardener.cloud/provider": provider,
        "networking.shoot.gardener.cloud/provider": section(shoot, "spec", "networking").get("type") or "",
        "backup.gardener.cloud/provider": section(seed, "spec", "backup").get("provider")
        or section(seed, "spec", "provider").get("type")
        or "",
        **{f"extensions.gardener.cloud/{each}": "true" for each in extensions},
    }
    annotations = {"shoot.gardener.cloud/uid": section(shoot, "status").get("uid") or ""}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def cloud_provider_secret(namespace_name: str, credentials: Document) -> Document:
    """The copy of a shoot's credentials that extensions use."""
    labels = {"gardener.cloud/purpose": CLOUD_PROVIDER}
    return _opaque({"name": CLOUD_PROVIDER, "namespace": namespace_name, "labels": labels}, credentials)


def dns_secret(namespace_name: str, name: str, credentials: Document) -> Document:
    """The copy of the credentials for a DNSRecord."""
    return _opaque({"name": name, "namespace": namespace_name}, credentials)


def referenced_copy(namespace_name: str, original: Document) -> Document:
    """The copy of a Secret or ConfigMap that a shoot's `spec.resources` names; it can be changed, whatever that one."""
    name = f"ref-{section(original, 'metadata').get('name')}"
    kept = {field: original[field] for field in ("kind", "type", "data", "binaryData") if original.get(field)}
    metadata = {"name": name, "namespace": namespace_name, "labels": dict([COPIED])}
    return {"apiVersion": "v1", **kept, "metadata": metadata}


def _opaque(metadata: Document, credentials: Document) -> Document:
    data = dict(section(credentials, "data"))
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}


_KEPT_STATUS = ("technicalID", "uid", "hibernated", "seedName", "clusterIdentity", "networking")


def _whole(manifest: Document, kind: str) -> Document:
    metadata = {name: value for name, value in section(manifest, "metadata").items() if name != "managedFields"}
    return {**manifest, "apiVersion": CORE, "kind": kind, "metadata": metadata}


def _compared(document: Document) -> Document:
    spec = section(document, "spec")
    return {name: _lasting(section(spec, name)) for name in ("shoot", "seed", "cloudProfile")}


def _lasting(manifest: Document) -> Document:
    """A manifest without what changes while nothing happens: extensions cache Clusters, and each is large."""
    metadata = {name: value for name, value in section(manifest, "metadata").items() if name != "resourceVersion"}
    status = section(manifest, "status")
    last = section(status, "lastOperation")
    kept = {name: status.get(name) for name in _KEPT_STATUS}
    operation = {field: last.get(field) for field in ("type", "state")}
    return {**manifest, "metadata": metadata, "status": {**kept, "lastOperation": operation}}
