"""Differences of two states of an object, as text. Pure."""

import difflib
from collections.abc import Mapping

import yaml

from gardenbus.cli.manifests.files import as_mapping
from gardenbus.common.api.document import Document

_NOT_COMPARED = ("managedFields", "resourceVersion", "uid", "creationTimestamp")
"""Members of metadata that the store decides."""


def unified_diff(before: Document | None, after: Document, name: str) -> list[str]:
    """Lines of a unified diff of both as YAML, without those that the store decides; [] when they are the same.

    `before` is None of an object that is not there.
    """
    old, new = ([] if document is None else _lines(document) for document in (before, after))
    return list(difflib.unified_diff(old, new, f"{name} (now)", f"{name} (applied)", lineterm=""))


def _lines(document: Document) -> list[str]:
    metadata = {key: value for key, value in as_mapping(document.get("metadata")).items() if key not in _NOT_COMPARED}
    compared: Mapping[str, object] = {**document, "metadata": metadata}
    return yaml.safe_dump(dict(compared), sort_keys=True, allow_unicode=True).splitlines()
