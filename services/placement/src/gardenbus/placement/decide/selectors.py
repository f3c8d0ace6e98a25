"""Which objects a placement selects: of which kinds, where, and what is never handed on.

Source: KubeFleet's `pkg/utils/controller/resource_selector_resolver.go`.
"""

from typing import Any, NamedTuple

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


ANY = "*"


class Place(NamedTuple):
    """Where a selection looks; `ANY` in the place of a kind, a namespace or a name."""

    kind: str
    namespace: str
    name: str


def places_of(placement: Placement) -> frozenset[Place]:
    """All places where a change may change what a placement selects."""
    found: set[Place] = set()
    namespace = placement.metadata.namespace
    for selector in placement.spec.resource_selectors:
        found.add(Place(selector.kind.lower(), namespace, selector.name or ANY))
        if not placement.is_namespaced and with_content(selector):
            found.add(Place(ANY, selector.name or ANY, ANY))
    return frozenset(found)


def places_around(key: ObjectKey) -> tuple[Place, ...]:
    """The places that an object stands in, from its own to the widest."""
    kind, namespace, name = key
    own = (Place(kind, namespace, name), Place(kind, namespace, ANY))
    return (*own, Place(ANY, namespace, ANY), Place(ANY, ANY, ANY)) if namespace else own


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
