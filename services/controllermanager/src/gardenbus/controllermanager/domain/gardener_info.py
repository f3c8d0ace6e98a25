"""ConfigMaps by which everybody learns of the landscape: its identity, and the Gardener that its API is like.

Source: Gardener's `cmd/gardener-apiserver/app` (bootstrap-cluster-identity), `pkg/operator/controller/garden/garden`
(reconcileGardenerInfoConfigMap) and `pkg/gardenlet/bootstrappers/verify_version.go`, which reads it.
"""

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import CLUSTER_IDENTITY, GARDENER_INFO, ObjectKey

GARDENER_VERSION = "v1.149.3"
"""Version of Gardener whose API and rules are followed: a gardenlet of Gardener's compares it with its own."""

IDENTITY = "cluster-identity"
ORIGIN = "origin"
ORIGIN_OF_GARDEN = "gardener-apiserver"
API_SERVER = "gardenerAPIServer"


def identity_in(config_map: Document) -> str:
    """The identity that a ConfigMap `cluster-identity` has; "" without one."""
    return str(section(config_map, "data").get(IDENTITY) or "")


def wanted_config_map(key: ObjectKey, present: Document | None, identity: str) -> Document:
    """A ConfigMap as it should be; the same document where it is, or is left as somebody wrote it.

    `identity`: of a landscape that has none yet, or of one whose ConfigMap was written by hand.
    """
    if key == GARDENER_INFO:
        return _with_data(key, present, {API_SERVER: f"version: {GARDENER_VERSION}\n"})
    if present is not None and not _is_completed(present, identity):
        return present
    document = _with_data(key, present, {IDENTITY: identity, ORIGIN: ORIGIN_OF_GARDEN})
    return {**document, "immutable": True}


def is_info(key: ObjectKey) -> bool:
    """True for one of these ConfigMaps."""
    return key in (CLUSTER_IDENTITY, GARDENER_INFO)


def _is_completed(present: Document, identity: str) -> bool:
    """True for one that may change, has this very identity and no origin: it becomes the garden's own."""
    is_free = present.get("immutable") is not True and not section(present, "data").get(ORIGIN)
    return is_free and identity_in(present) == identity != ""


def _with_data(key: ObjectKey, present: Document | None, entries: Document) -> Document:
    metadata = {"name": key.name, "namespace": key.namespace}
    document: Document = present or {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    data = section(document, "data")
    return document if entries.items() <= data.items() else {**document, "data": {**data, **entries}}
