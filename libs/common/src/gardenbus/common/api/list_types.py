"""Lists whose entries are merged one by one: by a key, or as a set. Every other list is one value. Pure.

Kubernetes states this in its OpenAPI documents (`x-kubernetes-list-type`); Gardener's kinds do the same in struct tags.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, cast

from gardenbus.common.api.document import Document
from gardenbus.common.api.members import hashable

LIST_KEYS: Mapping[str, str] = {
    "ownerReferences": "uid",
    "conditions": "type",
    "constraints": "type",
    "advertisedAddresses": "name",
    "gardener": "name",
    "secrets": "name",
    "imagePullSecrets": "name",
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "taints": "key",
    "workers": "name",
    "resources": "name",
}
"""The field that is the key of a list's entries."""

SETS = frozenset({"finalizers"})
"""Lists of words."""


def key_of_entries(name: str, entries: Sequence[Any]) -> str | None:
    """The key of the entries of a list of that name; None where it has none, or an entry lacks it."""
    key = LIST_KEYS.get(name)
    if key is None or not all(isinstance(each, dict) and key in each for each in entries):
        return None
    return key


def entries_by(entries: Sequence[Any], key: str) -> Mapping[Hashable, Document]:
    """The entries of a list that have a key, by its value; of several with the same value the first."""
    mappings = [cast("Document", each) for each in entries if isinstance(each, dict)]
    return {hashable(each[key]): each for each in reversed(mappings) if key in each}
