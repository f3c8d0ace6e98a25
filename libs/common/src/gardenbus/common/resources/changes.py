"""What a write changes: the difference between a stored object and the document that shall replace it."""

from typing import NamedTuple

import msgspec

from gardenbus.common.resources.conditions import conditions_of, get_condition
from gardenbus.common.resources.derived import FINALIZER, Derived, Meaning, derive, meaning_of
from gardenbus.common.resources.document import NO_SPEC, Document, Parts, StoredObject, section, split
from gardenbus.common.resources.migrating import READY_FOR_MIGRATION

_decode = msgspec.json.Decoder().decode


class Change(NamedTuple):
    """A write, worked out.

    `parts` and `derived` are what shall stand; `differs` is whether anything does, `spec` whether the generation
    grows, `beyond_status` whether those who see the shoot without its status must hear of it
    (as the source of a migration must of its destination).
    """

    parts: Parts
    derived: Derived
    meaning: Meaning
    differs: bool
    spec: bool
    beyond_status: bool


def creation_of(document: Document) -> Change:
    """Work out the creation of an object. A shoot that comes with a seed is held by the gardenlet's finalizer."""
    parts = _held(split(document))
    meaning = meaning_of(parts.kind.lower(), None, document)
    return Change(parts, derive(document), meaning, differs=True, spec=True, beyond_status=True)


def change_of(base: StoredObject, document: Document) -> Change:
    """Work out the replacement of `base` by a document. One that places a shoot adds the gardenlet's finalizer."""
    parts = split(_without_refusal(base, document))
    if not base.parts.seed_name:
        parts = _held(parts)
    parts = parts._replace(
        **{name: getattr(base.parts, name) for name in _TEXTS if _same(getattr(parts, name), getattr(base.parts, name))}
    )
    differs = parts != base.parts
    if not differs:
        return Change(
            parts, derive(document), Meaning(gate=False, gain=False), differs=False, spec=False, beyond_status=False
        )
    spec = (parts.spec, parts.seed_name) != (base.parts.spec, base.parts.seed_name)
    removes = base.is_deleting and not parts.finalizers
    return Change(
        parts=parts,
        derived=derive(document),
        meaning=meaning_of(base.key.kind, base.document(), None if removes else document),
        differs=True,
        spec=spec,
        beyond_status=parts._replace(status=base.parts.status) != base.parts or _turns(base.parts, parts),
    )


def _turns(old: Parts, new: Parts) -> bool:
    """Whether a shoot that shall move may now, or may not any more: its source seed waits to be told."""
    if old.kind != "Shoot" or READY_FOR_MIGRATION.encode() not in old.status + new.status:
        return False
    return _readiness(old) != _readiness(new)


def _readiness(parts: Parts) -> object:
    constraints = conditions_of({"status": _decode(b"{" + parts.status + b"}")}, "constraints")
    constraint = get_condition(constraints, READY_FOR_MIGRATION) or {}
    return constraint.get("status"), constraint.get("message")


def _held(parts: Parts) -> Parts:
    """The same with the gardenlet's finalizer when a seed is named."""
    if not parts.seed_name or FINALIZER in parts.finalizers:
        return parts
    return parts._replace(finalizers=(*parts.finalizers, FINALIZER))


_TEXTS = ("meta", "labels", "spec", "status", "rest")


def _same(one: bytes, other: bytes) -> bool:
    """Whether two JSON texts (the inside of objects) mean the same, whatever the order of their keys."""
    if one == other:
        return True
    if NO_SPEC in (one, other):
        return False
    return bool(_decode(b"{" + one + b"}") == _decode(b"{" + other + b"}"))


def _without_refusal(base: StoredObject, document: Document) -> Document:
    """Take the scheduler's refusal, which the store keeps apart, out of the status that a reader wrote back."""
    if not base.pending:
        return document
    status = dict(section(document, "status"))
    if status.get("lastOperation") == _decode(b"{" + base.pending + b"}"):
        del status["lastOperation"]
    return {**document, "status": status}
