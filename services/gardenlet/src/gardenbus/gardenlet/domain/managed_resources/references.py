"""References to objects of a ManagedResource, as its status lists them, and which of them mean the same object.

Source: Gardener's `pkg/resourcemanager/controller/managedresource/{objectindex,equivalences}.go`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from gardenbus.common.api.document import Document, section

ObjectIdentity = tuple[str, str, str, str]
"""Group, kind, namespace and name of an object: what it is in whatever version."""

GroupKind = tuple[str, str]

_DEFAULT_NAMESPACE = "default"
_MOVED = (
    *((kind, "apps") for kind in ("Deployment", "DaemonSet", "ReplicaSet", "StatefulSet")),
    *((kind, "networking.k8s.io") for kind in ("Ingress", "NetworkPolicy")),
)
"""Kinds that were in the group `extensions` first, with the group that they are in."""


class ResourceReference(NamedTuple):
    """An object of a ManagedResource, with what its manifest had as labels and annotations."""

    api_version: str
    kind: str
    namespace: str
    name: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}

    @property
    def group(self) -> str:
        """Group of its kind; "" for the core."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """Version of its kind."""
        return self.api_version.rpartition("/")[2]

    @property
    def identity(self) -> ObjectIdentity:
        """Identity of the object, in whatever version."""
        return (self.group, self.kind, self._shown_namespace, self.name)

    @property
    def text(self) -> str:
        """`apps/v1/Deployment/garden/web`, as messages name it."""
        return f"{self.api_version}/{self.kind}/{self._shown_namespace}/{self.name}"

    @property
    def document(self) -> Document:
        """The form in status.resources."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            **({"namespace": self.namespace} if self.namespace else {}),
            **({"labels": dict(self.labels)} if self.labels else {}),
            **({"annotations": dict(self.annotations)} if self.annotations else {}),
        }

    @property
    def _shown_namespace(self) -> str:
        return self.namespace or ("" if self.kind == "Namespace" else _DEFAULT_NAMESPACE)


def reference_of(document: Document, labels: Mapping[str, str] = {}) -> ResourceReference:
    """Reference to the object of a manifest, with `labels` over those that it has."""
    metadata = section(document, "metadata")
    return ResourceReference(
        str(document.get("apiVersion") or ""),
        str(document.get("kind") or ""),
        str(metadata.get("namespace") or ""),
        str(metadata.get("name") or ""),
        {**section(metadata, "labels"), **labels},
        section(metadata, "annotations"),
    )


def listed_references(managed_resource: Document) -> list[ResourceReference]:
    """References in status.resources of a ManagedResource."""
    found: Any = section(managed_resource, "status").get("resources")
    entries = cast("list[Any]", found) if isinstance(found, list) else []
    return [_listed(cast("Document", each)) for each in entries if isinstance(each, dict)]


def _listed(entry: Document) -> ResourceReference:
    return ResourceReference(
        str(entry.get("apiVersion") or ""),
        str(entry.get("kind") or ""),
        str(entry.get("namespace") or ""),
        str(entry.get("name") or ""),
        section(entry, "labels"),
        section(entry, "annotations"),
    )


def in_status_order(references: Iterable[ResourceReference]) -> list[ResourceReference]:
    """References in the order of status.resources: by group, kind, namespace and name."""
    return sorted(references, key=lambda each: "/".join(each.identity))


class Equivalences:
    """Kinds that mean the same objects: those that Kubernetes has moved between groups, and `spec.equivalences`."""

    def __init__(self, managed_resource: Document) -> None:
        self._sets: dict[GroupKind, set[GroupKind]] = {}
        for kind, group in _MOVED:
            self._add([("extensions", kind), (group, kind)])
        lists: Any = section(managed_resource, "spec").get("equivalences")
        for entries in cast("list[Any]", lists) if isinstance(lists, list) else []:
            found = cast("list[Any]", entries) if isinstance(entries, list) else []
            kinds = [cast("Document", each) for each in found if isinstance(each, dict)]
            self._add([(str(each.get("group") or ""), str(each.get("kind") or "")) for each in kinds])

    def of(self, group: str, kind: str) -> frozenset[GroupKind]:
        """All that means the same as a kind, itself among them; empty where nothing else does."""
        return frozenset(self._sets.get((group, kind), ()))

    def _add(self, kinds: list[GroupKind]) -> None:
        same = next((self._sets[each] for each in kinds if each in self._sets), set[GroupKind]())
        for each in kinds:
            same.add(each)
            self._sets[each] = same


class ResourceIndex:
    """References of the last pass, of which the manifests of this one are found again; the rest is to be removed."""

    def __init__(self, references: Iterable[ResourceReference], equivalences: Equivalences | None = None) -> None:
        self._references = {each.identity: each for each in references}
        self._equivalences = equivalences
        self._found: set[ObjectIdentity] = set()

    def find(self, reference: ResourceReference) -> ResourceReference | None:
        """The reference that means the same object, which is then not to be removed."""
        group, kind, namespace, name = reference.identity
        same = self._equivalences.of(group, kind) if self._equivalences is not None else frozenset[GroupKind]()
        for each_group, each_kind in ((group, kind), *sorted(same - {(group, kind)})):
            identity = (each_group, each_kind, namespace, name)
            if identity in self._references:
                self._found.add(identity)
                return self._references[identity]
        return None

    def surplus(self) -> list[ResourceReference]:
        """References that were not found: their objects are in no Secret any more."""
        return [each for identity, each in self._references.items() if identity not in self._found]
