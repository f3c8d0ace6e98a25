"""Overrides: changes of what placements carry, cluster by cluster; their snapshots, and what each is about.

A ClusterResourceOverride changes cluster-scoped objects, and where it names a Namespace all that is in it. A
ResourceOverride changes objects of its own namespace.
Source: KubeFleet's `apis/placement/v1beta1/override_types.go` and `overridesnapshot_types.go`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.placements import KINDS, ClusterSelectorTerm
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.views import ObjectView, TypedView, mapping_or_empty

CLUSTER_OVERRIDE, OVERRIDE = "clusterresourceoverride", "resourceoverride"
OVERRIDE_KINDS = (CLUSTER_OVERRIDE, OVERRIDE)
CLUSTER_SNAPSHOT, SNAPSHOT = "clusterresourceoverridesnapshot", "resourceoverridesnapshot"
SNAPSHOT_KINDS = (CLUSTER_SNAPSHOT, SNAPSHOT)

OVERRIDE_LABEL = "kubernetes-fleet.io/parent-resource-override"
"""On a snapshot: the override's name."""
OVERRIDE_INDEX_LABEL = "kubernetes-fleet.io/override-index"

JSON_PATCH, DELETE = "JSONPatch", "Delete"
OPERATIONS = ("add", "remove", "replace")

CLUSTER_NAME_VARIABLE = "${MEMBER-CLUSTER-NAME}"
CLUSTER_LABEL_VARIABLE = "${MEMBER-CLUSTER-LABEL-KEY-"
"""Begins a variable that ends with `}`: the value of that label of the cluster."""

NAMESPACED = "Namespaced"


class PlacementReference(TypedView, frozen=True):
    """The only placement that an override is for."""

    name: str = ""
    """Name of the placement."""

    scope: str = "Cluster"
    """`Cluster` for a ClusterResourcePlacement, `Namespaced` for a ResourcePlacement of the override's namespace."""


class OverriddenResource(TypedView, frozen=True):
    """One object, by name."""

    group: str = ""
    """API group; "" is the core group."""

    version: str = ""
    """API version."""

    kind: str = ""
    """Kind."""

    name: str = ""
    """Name."""


class ClusterSelector(TypedView, frozen=True):
    """Terms on clusters, one of which must match; without any, all clusters match."""

    cluster_selector_terms: tuple[ClusterSelectorTerm, ...] = ()
    """Terms with a label selector each."""


class JsonPatchOverride(TypedView, frozen=True):
    """One operation of a JSON patch (RFC 6902)."""

    op: str = ""
    """`add`, `remove` or `replace`."""

    path: str = ""
    """JSON pointer."""

    value: Any = None
    """New value, in which variables are replaced; none for `remove`."""


class OverrideRule(TypedView, frozen=True):
    """Change for some clusters."""

    cluster_selector: ClusterSelector | None = None
    """Clusters; none without it, all for an empty one."""

    override_type: str = JSON_PATCH
    """`JSONPatch`, or `Delete`: the object is not brought to these clusters."""

    json_patch_overrides: tuple[JsonPatchOverride, ...] = ()
    """The patch."""


class OverridePolicy(TypedView, frozen=True):
    """Rules, in the order in which they act."""

    override_rules: tuple[OverrideRule, ...] = ()
    """At most twenty."""


class _OverrideSpec(TypedView, frozen=True):
    """Common part of the specs of both kinds of override."""

    placement: PlacementReference | None = None
    """The only placement that it is for; all without one."""

    policy: OverridePolicy = OverridePolicy()
    """Changes, and the clusters that they are for."""


class ClusterOverrideSpec(_OverrideSpec, frozen=True):
    """Spec of a ClusterResourceOverride."""

    cluster_resource_selectors: tuple[OverriddenResource, ...] = ()
    """Cluster-scoped objects; a Namespace takes along all that is in it."""


class NamespacedOverrideSpec(_OverrideSpec, frozen=True):
    """Spec of a ResourceOverride."""

    resource_selectors: tuple[OverriddenResource, ...] = ()
    """Objects of its namespace."""


class OverrideSpec(_OverrideSpec, frozen=True):
    """Spec of an override of either kind, in a snapshot."""

    cluster_resource_selectors: tuple[OverriddenResource, ...] = ()
    """Objects of a ClusterResourceOverride."""

    resource_selectors: tuple[OverriddenResource, ...] = ()
    """Objects of a ResourceOverride."""

    @property
    def selectors(self) -> tuple[OverriddenResource, ...]:
        """The objects, of either kind of override."""
        return self.cluster_resource_selectors + self.resource_selectors


class ClusterOverride(ObjectView, frozen=True):
    """A ClusterResourceOverride."""

    spec: ClusterOverrideSpec = ClusterOverrideSpec()


class NamespacedOverride(ObjectView, frozen=True):
    """A ResourceOverride."""

    spec: NamespacedOverrideSpec = NamespacedOverrideSpec()


class OverrideSnapshotSpec(TypedView, frozen=True):
    """An immutable override."""

    override_spec: OverrideSpec = OverrideSpec()
    """The override's spec as it stood."""

    override_hash: str = ""
    """Its SHA-256, base64."""


class OverrideSnapshot(ObjectView, frozen=True):
    """Snapshot of an override, of either kind."""

    spec: OverrideSnapshotSpec = OverrideSnapshotSpec()

    @property
    def is_namespaced(self) -> bool:
        """True for the snapshot of a ResourceOverride."""
        return bool(self.metadata.namespace)


class NamespacedName(TypedView, frozen=True, order=True):
    """Name of an object of a namespace."""

    namespace: str = ""
    """Its namespace."""

    name: str = ""
    """Its name."""


class ResourceId(NamedTuple):
    """An object that an override may be about; `namespace` is "" for one without."""

    group: str
    version: str
    kind: str
    namespace: str
    name: str


def resource_ids(resource: Mapping[str, Any]) -> tuple[ResourceId, ...]:
    """Identities by which a ClusterResourceOverride, and then a ResourceOverride (if any), can select a manifest."""
    metadata = mapping_or_empty(resource.get("metadata"))
    group, _, version = str(resource.get("apiVersion") or "").rpartition("/")
    namespace = str(metadata.get("namespace") or "")
    own = ResourceId(group, version, str(resource.get("kind") or ""), namespace, str(metadata.get("name") or ""))
    return (ResourceId("", "v1", "Namespace", "", namespace), own) if namespace else (own,)


def overridden_ids(snapshot: OverrideSnapshot) -> Sequence[ResourceId]:
    """The objects that an override is about."""
    return [
        ResourceId(each.group, each.version, each.kind, snapshot.metadata.namespace, each.name)
        for each in snapshot.spec.override_spec.selectors
    ]


def placement_of(override_namespace: str, reference: PlacementReference | None) -> ObjectKey | None:
    """The only placement that an override is for; None: it is for all."""
    if reference is None:
        return None
    if reference.scope == NAMESPACED:
        return ObjectKey(KINDS[1], override_namespace, reference.name)
    return ObjectKey(KINDS[0], "", reference.name)


def override_kind(namespace: str) -> str:
    """Kind of an override by its namespace, as in `ObjectKey.kind`."""
    return OVERRIDE if namespace else CLUSTER_OVERRIDE


def snapshot_kind(namespace: str) -> str:
    """Kind of an override's snapshot by its namespace, as in `ObjectKey.kind`."""
    return SNAPSHOT if namespace else CLUSTER_SNAPSHOT


def selectors_of(override: Document) -> list[Document]:
    """The selectors of an override's manifest as written; what is none is left out."""
    spec = section(override, "spec")
    field = "resourceSelectors" if str(override.get("kind")) == "ResourceOverride" else "clusterResourceSelectors"
    found: Any = spec.get(field)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]


def selector_claims(override: Document) -> tuple[str, ...]:
    """Claims of an override: a resource is changed by at most one of each kind."""
    namespace = str(section(override, "metadata").get("namespace") or "")
    names = [
        "/".join(str(each.get(part) or "") for part in ("group", "version", "kind", "name"))
        for each in selectors_of(override)
    ]
    return tuple(dict.fromkeys(f"override/{namespace}/{name}" for name in names if name.isprintable()))


def variables_in(value: Any) -> Iterator[str]:
    """The labels that variables in a value name. Raises ValueError where a variable has no end."""
    match value:
        case str():
            for part in value.split(CLUSTER_LABEL_VARIABLE)[1:]:
                label, end, _ = part.partition("}")
                if not end:
                    raise ValueError(f"the variable {CLUSTER_LABEL_VARIABLE}{part[:60]} has no closing }}")
                yield label
        case list():
            for each in cast("list[Any]", value):
                yield from variables_in(each)
        case dict():
            for each in (part for pair in cast("Document", value).items() for part in pair):
                yield from variables_in(each)
        case _:
            return


class AppliedOverrides(msgspec.Struct, frozen=True):
    """The override snapshots of a binding: those of ClusterResourceOverrides, and of ResourceOverrides."""

    cluster_scoped: tuple[str, ...] = ()
    """By name."""

    namespaced: tuple[NamespacedName, ...] = ()
    """By namespace and name."""

    def __bool__(self) -> bool:
        """True when there are any."""
        return bool(self.cluster_scoped or self.namespaced)
