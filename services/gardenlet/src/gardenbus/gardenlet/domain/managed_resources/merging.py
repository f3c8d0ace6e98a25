"""Merging of a manifest into the object that the cluster has: what is kept of it, and what is put back.

The manifest wins, except for metadata that is the cluster's, `status`, labels and annotations that others have set, and
the fields of single kinds that controllers, or users by their annotations, own.

Source: Gardener's `pkg/resourcemanager/controller/managedresource/merger.go`.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from gardenbus.common.api.document import Document, section
from gardenbus.gardenlet.domain.managed_resources.names import (
    DESCRIPTION,
    DESCRIPTION_TEXT,
    ORIGIN,
    PRESERVE_REPLICAS,
    PRESERVE_RESOURCES,
    REFERENCE_PREFIX,
    annotations_of,
)
from gardenbus.gardenlet.domain.managed_resources.references import ResourceReference

_RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
_KEPT_OF_SERVICES = "loadbalancer.openstack.org"
_SCALED_RESOURCES = ("cpu", "memory")


class MergeOptions(NamedTuple):
    """Options of a merge. `before` is what the last pass has applied of the object."""

    origin: str
    before: ResourceReference | None = None
    force_labels: bool = False
    force_annotations: bool = False
    keeps_replicas: bool = False


def merged(live: Document | None, manifest: Document, options: MergeOptions) -> Document:
    """The object to write: `live` (None: there is none) with the manifest over it. Neither is changed."""
    old = copy.deepcopy(manifest if live is None else live)
    new = copy.deepcopy(manifest)
    metadata = section(old, "metadata")
    own, before = section(manifest, "metadata"), options.before
    new["metadata"] = metadata
    labels = (
        dict(section(own, "labels"))
        if options.force_labels
        else _merged_values(section(own, "labels"), section(metadata, "labels"), before.labels if before else {})
    )
    annotations = (
        dict(section(own, "annotations"))
        if options.force_annotations
        else _merged_values(
            section(own, "annotations"),
            _without_references(section(metadata, "annotations")),
            before.annotations if before else {},
        )
    )
    kept_annotations = section(old, "metadata", "annotations")
    _set(metadata, "labels", labels)
    _set(metadata, "annotations", {**annotations, DESCRIPTION: DESCRIPTION_TEXT, ORIGIN: options.origin})
    _set(metadata, "ownerReferences", copy.deepcopy(own.get("ownerReferences")))
    _set(new, "status", section(old, "status"))
    merge_kind = _BY_KIND.get((str(new.get("apiVersion")).rpartition("/")[0], str(new.get("kind"))))
    if merge_kind is not None:
        keeps = annotations_of(manifest)
        merge_kind(
            _Merge(
                old,
                new,
                kept_annotations,
                keeps_replicas=options.keeps_replicas or keeps.get(PRESERVE_REPLICAS) == "true",
                keeps_resources=keeps.get(PRESERVE_RESOURCES) == "true",
            )
        )
    return new


def without_description(manifest: Document) -> Document:
    """The object to create of a manifest that is ignored from then on."""
    created = copy.deepcopy(manifest)
    annotations_of(created).pop(DESCRIPTION, None)
    return created


def released(live: Document, origin: str) -> Document | None:
    """The merge patch that ends the management of an object; None where it has another origin by now."""
    if annotations_of(live).get(ORIGIN) != origin:
        return None
    return {"metadata": {"annotations": {ORIGIN: None, DESCRIPTION: None}}}


class _Merge(NamedTuple):
    """A merge of one kind: `old` as the cluster has it, `new` as it is to be."""

    old: Document
    new: Document
    old_annotations: Mapping[str, Any]
    keeps_replicas: bool = False
    keeps_resources: bool = False

    @property
    def old_spec(self) -> Document:
        return section(self.old, "spec")

    @property
    def new_spec(self) -> Document:
        spec: Document = self.new.setdefault("spec", {})
        return spec

    def keep_replicas(self) -> None:
        if self.keeps_replicas or self.new_spec.get("replicas") is None:
            _set(self.new_spec, "replicas", self.old_spec.get("replicas"), empty_is_absent=False)

    def merge_pods(self, *path: str) -> None:
        """Keep what a restart has set, and amounts that an autoscaler has set."""
        old, new = section(self.old, "spec", *path, "template"), section(self.new, "spec", *path, "template")
        restarted = annotations_of(old).get(_RESTARTED_AT)
        if restarted is not None and new:
            metadata: Document = new.setdefault("metadata", {})
            metadata["annotations"] = {**section(metadata, "annotations"), _RESTARTED_AT: restarted}
        if self.keeps_resources:
            _keep_amounts(old, new)


def _deployment(merge: _Merge) -> None:
    merge.keep_replicas()
    merge.merge_pods()


def _stateful_set(merge: _Merge) -> None:
    merge.keep_replicas()
    if section(merge.old, "metadata").get("creationTimestamp"):
        _set(merge.new_spec, "volumeClaimTemplates", merge.old_spec.get("volumeClaimTemplates"))
    merge.merge_pods()


def _job(merge: _Merge) -> None:
    _set(merge.new_spec, "selector", merge.old_spec.get("selector"))
    labels = section(merge.old_spec, "template", "metadata", "labels")
    template: Document = merge.new_spec.setdefault("template", {})
    metadata: Document = template.setdefault("metadata", {})
    _set(metadata, "labels", {**labels, **section(metadata, "labels")})
    merge.merge_pods()


def _service(merge: _Merge) -> None:
    old, new, metadata = merge.old_spec, merge.new_spec, section(merge.new, "metadata")
    kept = {name: value for name, value in merge.old_annotations.items() if name.startswith(_KEPT_OF_SERVICES)}
    _set(metadata, "annotations", {**kept, **section(metadata, "annotations")})
    old_type, new_type = old.get("type") or "ClusterIP", new.get("type") or "ClusterIP"
    if new_type == "ExternalName":
        return
    if new_type in ("LoadBalancer", "NodePort"):
        new["ports"] = [_with_node_port(each, _entries(old, "ports")) for each in _entries(new, "ports")]
        if not new.get("loadBalancerIP"):
            _set(new, "loadBalancerIP", old.get("loadBalancerIP"))
    if new.get("clusterIP") != "None" and old_type != "ExternalName":
        _set(new, "clusterIP", old.get("clusterIP"))
    is_local = all(each.get("externalTrafficPolicy") == "Local" for each in (old, new))
    if old_type == new_type == "LoadBalancer" and is_local and not new.get("healthCheckNodePort"):
        _set(new, "healthCheckNodePort", old.get("healthCheckNodePort"))


def _service_account(merge: _Merge) -> None:
    for field in ("secrets", "imagePullSecrets"):
        _set(merge.new, field, merge.old.get(field))


_BY_KIND: Mapping[tuple[str, str], Callable[[_Merge], None]] = {
    ("apps", "Deployment"): _deployment,
    ("extensions", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("extensions", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): lambda merge: merge.merge_pods(),
    ("batch", "Job"): _job,
    ("batch", "CronJob"): lambda merge: merge.merge_pods("jobTemplate", "spec"),
    ("", "Service"): _service,
    ("", "ServiceAccount"): _service_account,
}


def _with_node_port(port: Document, old_ports: list[Document]) -> Document:
    if port.get("nodePort"):
        return port
    same = [
        each
        for each in old_ports
        if each.get("port") == port.get("port") or (each.get("name") or "") == (port.get("name") or "")
    ]
    return {**port, "nodePort": same[-1]["nodePort"]} if same and same[-1].get("nodePort") else port


def _keep_amounts(old: Document, new: Document) -> None:
    before = {str(each.get("name")): each for each in reversed(_entries(section(old, "spec"), "containers"))}
    for container in _entries(section(new, "spec"), "containers"):
        for field in ("requests", "limits"):
            amounts = section(before.get(str(container.get("name")), {}), "resources", field)
            kept = {name: amounts[name] for name in _SCALED_RESOURCES if name in amounts}
            if kept:
                resources: Document = container.setdefault("resources", {})
                resources[field] = {**section(resources, field), **kept}


def _merged_values(wanted: Mapping[str, Any], live: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """`wanted` over `live`, without what was wanted before, is not wanted any more and nobody has changed."""
    gone = {name for name, value in before.items() if name not in wanted and live.get(name) == value}
    return {name: value for name, value in {**live, **wanted}.items() if name not in gone}


def _without_references(annotations: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in annotations.items() if not name.startswith(REFERENCE_PREFIX)}


def _entries(document: Document, field: str) -> list[Document]:
    found: Any = document.get(field)
    entries = cast("list[Any]", found) if isinstance(found, list) else []
    return [cast("Document", each) for each in entries if isinstance(each, dict)]


def _set(document: Document, field: str, value: Any, *, empty_is_absent: bool = True) -> None:
    """Set a field; None, and what is empty, removes it."""
    if value is None or (empty_is_absent and not value):
        document.pop(field, None)
    else:
        document[field] = value
