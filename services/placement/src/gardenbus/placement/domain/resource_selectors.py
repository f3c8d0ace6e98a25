"""Resources that a placement selects: kinds, scopes to watch, and resources that are never propagated.

Source: KubeFleet's `pkg/utils/controller/resource_selector_resolver.go`.
"""

from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.envelopes import is_envelope
from gardenbus.common.api.fleet.placements import Placement, ResourceSelector
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.kinds import CLUSTER, COORDINATION, PLACEMENT
from gardenbus.common.api.selectors import parse_selector

NAMESPACE = "Namespace"
NAMESPACE_ONLY = "NamespaceOnly"

_NEVER_GROUPS = (PLACEMENT, CLUSTER, "events.k8s.io", COORDINATION, "discovery.k8s.io")
_NEVER_KINDS = ("Event", "Pod", "Node", "Endpoints", "ControllerRevision")
_NEVER_NAMES = (("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default"))


ANY = "*"


class WatchScope(NamedTuple):
    """A set of objects to watch; `ANY` in the place of a kind, a namespace or a name."""

    kind: str
    namespace: str
    name: str


def watch_scopes(placement: Placement) -> frozenset[WatchScope]:
    """Return all scopes where a change may change what a placement selects."""
    found: set[WatchScope] = set()
    namespace = placement.metadata.namespace
    for selector in placement.spec.resource_selectors:
        found.add(WatchScope(selector.kind.lower(), namespace, selector.name or ANY))
        if not placement.is_namespaced and includes_content(selector):
            found.add(WatchScope(ANY, selector.name or ANY, ANY))
    return frozenset(found)


def scopes_around(key: ObjectKey) -> tuple[WatchScope, ...]:
    """Return the scopes that contain an object, from its own to the widest."""
    kind, namespace, name = key
    own = (WatchScope(kind, namespace, name), WatchScope(kind, namespace, ANY))
    return (*own, WatchScope(ANY, namespace, ANY), WatchScope(ANY, ANY, ANY)) if namespace else own


def includes_content(selector: ResourceSelector) -> bool:
    """Report whether a selector covers namespaces with all their content."""
    return (selector.group, selector.kind) == ("", NAMESPACE) and selector.selection_scope != NAMESPACE_ONLY


def matches(selector: ResourceSelector, resource: Document) -> bool:
    """Report whether a selector matches an object of its kind. Raises ValueError for an invalid label selector."""
    group = str(resource.get("apiVersion") or "").rpartition("/")[0]
    metadata = section(resource, "metadata")
    if group != selector.group or resource.get("kind") != selector.kind:
        return False
    if selector.name and selector.name != metadata.get("name"):
        return False
    if selector.label_selector is None:
        return True
    labels: dict[str, str] = section(metadata, "labels")
    return parse_selector(selector.label_selector).matches(labels)


def is_propagated(resource: Document) -> bool:
    """Report whether an object may be propagated to clusters at all."""
    metadata: dict[str, Any] = section(resource, "metadata")
    group, kind = str(resource.get("apiVersion") or "").rpartition("/")[0], str(resource.get("kind"))
    if is_envelope(resource):
        return not metadata.get("deletionTimestamp")
    if group in _NEVER_GROUPS or (not group and kind in _NEVER_KINDS) or kind == "ControllerRevision":
        return False
    if (kind, metadata.get("name")) in _NEVER_NAMES or metadata.get("deletionTimestamp"):
        return False
    return not (kind == "Secret" and resource.get("type") == "kubernetes.io/service-account-token")


def belongs_to_content(resource: Document) -> bool:
    """Report whether an object is propagated with its namespace; Gardener's own objects are not."""
    return not str(resource.get("apiVersion") or "").rpartition("/")[0].endswith("gardener.cloud")
