"""Merging what is given into what is stored: kubectl's three-way apply, and JSON merge patches.

Applying is made so that requests of one object may be skipped when a newer one was taken: what a manifest set last time
and leaves out now goes, so the newest manifest alone decides about every field that only manifests set.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gardenbus.common.resources.derived import FINALIZER
from gardenbus.common.resources.document import SEED_LABEL_PREFIX, STATUS_LABEL, Document, encode, section
from gardenbus.common.resources.tolerations import UNCHECKED_TOLERATIONS

CREATED_BY = "gardener.cloud/created-by"
CONFIRMED_BY = "deletion.gardener.cloud/confirmed-by"

_OWNED_BY_STORE = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
)
_SYSTEM_ANNOTATIONS = frozenset({CREATED_BY, CONFIRMED_BY, UNCHECKED_TOLERATIONS})


def apply_three_way(current: Document | None, last_applied: Document | None, given: Document) -> Document:
    """What becomes of `current` when a manifest is applied.

    Fields given are set (null takes a field away), fields that were given last time and are absent now go, all others
    stay; lists are replaced whole, but for finalizers (a set) and ownerReferences (by uid). `status` and what the store
    owns in metadata stay as they are. The arguments are left untouched, and the result shares parts with them.
    """
    if current is None and not last_applied:
        sent = without_system_fields(given)
        return new_object(sent, encode(sent))
    stored = current or {}
    before, now = _never_missed(without_system_fields(last_applied or {})), without_system_fields(given)
    own = {name: value for name, value in stored.items() if name not in ("metadata", "status")}
    merged = _merge(
        own,
        {name: value for name, value in before.items() if name != "metadata"},
        {name: value for name, value in now.items() if name != "metadata"},
    )
    merged["metadata"] = _merge_metadata(
        section(stored, "metadata"), section(before, "metadata"), section(now, "metadata")
    )
    if "status" in stored:
        merged["status"] = stored["status"]
    return merged


def new_object(sent: Document, encoded: bytes) -> Document:
    """What a manifest makes where nothing is: as merging it with nothing does.

    `sent` is the manifest `without_system_fields`, and `encoded` the same as JSON, which tells whether there are nulls.
    """
    metadata = section(sent, "metadata")
    if b"null" in encoded or any(name in metadata for name in ("finalizers", "ownerReferences")):
        made = _without_nulls({name: value for name, value in sent.items() if name != "metadata"})
        return {**made, "metadata": _merge_metadata({}, {}, metadata)}
    return sent


def last_applied_of(given: Document) -> bytes:
    """What to remember of an applied manifest, as compact JSON: without status and without the system's own fields."""
    return encode(without_system_fields(given))


def without_system_fields(given: Document) -> Document:
    """A manifest reduced to what its sender decides.

    Somebody who applies what `get` printed does not take over what the system wrote into it: status, versions, the
    seed of a placed shoot as something to be missed later, labels and finalizers of its own.
    """
    metadata = {name: value for name, value in section(given, "metadata").items() if name not in _OWNED_BY_STORE}
    if isinstance(metadata.get("labels"), dict):
        metadata["labels"] = {name: value for name, value in metadata["labels"].items() if not _is_system_label(name)}
    if isinstance(metadata.get("annotations"), dict):
        annotations = cast("Document", metadata["annotations"])
        metadata["annotations"] = {
            name: value for name, value in annotations.items() if name not in _SYSTEM_ANNOTATIONS
        }
    reduced = {name: value for name, value in given.items() if name != "status"}
    return {**reduced, "metadata": metadata}


def _never_missed(last_applied: Document) -> Document:
    """Without the seed of a shoot: a manifest that does not name it leaves the shoot where it is."""
    if last_applied.get("kind") != "Shoot" or "seedName" not in section(last_applied, "spec"):
        return last_applied
    spec = {name: value for name, value in section(last_applied, "spec").items() if name != "seedName"}
    return {**last_applied, "spec": spec}


def merge_patch(current: Document, patch: Document) -> Document:
    """A JSON merge patch (RFC 7386): mappings key by key, null takes away, anything else replaces."""
    return _patched(current, patch)


def _merge(current: Mapping[str, Any], before: Mapping[str, Any], now: Document) -> Document:
    if not current:
        return _without_nulls(now)
    merged = {name: value for name, value in current.items() if name in now or name not in before}
    for name, value in now.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            given = cast("Document", value)
            merged[name] = _merge(_mapping(merged.get(name)), _mapping(before.get(name)), given)
        else:
            merged[name] = value
    return merged


def _without_nulls(given: Document) -> Document:
    """What becomes of a mapping where there was none: itself when it has no nulls at any depth, lists left aside."""
    changed: Document = {}
    for name, value in given.items():
        if value is None:
            changed[name] = None
        elif isinstance(value, dict) and (below := _without_nulls(cast("Document", value))) is not value:
            changed[name] = below
    if not changed:
        return given
    return {name: part for name, value in given.items() if (part := changed.get(name, value)) is not None}


def _merge_metadata(current: Document, before: Document, now: Document) -> Document:
    """As `_merge`, but labels and annotations never go as a whole, since the system keeps some of its own in them."""
    special = ("labels", "annotations", "finalizers", "ownerReferences")
    merged = _merge(
        *({name: value for name, value in one.items() if name not in special} for one in (current, before, now))
    )
    for name in ("labels", "annotations"):
        mapping = _merge(section(current, name), section(before, name), section(now, name))
        if mapping or name in now:
            merged[name] = mapping
    finalizers = _merge_finalizers(*(_listed(one.get("finalizers")) for one in (current, before, now)))
    if finalizers:
        merged["finalizers"] = finalizers
    owners = _merge_owners(*(_entries(one.get("ownerReferences")) for one in (current, before, now)))
    if owners:
        merged["ownerReferences"] = owners
    return merged


def _merge_finalizers(current: Sequence[Any], before: Sequence[Any], now: Sequence[Any]) -> list[Any]:
    """The finalizer of the system's own is never taken away by leaving it out."""
    kept = [entry for entry in current if entry == FINALIZER or entry in now or entry not in before]
    return kept + [entry for position, entry in enumerate(now) if entry not in kept and entry not in now[:position]]


def _merge_owners(current: Sequence[Document], before: Sequence[Document], now: Sequence[Document]) -> list[Document]:
    given = {owner.get("uid"): owner for owner in now}
    gone = {owner.get("uid") for owner in before}
    kept = [given.pop(uid, owner) for owner in current if (uid := owner.get("uid")) in given or uid not in gone]
    return kept + list(given.values())


def _patched(current: Mapping[str, Any], patch: Mapping[str, Any]) -> Document:
    merged = dict(current)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            merged[name] = _patched(_mapping(merged.get(name)), cast("Document", value))
        else:
            merged[name] = value
    return merged


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Document", value) if isinstance(value, dict) else {}


def _listed(value: Any) -> Sequence[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _entries(value: Any) -> Sequence[Document]:
    return [cast("Document", entry) for entry in _listed(value) if isinstance(entry, dict)]


def _is_system_label(name: str) -> bool:
    return name == STATUS_LABEL or name.startswith(SEED_LABEL_PREFIX)
