"""Gardenlet of a shoot that becomes a seed: its configuration, and its deployment.

Source: Gardener's `pkg/controller/gardenletdeployer` (merging with the parent's configuration, bootstrapping).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

import msgspec
import yaml

from gardenbus.common.api.configuration.gardenlet import API_GROUP, KIND
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.managed_seeds import capacity_of, seed_of

_OWN = ("seedConfig", "resources")
"""Fields of a configuration that concern its own seed alone."""

_CREDENTIALS = ("kubeconfig", "kubeconfigSecret", "bootstrapKubeconfig")


class GardenletDeployment(msgspec.Struct, frozen=True, kw_only=True):
    """The deployment in one shoot for its ManagedSeed; it includes the namespace `garden` of the shoot.

    `gardenlet` is the whole configuration (None: deleted), `generation` the ManagedSeed's when it was deployed,
    `deployed_at` the time of that, `bootstrapped_at` the same of one that may get a token for a certificate (None: it
    brings its own credentials): where the server rejects its certificate, one that was issued before is replaced.
    """

    namespace: str
    shoot: str
    managed_seed: str
    uid: str
    generation: int
    deployed_at: datetime | None = None
    bootstrapped_at: datetime | None = None
    gardenlet: Document | None = None
    has_backup_secret: bool = False


def managed_gardenlet_configuration(parent: Document, managed_seed: Document) -> Document:
    """Build the GardenletConfiguration for a ManagedSeed: its own, over the parent's unless `mergeWithParent` is false.

    The parent's own seed, its Kubernetes API, capacity and credentials are never inherited.
    """
    gardenlet = section(managed_seed, "spec", "gardenlet")
    stated = section(gardenlet, "config")
    inherited: Document = {}
    if gardenlet.get("mergeWithParent") is not False:
        inherited = {field: value for field, value in parent.items() if field not in _OWN}
        connection = section(parent, "gardenClientConnection")
        if connection:
            kept = {field: value for field, value in connection.items() if field not in _CREDENTIALS}
            inherited["gardenClientConnection"] = kept
        if backend := section(parent, "backend"):
            inherited["backend"] = {field: value for field, value in backend.items() if field != "extensions"}
    seed = seed_of(managed_seed)
    capacity, reserved = capacity_of(managed_seed)
    resources = {**section(stated, "resources"), "capacity": capacity}
    configuration = {
        **_merged(inherited, stated),
        "apiVersion": f"{API_GROUP}/v1alpha1",
        "kind": KIND,
        "resources": {**resources, "reserved": reserved} if reserved else resources,
        "seedConfig": {"metadata": seed["metadata"], "spec": seed["spec"]},
    }
    normalized: Document = msgspec.to_builtins(configuration, str_keys=True)  # as it is read back
    return normalized


def text_of(configuration: Document) -> str:
    """A configuration as YAML."""
    return yaml.safe_dump(configuration, sort_keys=False)


def is_bootstrapped(managed_seed: Document) -> bool:
    """True if the gardenlet is issued a certificate (`bootstrap: None` means that it brings its own credentials)."""
    return section(managed_seed, "spec", "gardenlet").get("bootstrap") != "None"


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Document:
    """Merge mappings field by field; other values of `above` win."""
    result: Document = dict(below)
    for field, value in above.items():
        old = result.get(field)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            result[field] = _merged(cast("Mapping[str, Any]", old), cast("Mapping[str, Any]", value))
        else:
            result[field] = value
    return result
