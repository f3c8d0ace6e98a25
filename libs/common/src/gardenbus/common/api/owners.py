"""Owner references of manifests, and who set each of them."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.uids import is_uid


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


def owner_uids(document: Document | None) -> Sequence[str]:
    """The uids of the owners, in their order, without those that cannot be uids."""
    uids: list[Any] = [owner.get("uid") for owner in owner_references(document or {})]
    return list(dict.fromkeys(uid for uid in uids if isinstance(uid, str) and is_uid(uid)))


def setters_after(setters: bytes | None, old: Document | None, new: Document, user: str) -> bytes:
    """The setters of the owner references after a user's write: a line `<uid> <user>` for each that is known.

    Whoever adds a reference has set it, whoever finds it there has not. One whose setter was never recorded stays
    nobody's, until it is taken off and set again.
    """
    owners = owner_uids(new)
    if not owners:
        return b""
    recorded, before = setters_of(setters or b""), frozenset(owner_uids(old))
    after = {uid: recorded.get(uid, "") if uid in before else user for uid in owners}
    return "\n".join(f"{uid} {setter}" for uid, setter in after.items() if setter).encode()


def setters_of(setters: bytes) -> Mapping[str, str]:
    """The user who set the reference to each owner, by the owner's uid; nobody's have none."""
    parted = (line.partition(" ") for line in setters.decode().split("\n") if line)
    return {uid: user for uid, _, user in parted}
