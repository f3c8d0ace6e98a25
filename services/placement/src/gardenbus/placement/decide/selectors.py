"""Which objects a placement selects: of which kinds, where, and what is never handed on.

Source: KubeFleet's `pkg/utils/controller/resource_selector_resolver.go`.
"""

from typing import Any

from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.kinds import CLUSTER, COORDINATION, PLACEMENT
from gardenbus.common.resources.placements import Placement, ResourceSelector
from gardenbus.common.resources.selectors import parse_selector

NAMESPACE = "Namespace"
NAMESPACE_ONLY = "NamespaceOnly"

_NEVER_GROUPS = (PLACEMENT, CLUSTER, "events.k8s.io", COORDINATION, "discovery.k8s.io")
_NEVER_KINDS = ("Event", "Pod", "Node", "Endpoints", "ControllerRevision")
_NEVER_NAMES = (("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default"))


class Wanted:
    """What a placement selects, in the store's terms."""

    def __init__(self, placement: Placement) -> None:
        self.selectors = placement.spec.resource_selectors
        self.namespace = placement.metadata.namespace
        self.is_namespaced = placement.is_namespaced

    def touches(self, key: ObjectKey) -> bool:
        """Whether a change of this object may change the selection, as far as its key tells."""
        for selector in self.selectors:
            if selector.kind.lower() == key.kind and key.namespace == self.namespace:
                name = key.name
            elif not self.is_namespaced and with_content(selector) and key.namespace:
                name = key.namespace
            else:
                continue
            if selector.name in ("", name):
                return True
        return False

    def subjects(self) -> frozenset[tuple[str, str]]:
        """The kinds and namespaces to follow; "*" for all kinds, "_" for what has no namespace, ">" for all."""
        found: set[tuple[str, str]] = set()
        for selector in self.selectors:
            found.add((selector.kind.lower(), self.namespace or "_"))
            if not self.is_namespaced and with_content(selector):
                found.add(("*", selector.name or ">"))
        return frozenset(found)


def with_content(selector: ResourceSelector) -> bool:
    """Whether a selector takes namespaces with all that is in them."""
    return (selector.group, selector.kind) == ("", NAMESPACE) and selector.selection_scope != NAMESPACE_ONLY


def matches(selector: ResourceSelector, resource: Document) -> bool:
    """Whether a selector finds an object of its kind. Raises ValueError when its label selector is none."""
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


def is_handed_on(resource: Document) -> bool:
    """Whether an object may go to clusters at all."""
    metadata: dict[str, Any] = section(resource, "metadata")
    group, kind = str(resource.get("apiVersion") or "").rpartition("/")[0], str(resource.get("kind"))
    if group in _NEVER_GROUPS or (not group and kind in _NEVER_KINDS) or kind == "ControllerRevision":
        return False
    if (kind, metadata.get("name")) in _NEVER_NAMES or metadata.get("deletionTimestamp"):
        return False
    return not (kind == "Secret" and resource.get("type") == "kubernetes.io/service-account-token")


def belongs_to_content(resource: Document) -> bool:
    """Whether an object goes along with its namespace: what runs a landscape of Gardener stays here."""
    return not str(resource.get("apiVersion") or "").rpartition("/")[0].endswith("gardener.cloud")
