"""ConfigMaps by which everybody learns of the landscape: its identity and authorities, and its API's Gardener.

Source: Gardener's `cmd/gardener-apiserver/app` (bootstrap-cluster-identity), `pkg/operator/controller/garden/garden`
(reconcileGardenerInfoConfigMap) and `pkg/gardenlet/bootstrappers/verify_version.go`, which reads it.
"""

from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import CLUSTER_IDENTITY, GARDENER_INFO, KUBE_ROOT_CA, ObjectKey

GARDENER_VERSION = "v1.149.3"
"""Version of Gardener whose API and rules are followed: a gardenlet of Gardener's compares it with its own."""

IDENTITY = "cluster-identity"
ORIGIN = "origin"
ORIGIN_OF_GARDEN = "gardener-apiserver"
API_SERVER = "gardenerAPIServer"
CA_CERTIFICATES = "ca.crt"


class LandscapeFacts(NamedTuple):
    """Content of the ConfigMaps. Without an `identity` one is made; without `ca_certificates` no ConfigMap has them."""

    identity: str = ""
    ca_certificates: str = ""


INFO_CONFIG_MAPS = (CLUSTER_IDENTITY, GARDENER_INFO, KUBE_ROOT_CA)


def identity_in(config_map: Document) -> str:
    """The identity that a ConfigMap `cluster-identity` has; "" without one."""
    return str(section(config_map, "data").get(IDENTITY) or "")


def wanted_config_map(key: ObjectKey, present: Document | None, facts: LandscapeFacts) -> Document | None:
    """A ConfigMap as it should be, None for none; the same document where it is, or is left as somebody wrote it.

    `facts.identity`: of a landscape that has none yet, or of one whose ConfigMap was written by hand.
    """
    if key == GARDENER_INFO:
        return _with_data(key, present, {API_SERVER: f"version: {GARDENER_VERSION}\n"})
    if key == KUBE_ROOT_CA:
        found = facts.ca_certificates
        return _with_data(key, present, {CA_CERTIFICATES: found}) if found else present
    if present is not None and not _is_completed(present, facts.identity):
        return present
    document = _with_data(key, present, {IDENTITY: facts.identity, ORIGIN: ORIGIN_OF_GARDEN})
    return {**document, "immutable": True}


def is_info(key: ObjectKey) -> bool:
    """True for one of these ConfigMaps."""
    return key in INFO_CONFIG_MAPS


def _is_completed(present: Document, identity: str) -> bool:
    """True for one that may change, has this very identity and no origin: it becomes the garden's own."""
    is_free = present.get("immutable") is not True and not section(present, "data").get(ORIGIN)
    return is_free and identity_in(present) == identity != ""


def _with_data(key: ObjectKey, present: Document | None, entries: Document) -> Document:
    metadata = {"name": key.name, "namespace": key.namespace}
    document: Document = present or {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    data = section(document, "data")
    return document if entries.items() <= data.items() else {**document, "data": {**data, **entries}}
