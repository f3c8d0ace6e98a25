"""The annotations that the system keeps: who created an object, who confirmed its deletion."""

from typing import Any

from gardenbus.apiserver.decide.merging import CONFIRMED_BY, CREATED_BY
from gardenbus.common.resources.document import Document, section

CONFIRMATION = "confirmation.gardener.cloud/deletion"


def is_confirmed(document: Document) -> bool:
    """Whether somebody confirmed the deletion."""
    return section(document, "metadata", "annotations").get(CONFIRMATION) == "true"


def with_creator(document: Document, old: Document | None, user: str, warnings: list[str]) -> Document:
    """Record who created an object; afterwards nobody changes that."""
    annotations = section(document, "metadata", "annotations")
    creator = user if old is None else section(old, "metadata", "annotations").get(CREATED_BY)
    stated = annotations.get(CREATED_BY)
    if stated == creator:
        return document
    if stated is not None:
        warnings.append(f"metadata.annotations[{CREATED_BY}] is ignored: it says who created the object")
    return annotated(document, CREATED_BY, creator)


def with_confirmer(document: Document, old: Document | None, user: str) -> Document:
    """Record who confirmed a deletion, for as long as it is confirmed."""
    before = section(old or {}, "metadata", "annotations").get(CONFIRMED_BY)
    confirmer = None
    if is_confirmed(document):
        confirmer = before if before and is_confirmed(old or {}) else user
    return annotated(document, CONFIRMED_BY, confirmer)


def annotated(document: Document, name: str, value: Any) -> Document:
    """The document with an annotation set, or taken off (None); the same object when nothing differs."""
    metadata = section(document, "metadata")
    annotations = section(metadata, "annotations")
    if annotations.get(name) == value:
        return document
    others = {key: text for key, text in annotations.items() if key != name}
    if value is not None:
        others[name] = value
    return {**document, "metadata": {**metadata, "annotations": others}}
