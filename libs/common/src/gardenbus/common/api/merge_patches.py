"""Merge patches (RFC 7396) between two states of a document, and those that put a manifest in the place of another."""

from typing import Any, cast

from gardenbus.common.api.document import SEED_LABEL_PREFIX, STATUS_LABEL, Document, section
from gardenbus.common.api.garden.tolerations import UNCHECKED_TOLERATIONS

SYSTEM_PAIRS = frozenset(
    {STATUS_LABEL, "gardener.cloud/created-by", "deletion.gardener.cloud/confirmed-by", UNCHECKED_TOLERATIONS}
)
"""Labels and annotations that only the apiserver writes."""


def merge_patch_between(before: Any, after: Any) -> Document:
    """The merge patch that makes one document of the other; {} when they are the same. What is no mapping is empty."""
    old, new = _mapping(before), _mapping(after)
    patch: Document = dict.fromkeys(key for key in old if key not in new)
    for key, value in new.items():
        if key not in old:
            patch[key] = value
        elif isinstance(value, dict) and isinstance(old[key], dict):
            if inner := merge_patch_between(old[key], value):
                patch[key] = inner
        elif value != old[key]:
            patch[key] = value
    return patch


def merge_patched(document: Document, patch: Document) -> Document:
    """The document after a merge patch: mappings field by field, null removes, anything else replaces."""
    merged = dict(document)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            merged[name] = merge_patched(_mapping(merged.get(name)), cast("Document", value))
        else:
            merged[name] = value
    return merged


def replacing_patch(present: Document, given: Document) -> Document:
    """The merge patch that makes `present` what a manifest says, but for what the system sets; {} when it is that.

    Finalizers and owners, the system's labels and annotations and a placed shoot's seed stay unless the manifest has
    them.
    """
    old, new = section(present, "metadata"), section(given, "metadata")
    kept = {name: old[name] for name in ("finalizers", "ownerReferences") if name in old and name not in new}
    pairs = {
        name: {**_system_pairs(section(old, name)), **section(new, name)}
        for name in ("labels", "annotations")
        if name in old or name in new
    }
    after = {**given, "metadata": {**new, **kept, **pairs}}
    spec, seed = section(given, "spec"), section(present, "spec").get("seedName")
    if present.get("kind") == "Shoot" and seed and "seedName" not in spec:
        after["spec"] = {**spec, "seedName": seed}
    return merge_patch_between(present, after)


def _system_pairs(pairs: Document) -> Document:
    return {key: value for key, value in pairs.items() if key in SYSTEM_PAIRS or key.startswith(SEED_LABEL_PREFIX)}


def _mapping(value: Any) -> Document:
    return cast("Document", value) if isinstance(value, dict) else {}
