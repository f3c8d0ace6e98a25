"""Ownership of Shoots and ManagedSeeds: adoption, release, and objects of other owners.

As Kubernetes' controllers do: what the selector matches and nobody controls is adopted, what it no longer matches is
released, and what another owner controls is never changed. An adopted Shoot must have a replica's name,
`<set>-<ordinal>`, since names show which ordinals are used up.
"""

from collections.abc import Mapping, Sequence

import msgspec

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, name_of
from gardenbus.common.api.garden.managed_seed_sets import ordinal_of, replica_name
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.owners import controller_of, controller_reference, owner_references
from gardenbus.common.api.selectors import LabelSelector, parse_selector
from gardenbus.managedseedset.domain.actions import Patch, SetEvent
from gardenbus.managedseedset.domain.replicas import Replica


class SetOwnership(msgspec.Struct, frozen=True, kw_only=True):
    """A set's replicas. `changes`: owner references to be written; `used_names`: names that no new replica can have."""

    replicas: tuple[Replica, ...]
    changes: tuple[Patch, ...] = ()
    used_names: frozenset[str] = frozenset()


def controls(managed_seed_set: Document, document: Document) -> bool:
    """True if the set is the controlling owner of an object."""
    owner = controller_of(document)
    return owner is not None and owner.get("uid") == section(managed_seed_set, "metadata").get("uid")


def classify_owned(
    managed_seed_set: Document,
    *,
    shoots: Sequence[Document],
    managed_seeds: Sequence[Document],
    seeds: Mapping[str, Document],
    usage: Mapping[str, int],
) -> SetOwnership:
    """Classify the Shoots and ManagedSeeds of the set's namespace; Seeds and their usage are given by name."""
    selector = _selector(managed_seed_set)
    by_name = {name_of(each): each for each in managed_seeds}
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
        name = name_of(shoot)
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
    others = {name_of(each) for each in (*shoots, *managed_seeds)} | set(seeds)
    ordered = tuple(sorted(replicas, key=lambda each: (each.ordinal, each.name)))
    return SetOwnership(replicas=ordered, changes=tuple(changes), used_names=frozenset(others - names))


def _changes_of_managed_seeds(
    managed_seed_set: Document, selector: LabelSelector, managed_seeds: Sequence[Document], replicas: set[str]
) -> list[Patch]:
    changes: list[Patch] = []
    for managed_seed in managed_seeds:
        belongs = section(managed_seed, "spec", "shoot").get("name") == name_of(managed_seed) in replicas
        if controls(managed_seed_set, managed_seed):
            if not belongs or not _matches(selector, managed_seed):
                changes.append(_released(managed_seed_set, managed_seed))
        elif belongs and _is_orphan(managed_seed_set, selector, managed_seed):
            changes.append(_adopted(managed_seed_set, managed_seed))
    return changes


def _is_orphan(managed_seed_set: Document, selector: LabelSelector, document: Document) -> bool:
    name = name_of(document)
    return (
        controller_of(document) is None
        and not is_deleting(document)
        and not is_deleting(managed_seed_set)
        and name == replica_name(managed_seed_set, ordinal_of(name))
        and _matches(selector, document)
    )


def _adopted(managed_seed_set: Document, document: Document) -> Patch:
    key = _key(document)
    event = SetEvent("Adopted", f"Adopted {key}, which the selector matches and no controller owns")
    return _owned(document, [*owner_references(document), controller_reference(managed_seed_set)], event)


def _released(managed_seed_set: Document, document: Document) -> Patch:
    uid = section(managed_seed_set, "metadata").get("uid")
    event = SetEvent("Released", f"Released {_key(document)}, which is no replica of the set any more")
    return _owned(document, [owner for owner in owner_references(document) if owner.get("uid") != uid], event)


def _owned(document: Document, owners: Sequence[Document], event: SetEvent) -> Patch:
    metadata = section(document, "metadata")
    patch: Document = {"ownerReferences": list(owners) or None}
    patch |= {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}
    return Patch(key=_key(document), patch={"metadata": patch}, event=event)


def _selector(managed_seed_set: Document) -> LabelSelector:
    return parse_selector(section(managed_seed_set, "spec", "selector"))


def _matches(selector: LabelSelector, document: Document) -> bool:
    return selector.meets(section(document, "metadata", "labels"))


def _key(document: Document) -> ObjectKey:
    metadata = section(document, "metadata")
    return ObjectKey(str(document["kind"]).lower(), str(metadata.get("namespace") or ""), str(metadata.get("name")))
