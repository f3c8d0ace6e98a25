"""Annotations that the system maintains: creator of an object, and who confirmed its deletion."""

from collections.abc import Sequence
from typing import Any

from gardenbus.apiserver.domain.merging import CONFIRMED_BY, CREATED_BY
from gardenbus.common.api.confirmation import is_confirmed
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import without


def with_creator(document: Document, old: Document | None, user: str) -> Document:
    """Record the creator of an object, which never changes afterwards."""
    return annotated(document, CREATED_BY, _creator(old, user))


def creator_warnings(given: Document, old: Document | None, user: str) -> Sequence[str]:
    """A warning for a manifest that says something else about who created the object."""
    stated = section(given, "metadata", "annotations").get(CREATED_BY)
    if stated is None or stated == _creator(old, user):
        return ()
    return (f"metadata.annotations[{CREATED_BY}] is ignored: it names who created the object",)


def _creator(old: Document | None, user: str) -> Any:
    return user if old is None else section(old, "metadata", "annotations").get(CREATED_BY)


def with_confirmer(document: Document, old: Document | None, user: str) -> Document:
    """Record who confirmed a deletion, for as long as it is confirmed."""
    before = section(old or {}, "metadata", "annotations").get(CONFIRMED_BY)
    confirmer = None
    if is_confirmed(document):
        confirmer = before if before and is_confirmed(old or {}) else user
    return annotated(document, CONFIRMED_BY, confirmer)


def annotated(document: Document, name: str, value: Any) -> Document:
    """The document with an annotation set, or removed (None); the same object when nothing changes."""
    metadata = section(document, "metadata")
    annotations = section(metadata, "annotations")
    if annotations.get(name) == value:
        return document
    others = without(annotations, name)
    if value is not None:
        others[name] = value
    return {**document, "metadata": {**metadata, "annotations": others}}
