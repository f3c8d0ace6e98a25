"""Parts of documents: read leniently, and replaced in a copy."""

from collections.abc import Mapping
from typing import Any, cast

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import ObjectKey

FINALIZER = "gardener"
EXTERNAL_FINALIZER = "gardener.cloud/gardener"
"""Finalizer of credentials while bindings refer to them."""
REFERENCE_FINALIZER = "gardener.cloud/reference-protection"
"""Finalizer of what Shoots and Seeds name, and of those Shoots and Seeds."""
PLANT_FINALIZER = "core.gardener.cloud/plant"
"""Finalizer of Plants, and of the Secrets that they name."""
PROTECTING_FINALIZERS = frozenset({FINALIZER, EXTERNAL_FINALIZER, REFERENCE_FINALIZER, PLANT_FINALIZER})
"""Finalizers that have a deleted object wait until nothing uses it."""


def name_of(document: Document) -> str:
    """The name of an object; "" when it has none."""
    metadata = document.get("metadata")
    return str(cast("Document", metadata).get("name") or "") if isinstance(metadata, dict) else ""


def namespace_of(document: Document) -> str:
    """The namespace of an object; "" when it has none."""
    metadata = document.get("metadata")
    return str(cast("Document", metadata).get("namespace") or "") if isinstance(metadata, dict) else ""


def key_of_document(document: Document) -> ObjectKey:
    """The key of a stored object."""
    return ObjectKey(str(document["kind"]).lower(), namespace_of(document), name_of(document))


def is_deleting(document: Document) -> bool:
    """True when the deletion of an object has been requested."""
    return bool(section(document, "metadata").get("deletionTimestamp"))


def is_protected(document: Document) -> bool:
    """True where a finalizer has a deleted object wait until nothing uses it: its deletion need not be rejected."""
    return FINALIZER in (section(document, "metadata").get("finalizers") or ())


def protecting_finalizers(document: Document) -> frozenset[str]:
    """The finalizers that have an object wait for its users."""
    return PROTECTING_FINALIZERS.intersection(section(document, "metadata").get("finalizers") or ())


def is_deleted(document: Document) -> bool:
    """True when the gardenlet reports that the deletion is complete."""
    operation = section(document, "status", "lastOperation")
    return (operation.get("type"), operation.get("state"), operation.get("progress")) == ("Delete", "Succeeded", 100)


def mappings(value: Any) -> list[Document]:
    """The mappings of what should be a list of them; anything else is left out."""
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Document", entry) for entry in listed if isinstance(entry, dict)]


def entry_named(listed: Any, name: Any, field: str = "name") -> Document:
    """The first entry of a list whose `field` is this name; {} where there is none, or no name."""
    nothing: Document = {}
    return next((entry for entry in mappings(listed) if name and entry.get(field) == name), nothing)


def only_text(value: object) -> str:
    """A text as it is; "" for anything else."""
    return value if isinstance(value, str) else ""


def differ(spec: Document, before: Document, *fields: str) -> bool:
    """True when one of some fields differs."""
    return any(spec.get(field) != before.get(field) for field in fields)


def without(mapping: Mapping[str, Any], *names: str) -> Document:
    """A copy of a mapping without some fields."""
    return {name: value for name, value in mapping.items() if name not in names}


def with_metadata(document: Document, field: str, value: Any) -> Document:
    """The document with a field of its metadata set, or removed where the value is empty."""
    metadata = without(section(document, "metadata"), field)
    return {**document, "metadata": {**metadata, field: value} if value else metadata}


def with_finalizer(document: Document, finalizer: str = FINALIZER) -> Document:
    """The document with a finalizer; one that is being deleted gets none."""
    finalizers: list[str] = section(document, "metadata").get("finalizers") or []
    if is_deleting(document) or finalizer in finalizers:
        return document
    return with_metadata(document, "finalizers", [*finalizers, finalizer])


def without_finalizer(document: Document, finalizer: str = FINALIZER) -> Document:
    """The document without a finalizer."""
    finalizers: list[str] = section(document, "metadata").get("finalizers") or []
    if finalizer not in finalizers:
        return document
    return with_metadata(document, "finalizers", [other for other in finalizers if other != finalizer])
