"""Difference between a stored object and its replacement, computed by the writer."""

from typing import NamedTuple

from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import (
    NO_SPEC,
    Document,
    Parts,
    StoredObject,
    metadata_inside,
    section,
    split,
)
from gardenbus.common.api.document_parts import FINALIZER
from gardenbus.common.api.garden.migration_feasibility import READY_FOR_MIGRATION
from gardenbus.common.api.garden.scheduling_requirements import RESOLVED
from gardenbus.common.api.index_keys import ChangeEffects, IndexKeys, effects_of, index_keys_of

_decode = json_decoder()


class ObjectChange(NamedTuple):
    """A computed write.

    `parts` and `index_keys` are those of the new object; `differs`: anything changes; `spec`: the generation grows
    (that of a Shoot without seed also with its requirements); `beyond_status`: observers without the status need the
    change, too (as the source of a migration needs that of its destination).
    """

    parts: Parts
    index_keys: IndexKeys
    effects: ChangeEffects
    differs: bool
    spec: bool
    beyond_status: bool


def creation_of(document: Document) -> ObjectChange:
    """Compute the creation of an object. A shoot that names a seed gets the gardenlet's finalizer."""
    parts = _with_finalizer(split(document))
    effects = effects_of(parts.kind.lower(), None, document)
    return ObjectChange(parts, index_keys_of(document), effects, differs=True, spec=True, beyond_status=True)


def with_metadata_of(document: Document, change: ObjectChange) -> ObjectChange:
    """The creation of a document which differs in metadata, but not in labels or namespace, from that of a creation."""
    return change._replace(parts=change.parts._replace(meta=metadata_inside(document)))


def change_of(base: StoredObject, document: Document) -> ObjectChange:
    """Compute the replacement of `base` by a document. One that binds a shoot adds the gardenlet's finalizer."""
    written = _without_pending_operation(base, document)
    parts, index_keys = split(written), index_keys_of(written)
    if not base.parts.seed_name:
        parts = _with_finalizer(parts)
    parts = parts._replace(
        **{
            name: getattr(base.parts, name)
            for name in _TEXTS
            if _is_same_json(getattr(parts, name), getattr(base.parts, name))
        }
    )
    differs = parts != base.parts
    if not differs:
        return ObjectChange(
            parts,
            index_keys,
            ChangeEffects(outdates_decisions=False, unblocks=False),
            differs=False,
            spec=False,
            beyond_status=False,
        )
    spec = (parts.spec, parts.seed_name) != (base.parts.spec, base.parts.seed_name)
    removes = base.is_deleting and not parts.finalizers
    return ObjectChange(
        parts=parts,
        index_keys=index_keys,
        effects=effects_of(base.key.kind, base.document(), None if removes else document),
        differs=True,
        spec=spec or _requires_another_decision(base, parts),
        beyond_status=parts._replace(status=base.parts.status) != base.parts or _readiness_changed(base.parts, parts),
    )


def _requires_another_decision(base: StoredObject, parts: Parts) -> bool:
    """True where the requirements of a Shoot without seed change: a decision on those of before binds it no more."""
    if base.parts.kind != "Shoot" or base.parts.seed_name or RESOLVED.encode() not in base.parts.meta + parts.meta:
        return False
    return _resolved(base.parts) != _resolved(parts)


def _resolved(parts: Parts) -> object:
    return section(_decode(b"{%b}" % parts.meta), "annotations").get(RESOLVED)


def _readiness_changed(old: Parts, new: Parts) -> bool:
    """True when the readiness of a migration changed: the source seed depends on it."""
    if old.kind != "Shoot" or READY_FOR_MIGRATION.encode() not in old.status + new.status:
        return False
    return _readiness(old) != _readiness(new)


def _readiness(parts: Parts) -> object:
    constraints = conditions_of({"status": _decode(b"{" + parts.status + b"}")}, "constraints")
    constraint = get_condition(constraints, READY_FOR_MIGRATION) or {}
    return constraint.get("status"), constraint.get("message")


def _with_finalizer(parts: Parts) -> Parts:
    """Parts with the gardenlet's finalizer when a seed is named."""
    if not parts.seed_name or FINALIZER in parts.finalizers:
        return parts
    return parts._replace(finalizers=(*parts.finalizers, FINALIZER))


_TEXTS = ("meta", "labels", "spec", "status", "rest")


def _is_same_json(one: bytes, other: bytes) -> bool:
    """True when two JSON texts (the inside of objects) are equal, in any order of keys."""
    if one == other:
        return True
    if NO_SPEC in (one, other):
        return False
    return bool(_decode(b"{" + one + b"}") == _decode(b"{" + other + b"}"))


def _without_pending_operation(base: StoredObject, document: Document) -> Document:
    """Remove the scheduler's `pending` operation from a status that was read and written back."""
    if not base.pending:
        return document
    status = dict(section(document, "status"))
    if status.get("lastOperation") == _decode(b"{" + base.pending + b"}"):
        del status["lastOperation"]
    return {**document, "status": status}
