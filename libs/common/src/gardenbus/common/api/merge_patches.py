"""Merge patches (RFC 7396) between two states of a document."""

from typing import Any, cast

from gardenbus.common.api.document import Document


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


def _mapping(value: Any) -> Document:
    return cast("Document", value) if isinstance(value, dict) else {}
