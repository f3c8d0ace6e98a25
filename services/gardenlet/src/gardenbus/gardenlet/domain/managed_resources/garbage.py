"""Garbage collection of ConfigMaps and Secrets with names by their content, which nothing refers to any more.

Source: Gardener's `pkg/resourcemanager/controller/garbagecollector`.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.ports.clock import parse_timestamp
from gardenbus.gardenlet.domain.managed_resources.names import (
    API_VERSION,
    GARBAGE_COLLECTABLE,
    KIND,
    REFERENCE_PREFIX,
    annotations_of,
    is_true,
)

LEAST_AGE = timedelta(minutes=10)
"""Age before which nothing is collected: whoever refers to it may be on the way."""

SELECTOR = f"{GARBAGE_COLLECTABLE}=true"
COLLECTED_KINDS = (("v1", "Secret"), ("v1", "ConfigMap"))
REFERRING_KINDS = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("v1", "Pod"),
    ("batch/v1", "CronJob"),
    (API_VERSION, KIND),
    ("monitoring.coreos.com/v1", "Prometheus"),
)
"""Kinds whose annotations refer to ConfigMaps and Secrets of their namespace."""

_PARTS = 2


class Collectable(NamedTuple):
    """A ConfigMap or Secret that may be garbage. `kind` is that of annotations: in small letters."""

    kind: str
    namespace: str
    name: str


def is_collectable(api_version: str, live: Document) -> bool:
    """True for a ConfigMap or Secret that the garbage collector removes, and nobody else."""
    is_of_kind = (api_version, live.get("kind")) in COLLECTED_KINDS
    return is_of_kind and is_true(section(live, "metadata", "labels"), GARBAGE_COLLECTABLE)


def collectable_of(kind: str, live: Document, now: datetime) -> Collectable | None:
    """An object that is old enough; None for one that is not."""
    metadata = section(live, "metadata")
    created = parse_timestamp(metadata.get("creationTimestamp"))
    if created is None or now - created < LEAST_AGE:
        return None
    return Collectable(kind.lower(), str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))


def references_of(live: Document) -> set[Collectable]:
    """All that an object refers to by its annotations."""
    namespace = str(section(live, "metadata").get("namespace") or "")
    return {
        Collectable(kind, namespace, str(name))
        for key, name in annotations_of(live).items()
        if name and (kind := _kind_of(key))
    }


def garbage(collectable: Iterable[Collectable], referring: Iterable[Document]) -> list[Collectable]:
    """Objects that nothing refers to, in order."""
    unused = set(collectable)
    for live in referring:
        unused -= references_of(live)
    return sorted(unused)


def _kind_of(key: str) -> str:
    """Kind that an annotation refers to: `secret-1a2b3c4d` after the prefix; the hash is not compared."""
    parts = key.removeprefix(REFERENCE_PREFIX).split("-")
    return parts[0] if key.startswith(REFERENCE_PREFIX) and len(parts) == _PARTS else ""
