"""Owner references of manifests."""

from collections.abc import Sequence
from typing import Any, cast

from gardenbus.common.api.document import Document, section


def owner_references(document: Document) -> Sequence[Document]:
    """The ownerReferences that are mappings."""
    owners: Any = section(document, "metadata").get("ownerReferences")
    listed = cast("list[Any]", owners) if isinstance(owners, list) else []
    return [cast("Document", owner) for owner in listed if isinstance(owner, dict)]


def controller_reference(owner: Document) -> Document:
    """The ownerReference by which an object controls another."""
    metadata = section(owner, "metadata")
    return {
        "apiVersion": owner.get("apiVersion"),
        "kind": owner.get("kind"),
        "name": metadata.get("name"),
        "uid": metadata.get("uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_of(document: Document) -> Document | None:
    """The controlling ownerReference, or None."""
    return next((owner for owner in owner_references(document) if owner.get("controller") is True), None)
