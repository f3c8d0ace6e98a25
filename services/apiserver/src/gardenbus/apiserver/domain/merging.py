"""Merging a manifest into the stored object: kubectl's three-way apply, and JSON merge patches.

Requests of one object may be skipped when a newer one was applied: what a manifest set last time and leaves out now is
removed, so the newest manifest alone decides about every field that only manifests set.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gardenbus.common.api.document import SEED_LABEL_PREFIX, SERVER_METADATA, STATUS_LABEL, Document, encode, section
from gardenbus.common.api.document_parts import FINALIZER, mappings, without
from gardenbus.common.api.garden.rows import listed
from gardenbus.common.api.garden.tolerations import UNCHECKED_TOLERATIONS
from gardenbus.common.api.members import Members, hashable
from gardenbus.common.api.views import mapping_or_empty

CREATED_BY = "gardener.cloud/created-by"
CONFIRMED_BY = "deletion.gardener.cloud/confirmed-by"

_SYSTEM_ANNOTATIONS = frozenset({CREATED_BY, CONFIRMED_BY, UNCHECKED_TOLERATIONS})


def apply_three_way(current: Document | None, last_applied: Document | None, given: Document) -> Document:
    """Result of applying a manifest to `current`.

    Fields given are set, fields that were given last time and are absent now are removed, all others stay; null removes
    a field, unless it was null last time: that manifest never had a value there. Lists are replaced whole, but for
    finalizers (a set) and ownerReferences (by uid); null is no value in their entries. `status` and the store's own
    fields in metadata stay. The arguments are not changed; the result shares parts with them.
    """
    if current is None and not last_applied:
        sent = without_system_fields(given)
        return new_object(sent, encode(sent))
    stored = current or {}
    before, now = _never_missed(without_system_fields(last_applied or {})), without_system_fields(given)
    merged = _merge(without(stored, "metadata", "status"), without(before, "metadata"), without(now, "metadata"))
    merged["metadata"] = _merge_metadata(
        section(stored, "metadata"), section(before, "metadata"), section(now, "metadata")
    )
    if "status" in stored:
        merged["status"] = stored["status"]
    return merged


def new_object(sent: Document, encoded: bytes) -> Document:
    """Object that a manifest creates: the same as merging it with nothing.

    `sent` is the manifest `without_system_fields`, and `encoded` the same as JSON, to find nulls fast.
    """
    metadata = section(sent, "metadata")
    if b"null" in encoded or any(name in metadata for name in ("finalizers", "ownerReferences")):
        made = _without_nulls(without(sent, "metadata"))
        return {**made, "metadata": _merge_metadata({}, {}, metadata)}
    return sent


def without_system_fields(given: Document) -> Document:
    """A manifest without the fields that the system sets.

    A client may apply the output of `get` and does not own what the system wrote into it: status, versions, the seed of
    a placed shoot, labels and finalizers of its own.
    """
    metadata = without(section(given, "metadata"), *SERVER_METADATA)
    if isinstance(metadata.get("labels"), dict):
        labels = {name: value for name, value in metadata["labels"].items() if not name.startswith(SEED_LABEL_PREFIX)}
        metadata["labels"] = without(labels, STATUS_LABEL)
    if isinstance(metadata.get("annotations"), dict):
        annotations = cast("Document", metadata["annotations"])
        metadata["annotations"] = {
            name: value for name, value in annotations.items() if name not in _SYSTEM_ANNOTATIONS
        }
    return {**without(given, "status"), "metadata": metadata}


def is_sent_whole(sent: Document, given: Document) -> bool:
    """True when `without_system_fields` took at most annotations of the system out, which no query of admission reads.

    `sent` is what it made of `given`.
    """
    taken_of, metadata = section(given, "metadata"), section(sent, "metadata")
    is_whole = "status" not in given and len(taken_of) == len(metadata)
    return is_whole and taken_of.get("labels") == metadata.get("labels")


def _never_missed(last_applied: Document) -> Document:
    """Without the seed of a shoot: a manifest that does not name it leaves the shoot where it is."""
    if last_applied.get("kind") != "Shoot" or section(last_applied, "spec").get("seedName") is None:
        return last_applied
    return {**last_applied, "spec": without(section(last_applied, "spec"), "seedName")}


def merge_patch(current: Document, patch: Document) -> Document:
    """A JSON merge patch (RFC 7386): mappings key by key, null removes, anything else replaces."""
    return _merge(current, {}, patch)


def _merge(current: Mapping[str, Any], before: Mapping[str, Any], now: Document) -> Document:
    if not current:
        return _without_nulls(now)
    merged = {name: value for name, value in current.items() if name in now or before.get(name) is None}
    for name, value in now.items():
        if value is None:
            if name not in before or before[name] is not None:
                merged.pop(name, None)
        elif isinstance(value, dict):
            given = cast("Document", value)
            merged[name] = _merge(mapping_or_empty(merged.get(name)), mapping_or_empty(before.get(name)), given)
        else:
            merged[name] = _without_nulls_below(value)
    return merged


def _without_nulls(given: Document) -> Document:
    """A mapping without nulls at any depth: itself when it has none."""
    changed: Document = {}
    for name, value in given.items():
        if value is None:
            changed[name] = None
        elif (below := _without_nulls_below(value)) is not value:
            changed[name] = below
    if not changed:
        return given
    return {name: part for name, value in given.items() if (part := changed.get(name, value)) is not None}


def _without_nulls_below(value: Any) -> Any:
    """A value whose mappings have no nulls; entries of a list that are null themselves are left to validation."""
    if isinstance(value, dict):
        return _without_nulls(cast("Document", value))
    if not isinstance(value, list):
        return value
    entries = cast("list[Any]", value)
    kept = [_without_nulls_below(entry) if isinstance(entry, dict | list) else entry for entry in entries]
    return entries if all(new is old for new, old in zip(kept, entries, strict=True)) else kept


def _merge_metadata(current: Document, before: Document, now: Document) -> Document:
    """As `_merge`, but labels and annotations never go as a whole, since the system keeps some of its own in them."""
    special = ("labels", "annotations", "finalizers", "ownerReferences")
    merged = _merge(*(without(one, *special) for one in (current, before, now)))
    for name in ("labels", "annotations"):
        mapping = _merge(section(current, name), section(before, name), section(now, name))
        if mapping or name in now:
            merged[name] = mapping
    finalizers = _merge_finalizers(*(listed(one.get("finalizers")) for one in (current, before, now)))
    if finalizers:
        merged["finalizers"] = finalizers
    owners = _merge_owners(*(mappings(one.get("ownerReferences")) for one in (current, before, now)))
    if owners:
        merged["ownerReferences"] = owners
    return merged


def _merge_finalizers(current: Sequence[Any], before: Sequence[Any], now: Sequence[Any]) -> list[Any]:
    """The system's own finalizer stays when a manifest leaves it out."""
    given, last = {hashable(entry): entry for entry in now}, Members(before)
    kept = [entry for entry in current if entry == FINALIZER or hashable(entry) in given or entry not in last]
    there = Members(kept)
    return kept + [entry for entry in given.values() if entry not in there]


def _merge_owners(current: Sequence[Document], before: Sequence[Document], now: Sequence[Document]) -> list[Document]:
    given = {owner.get("uid"): owner for owner in now}
    gone = {owner.get("uid") for owner in before}
    kept = [given.pop(uid, owner) for owner in current if (uid := owner.get("uid")) in given or uid not in gone]
    return kept + list(given.values())
