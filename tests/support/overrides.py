"""Overrides, and snapshots of them, with good defaults."""

from typing import Any

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.overrides import OverrideSnapshot

API = "placement.kubernetes-fleet.io/v1beta1"
NAMESPACE: Document = {"group": "", "version": "v1", "kind": "Namespace", "name": "web"}
SETTINGS: Document = {"group": "", "version": "v1", "kind": "ConfigMap", "name": "settings"}


def to(path: str, value: Any, op: str = "replace") -> Document:
    """One operation."""
    return {"op": op, "path": path, "value": value}


def without(path: str) -> Document:
    return {"op": "remove", "path": path}


def for_clusters(*operations: Document, **labels: str) -> Document:
    """A rule that patches, for clusters with these labels; for all without any."""
    terms = [{"labelSelector": {"matchLabels": labels}}] if labels else []
    return {"clusterSelector": {"clusterSelectorTerms": terms}, "jsonPatchOverrides": list(operations)}


def nothing_for(**labels: str) -> Document:
    """A rule that keeps objects from clusters with these labels."""
    rule = for_clusters(**labels)
    return {"clusterSelector": rule["clusterSelector"], "overrideType": "Delete"}


def a_cro(*rules: Document, name: str = "all", selectors: Any = (NAMESPACE,), **spec: Any) -> Document:
    """A ClusterResourceOverride of the namespace `web` and what is in it."""
    stated = {"clusterResourceSelectors": list(selectors), "policy": {"overrideRules": list(rules)}, **spec}
    return {"apiVersion": API, "kind": "ClusterResourceOverride", "metadata": {"name": name}, "spec": stated}


def an_ro(
    *rules: Document, name: str = "one", namespace: str = "web", selectors: Any = (SETTINGS,), **spec: Any
) -> Document:
    """A ResourceOverride of the ConfigMap `settings`."""
    stated = {"resourceSelectors": list(selectors), "policy": {"overrideRules": list(rules)}, **spec}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": API, "kind": "ResourceOverride", "metadata": metadata, "spec": stated}


def snapshot(override: Document, index: int = 0) -> OverrideSnapshot:
    """What the service makes of one."""
    metadata = {**override["metadata"], "name": f"{override['metadata']['name']}-{index}"}
    return OverrideSnapshot.from_document({"metadata": metadata, "spec": {"overrideSpec": override["spec"]}})
