"""Admission: what changes a manifest, who may not be admitted, and what guards a deletion."""

from collections.abc import Mapping, Sequence

import msgspec

from gardenbus.common.ports.store import Guard
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey


class ObjectQuery(msgspec.Struct, frozen=True, tag=True):
    """Fetch one object (its whole manifest)."""

    key: ObjectKey


class ProjectQuery(msgspec.Struct, frozen=True, tag=True):
    """Find the Project whose spec.namespace this is."""

    namespace: str


FactQuery = ObjectQuery | ProjectQuery


class Facts(msgspec.Struct, frozen=True):
    """What was found: objects by key and Projects by their namespace; what is missing was not there."""

    objects: Mapping[ObjectKey, Document] = {}
    projects: Mapping[str, Document] = {}


class Mutated(msgspec.Struct, frozen=True):
    """The manifest as it shall be stored, and what its sender should know."""

    document: Document
    warnings: tuple[str, ...] = ()


def facts_needed(document: Document, old: Document | None) -> Sequence[FactQuery]:
    """What `mutate` and `admit` must know about other objects."""
    _ = document, old
    return ()


def mutate(document: Document, old: Document | None, facts: Facts, *, user: str) -> Mutated:
    """Fill in defaults and what other objects prescribe. Raises Forbidden on conflicts."""
    _ = old, facts, user
    return Mutated(document)


def admit(document: Document, old: Document | None, facts: Facts) -> None:
    """Check a valid manifest against other objects. Raises Forbidden or InvalidResource."""
    _ = document, old, facts


def delete_guards(stored: Document) -> Sequence[Guard]:
    """The sets that must be empty for this object to be deleted."""
    _ = stored
    return ()


def confirm_deletion(document: Document) -> None:
    """Raise Forbidden unless the object carries its confirmation, where its kind needs one."""
    _ = document
