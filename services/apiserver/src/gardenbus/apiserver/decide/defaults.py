"""Defaults of each kind that follow from the manifest alone. Manifests are copied along the path that changes."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from gardenbus.common.resources.derived import DEFAULT_SCHEDULER_NAME
from gardenbus.common.resources.document import SEED_LABEL_PREFIX, Document, section
from gardenbus.common.resources.keys import GARDEN_NAMESPACE
from gardenbus.common.resources.managed_seeds import GARDENLET_API_VERSION, GARDENLET_KIND

SHOOTS_OF_A_MANAGED_SEED = 250
"""Capacity for shoots of a ManagedSeed that states none. Source: Gardener's `defaults_managedseed.go`."""
REVISIONS_KEPT = 10
"""Source: Gardener's `defaults_managedseedset.go`."""

_OF_SHOOTS: Mapping[str, Any] = {"schedulerName": DEFAULT_SCHEDULER_NAME, "purpose": "evaluation"}


def with_defaults(document: Document) -> Document:
    """The manifest with the defaults of its kind filled in; whatever is stated, of whatever type, stays."""
    fill = _DEFAULTS.get(str(document.get("kind")))
    return fill(document) if fill else document


def with_creation_defaults(document: Document) -> Document:
    """The manifest of a new object with what only new ones get: a Shoot with workers its vertical pod autoscaler.

    That is so in the garden namespace alone, whose shoots may become seeds: nothing here reads it of other shoots.
    Source: Gardener's admission plugin ShootVPAEnabledByDefault.
    """
    workers = section(document, "spec", "provider").get("workers")
    if document.get("kind") != "Shoot" or not (isinstance(workers, list) and workers):
        return document
    if section(document, "metadata").get("namespace") != GARDEN_NAMESPACE:
        return document
    return with_default(document, ("spec", "kubernetes", "verticalPodAutoscaler", "enabled"), value=True)


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
    name = str(section(project, "metadata").get("name"))
    namespace = name if name == GARDEN_NAMESPACE else f"{GARDEN_NAMESPACE}-{name}"
    return with_default(project, ("spec", "namespace"), namespace)


def _managed_seed(managed_seed: Document) -> Document:
    if not isinstance(section(managed_seed, "spec").get("gardenlet"), dict):
        return managed_seed
    managed_seed = with_default(managed_seed, ("spec", "gardenlet", "bootstrap"), "BootstrapToken")
    managed_seed = with_default(managed_seed, ("spec", "gardenlet", "mergeWithParent"), value=True)
    config = ("spec", "gardenlet", "config")
    managed_seed = with_default(managed_seed, (*config, "apiVersion"), GARDENLET_API_VERSION)
    managed_seed = with_default(managed_seed, (*config, "kind"), GARDENLET_KIND)
    return with_default(managed_seed, (*config, "resources", "capacity", "shoots"), SHOOTS_OF_A_MANAGED_SEED)


def _managed_seed_set(managed_seed_set: Document) -> Document:
    managed_seed_set = with_default(managed_seed_set, ("spec", "replicas"), 1)
    managed_seed_set = with_default(managed_seed_set, ("spec", "revisionHistoryLimit"), REVISIONS_KEPT)
    managed_seed_set = with_default(managed_seed_set, ("spec", "updateStrategy", "type"), "RollingUpdate")
    if isinstance(section(managed_seed_set, "spec", "updateStrategy").get("rollingUpdate"), dict):
        return with_default(managed_seed_set, ("spec", "updateStrategy", "rollingUpdate", "partition"), 0)
    return managed_seed_set


def _seed_autoscaler(autoscaler: Document) -> Document:
    return with_default(autoscaler, ("spec", "minReplicas"), 1)


_DEFAULTS: Mapping[str, Callable[[Document], Document]] = {
    "Shoot": _shoot,
    "Seed": _seed,
    "Project": _project,
    "ManagedSeed": _managed_seed,
    "ManagedSeedSet": _managed_seed_set,
    "SeedAutoscaler": _seed_autoscaler,
}
