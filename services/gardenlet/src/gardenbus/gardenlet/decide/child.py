"""The gardenlet of a shoot that shall be a seed: its configuration, what of it is deployed, and its certificate.

Source: Gardener's `pkg/controller/gardenletdeployer` (merging with the parent's configuration, bootstrapping).
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec
import yaml

from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.managed_seeds import capacity_of, seed_of
from gardenbus.gardenlet.decide.configuration import API_GROUP, KIND

RENEWED_AT = 0.8
"""The share of its validity after which a certificate is renewed."""

_OWN = ("seedConfig", "resources")
"""What a configuration says of its own seed alone."""

_CREDENTIALS = ("kubeconfig", "kubeconfigSecret", "bootstrapKubeconfig")


class Deployed(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in one shoot for its ManagedSeed; while there is one, so is the namespace `garden` in the shoot.

    `gardenlet` is the whole configuration (None: taken down), `generation` the ManagedSeed's when it was deployed,
    `deployed_at` when that was, `bootstrapped_at` when the gardenlet was given a certificate (None: it brings its own
    credentials).
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


def child_configuration(parent: Document, managed_seed: Document) -> Document:
    """The GardenletConfiguration for a ManagedSeed: the parent's below the one that it states, unless it says not to.

    Nothing of the parent's own seed, capacity and credentials is taken over.
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
    plain: Document = msgspec.to_builtins(configuration, str_keys=True)  # as it comes back from where it is kept
    return plain


def text_of(configuration: Document) -> str:
    """A configuration as a file of its own."""
    return yaml.safe_dump(configuration, sort_keys=False)


def is_bootstrapped(managed_seed: Document) -> bool:
    """Whether its gardenlet is given a certificate (`bootstrap: None` means that it brings its own credentials)."""
    return section(managed_seed, "spec", "gardenlet").get("bootstrap") != "None"


def renewal_is_due(issued_at: datetime, validity: timedelta, now: datetime) -> bool:
    """Whether a certificate has lived through the share of its time after which it is renewed, and is still good."""
    return issued_at + RENEWED_AT * validity <= now < issued_at + validity


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Document:
    """Mappings field by field; whatever else is above stands."""
    result: Document = dict(below)
    for field, value in above.items():
        old = result.get(field)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            result[field] = _merged(cast("Mapping[str, Any]", old), cast("Mapping[str, Any]", value))
        else:
            result[field] = value
    return result
