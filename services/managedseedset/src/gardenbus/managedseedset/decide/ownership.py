"""Whose a Shoot or a ManagedSeed is: what a set takes in, what it lets go, and what it must leave alone.

As controllers of Kubernetes do it: what the selector matches and nobody controls is adopted, what it no longer matches
is released, and what another owner controls is never touched. A Shoot that is adopted must be called as a replica is,
`<set>-<ordinal>`, since its name says which ordinals are used up.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.managed_seed_sets import ordinal_of, owner_reference, replica_name
from gardenbus.common.resources.selectors import LabelSelector, parse_selector
from gardenbus.managedseedset.decide.actions import Patch, SetEvent
from gardenbus.managedseedset.decide.replicas import Replica, is_deleting


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """What is a set's. `changes`: owners to be written; `taken`: names that no new replica can have."""

    replicas: tuple[Replica, ...]
    changes: tuple[Patch, ...] = ()
    taken: frozenset[str] = frozenset()


def controls(managed_seed_set: Document, document: Document) -> bool:
    """Whether the set is the controlling owner of an object."""
    owner = controller_of(document)
    return owner is not None and owner.get("uid") == section(managed_seed_set, "metadata").get("uid")


def controller_of(document: Document) -> Document | None:
    """The ownerReference that says who controls an object, or None."""
    return next((owner for owner in _owners(document) if owner.get("controller") is True), None)


def family_of(
    managed_seed_set: Document,
    *,
    shoots: Sequence[Document],
    managed_seeds: Sequence[Document],
    seeds: Mapping[str, Document],
    usage: Mapping[str, int],
) -> Family:
    """Sort the Shoots and ManagedSeeds of the set's namespace; Seeds and their usage are given by name."""
    selector = _selector(managed_seed_set)
    by_name = {_name(each): each for each in managed_seeds}
    changes: list[Patch] = []
    replicas: list[Replica] = []
    for shoot in shoots:
        is_ours = controls(managed_seed_set, shoot)
        if is_ours and not _matches(selector, shoot):
            changes.append(_released(managed_seed_set, shoot))
            is_ours = False
        elif not is_ours and _is_orphan(managed_seed_set, selector, shoot):
            changes.append(_adopted(managed_seed_set, shoot))
        if not is_ours:
            continue
        name = _name(shoot)
        managed_seed = by_name.get(name)
        if managed_seed is not None and section(managed_seed, "spec", "shoot").get("name") != name:
            managed_seed = None
        replicas.append(
            Replica(
                name=name,
                shoot=shoot,
                managed_seed=managed_seed,
                seed=seeds.get(name),
                usage=usage.get(name, 0),
                is_foreign=managed_seed is not None and not controls(managed_seed_set, managed_seed),
            )
        )
    names = {replica.name for replica in replicas}
    changes += _changes_of_managed_seeds(managed_seed_set, selector, managed_seeds, names)
    others = {_name(each) for each in (*shoots, *managed_seeds)} | set(seeds)
    ordered = tuple(sorted(replicas, key=lambda each: (each.ordinal, each.name)))
    return Family(replicas=ordered, changes=tuple(changes), taken=frozenset(others - names))


def _changes_of_managed_seeds(
    managed_seed_set: Document, selector: LabelSelector, managed_seeds: Sequence[Document], replicas: set[str]
) -> list[Patch]:
    changes: list[Patch] = []
    for managed_seed in managed_seeds:
        belongs = section(managed_seed, "spec", "shoot").get("name") == _name(managed_seed) in replicas
        if controls(managed_seed_set, managed_seed):
            if not belongs or not _matches(selector, managed_seed):
                changes.append(_released(managed_seed_set, managed_seed))
        elif belongs and _is_orphan(managed_seed_set, selector, managed_seed):
            changes.append(_adopted(managed_seed_set, managed_seed))
    return changes


def _is_orphan(managed_seed_set: Document, selector: LabelSelector, document: Document) -> bool:
    name = _name(document)
    return (
        controller_of(document) is None
        and not is_deleting(document)
        and not is_deleting(managed_seed_set)
        and name == replica_name(managed_seed_set, ordinal_of(name))
        and _matches(selector, document)
    )


def _adopted(managed_seed_set: Document, document: Document) -> Patch:
    key = _key(document)
    event = SetEvent("Adopted", f"Adopted {key}, which the selector matches and nobody controls")
    return _owned(document, [*_owners(document), owner_reference(managed_seed_set)], event)


def _released(managed_seed_set: Document, document: Document) -> Patch:
    uid = section(managed_seed_set, "metadata").get("uid")
    event = SetEvent("Released", f"Released {_key(document)}, which is no replica of the set any more")
    return _owned(document, [owner for owner in _owners(document) if owner.get("uid") != uid], event)


def _owned(document: Document, owners: Sequence[Document], event: SetEvent) -> Patch:
    metadata = section(document, "metadata")
    patch: Document = {"ownerReferences": list(owners) or None}
    patch |= {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}
    return Patch(key=_key(document), patch={"metadata": patch}, event=event)


def _selector(managed_seed_set: Document) -> LabelSelector:
    return parse_selector(section(managed_seed_set, "spec", "selector"))


def _matches(selector: LabelSelector, document: Document) -> bool:
    return selector.meets(section(document, "metadata", "labels"))


def _owners(document: Document) -> Sequence[Document]:
    owners: Any = section(document, "metadata").get("ownerReferences")
    listed = cast("list[Any]", owners) if isinstance(owners, list) else []
    return [cast("Document", owner) for owner in listed if isinstance(owner, dict)]


def _key(document: Document) -> ObjectKey:
    metadata = section(document, "metadata")
    return ObjectKey(str(document["kind"]).lower(), str(metadata.get("namespace") or ""), str(metadata.get("name")))


def _name(document: Document) -> str:
    return str(section(document, "metadata").get("name") or "")
