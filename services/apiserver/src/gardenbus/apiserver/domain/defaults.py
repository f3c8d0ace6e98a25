"""Defaults of each kind that follow from the manifest alone. Manifests are copied along the path that changes."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from gardenbus.common.api.document import SEED_LABEL_PREFIX, Document, section
from gardenbus.common.api.fleet.placements import PICK_ALL
from gardenbus.common.api.garden.managed_seeds import GARDENLET_API_VERSION, GARDENLET_KIND
from gardenbus.common.api.index_keys import DEFAULT_SCHEDULER_NAME
from gardenbus.common.api.keys import GARDEN_NAMESPACE

SHOOTS_OF_A_MANAGED_SEED = 250
"""Capacity for shoots of a ManagedSeed that states none. Source: Gardener's `defaults_managedseed.go`."""
REVISIONS_KEPT = 10
"""Source: Gardener's `defaults_managedseedset.go`; KubeFleet keeps as many of a placement."""
HEARTBEAT_SECONDS = 60
"""Between heartbeats of a member cluster. Source: KubeFleet's `apis/cluster/v1beta1`."""

_OF_SHOOTS: Mapping[str, Any] = {"schedulerName": DEFAULT_SCHEDULER_NAME, "purpose": "evaluation"}

_OF_GARDENLETS: Mapping[str, Any] = {
    "bootstrap": "BootstrapToken",
    "mergeWithParent": True,
    "config.apiVersion": GARDENLET_API_VERSION,
    "config.kind": GARDENLET_KIND,
    "config.resources.capacity.shoots": SHOOTS_OF_A_MANAGED_SEED,
}
_OF_SETS: Mapping[str, Any] = {
    "replicas": 1,
    "revisionHistoryLimit": REVISIONS_KEPT,
    "updateStrategy.type": "RollingUpdate",
}
_OF_TAINTS: Mapping[str, Any] = {"effect": "NoSchedule"}
_OF_CONSTRAINTS: Mapping[str, Any] = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
_OF_TOLERATIONS: Mapping[str, Any] = {"operator": "Equal"}
_OF_ROLLING_UPDATES: Mapping[str, Any] = {"maxUnavailable": "25%", "maxSurge": "25%", "unavailablePeriodSeconds": 60}
"""Source: KubeFleet's `pkg/utils/defaulter`."""


def with_defaults(document: Document) -> Document:
    """The manifest with the defaults of its kind filled in; whatever is stated, of whatever type, stays."""
    fill = _DEFAULTS.get(str(document.get("kind")))
    return fill(document) if fill else document


def with_creation_defaults(document: Document) -> Document:
    """The manifest of a new object with what only new ones get: a Shoot with workers its vertical pod autoscaler.

    That is so in the garden namespace alone, whose shoots may become seeds: nothing here reads it of other shoots.
    """
    if document.get("kind") != "Shoot" or section(document, "metadata").get("namespace") != GARDEN_NAMESPACE:
        return document
    return with_autoscaler(document)


def with_autoscaler(shoot: Document) -> Document:
    """A shoot with its vertical pod autoscaler, unless it says otherwise or has no workers.

    Source: Gardener's admission plugin ShootVPAEnabledByDefault.
    """
    workers = section(shoot, "spec", "provider").get("workers")
    if not (isinstance(workers, list) and workers):
        return shoot
    return with_default(shoot, ("spec", "kubernetes", "verticalPodAutoscaler", "enabled"), value=True)


def with_default(document: Document, path: tuple[str, ...], value: Any) -> Document:
    """The manifest with a value at a path, unless one is there already or the way is blocked by something else."""
    field, below = path[0], path[1:]
    here = document.get(field)
    if not below:
        return document if here not in (None, "") else {**document, field: value}
    if here is not None and not isinstance(here, dict):
        return document
    old = section(document, field)
    new = with_default(old, below, value)
    return document if new is old else {**document, field: new}


def _shoot(shoot: Document) -> Document:
    spec: Any = shoot.get("spec")
    if not isinstance(spec, dict):
        return shoot
    stated = cast("Document", spec)
    filled = {name: value for name, value in _OF_SHOOTS.items() if stated.get(name) in (None, "")}
    networking: Any = stated.get("networking")
    if isinstance(networking, dict) and cast("Document", networking).get("ipFamilies") in (None, "", []):
        filled["networking"] = {**networking, "ipFamilies": ["IPv4"]}
    return {**shoot, "spec": {**stated, **filled}} if filled else shoot


def _seed(seed: Document) -> Document:
    """A Seed has its own name for a label, by which selectors may name it. Source: Gardener's plugin SeedMutator."""
    metadata = section(seed, "metadata")
    labels = metadata.get("labels")
    if labels is None or isinstance(labels, dict):
        own = {f"{SEED_LABEL_PREFIX}{metadata.get('name')}": "true"}
        others = {name: value for name, value in section(metadata, "labels").items() if not _names_a_seed(name)}
        seed = {**seed, "metadata": {**metadata, "labels": {**others, **own}}}
    return with_default(seed, ("spec", "settings", "scheduling", "visible"), value=True)


def _names_a_seed(label: object) -> bool:
    return isinstance(label, str) and label.startswith(SEED_LABEL_PREFIX)


def _project(project: Document) -> Document:
    name = str(section(project, "metadata").get("name") or "")
    namespace = name if name == GARDEN_NAMESPACE else f"{GARDEN_NAMESPACE}-{name}"
    return with_default(project, ("spec", "namespace"), namespace)


def _managed_seed(managed_seed: Document) -> Document:
    if not isinstance(section(managed_seed, "spec").get("gardenlet"), dict):
        return managed_seed
    return _with_values(managed_seed, "spec.gardenlet.", _OF_GARDENLETS)


def _managed_seed_set(managed_seed_set: Document) -> Document:
    managed_seed_set = _with_values(managed_seed_set, "spec.", _OF_SETS)
    if isinstance(section(managed_seed_set, "spec", "updateStrategy").get("rollingUpdate"), dict):
        return with_default(managed_seed_set, ("spec", "updateStrategy", "rollingUpdate", "partition"), 0)
    return managed_seed_set


def _seed_autoscaler(autoscaler: Document) -> Document:
    return with_default(autoscaler, ("spec", "minReplicas"), 1)


def _member_cluster(cluster: Document) -> Document:
    cluster = with_default(cluster, ("spec", "heartbeatPeriodSeconds"), HEARTBEAT_SECONDS)
    return _with_entries(cluster, ("spec", "taints"), _OF_TAINTS)


def _placement(placement: Document) -> Document:
    """Complete a stated policy; a placement without one stays without, which is PickAll."""
    spec = section(placement, "spec")
    if not spec:
        return placement
    if isinstance(spec.get("policy"), dict):
        placement = with_default(placement, ("spec", "policy", "placementType"), PICK_ALL)
        placement = _with_entries(placement, ("spec", "policy", "topologySpreadConstraints"), _OF_CONSTRAINTS)
        placement = _with_entries(placement, ("spec", "policy", "tolerations"), _OF_TOLERATIONS)
    placement = with_default(placement, ("spec", "strategy", "type"), "RollingUpdate")
    if section(placement, "spec", "strategy").get("type") == "RollingUpdate":
        placement = _with_values(placement, "spec.strategy.rollingUpdate.", _OF_ROLLING_UPDATES)
    return with_default(placement, ("spec", "revisionHistoryLimit"), REVISIONS_KEPT)


def _with_values(document: Document, below: str, values: Mapping[str, Any]) -> Document:
    """The manifest with values at paths below a path, where nothing is."""
    for path, value in values.items():
        document = with_default(document, tuple(f"{below}{path}".split(".")), value)
    return document


def _with_entries(document: Document, path: tuple[str, ...], values: Mapping[str, Any]) -> Document:
    """The manifest with values in each mapping of the list at a path, where fields are missing."""
    listed: Any = section(document, *path[:-1]).get(path[-1])
    if not isinstance(listed, list):
        return document
    entries = cast("list[Any]", listed)
    filled: list[Any] = [
        _completed(cast("Document", entry), values) if isinstance(entry, dict) else entry for entry in entries
    ]
    if all(new is old for new, old in zip(filled, entries, strict=True)):
        return document
    return _with_value(document, path, filled)


def _completed(entry: Document, values: Mapping[str, Any]) -> Document:
    missing = {name: value for name, value in values.items() if entry.get(name) in (None, "")}
    return {**entry, **missing} if missing else entry


def _with_value(document: Document, path: tuple[str, ...], value: Any) -> Document:
    field, below = path[0], path[1:]
    return {**document, field: _with_value(section(document, field), below, value) if below else value}


_DEFAULTS: Mapping[str, Callable[[Document], Document]] = {
    "Shoot": _shoot,
    "Seed": _seed,
    "Project": _project,
    "ManagedSeed": _managed_seed,
    "ManagedSeedSet": _managed_seed_set,
    "SeedAutoscaler": _seed_autoscaler,
    "MemberCluster": _member_cluster,
    "ClusterResourcePlacement": _placement,
    "ResourcePlacement": _placement,
}
