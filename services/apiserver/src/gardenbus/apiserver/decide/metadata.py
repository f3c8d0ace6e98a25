"""The rules of metadata, which hold for every kind."""

from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey


def key_of(document: Document) -> ObjectKey:
    """Check a manifest's metadata and answer its key. Raises BadRequest, Unsupported, InvalidResource."""
    return reference_of(document)


def reference_of(document: Document) -> ObjectKey:
    """The key that a delete request means: a manifest, or `{"kind", "namespace", "name"}`."""
    return ObjectKey(document["kind"].lower(), document.get("namespace", ""), document["name"])
