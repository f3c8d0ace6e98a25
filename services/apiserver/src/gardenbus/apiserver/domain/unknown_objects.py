"""Manifest of a shoot that the store neither has nor remembers, by what its gardenlet holds. Pure."""

from gardenbus.common.api.document import Document, StoredObject, encode, section
from gardenbus.common.api.document_parts import FINALIZER
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import UnknownObject

MANIFEST_LIMIT = 256 * 1024
"""Bytes of a manifest that is kept; the store keeps up to 1,000 of them."""

FORGETTABLE_KINDS = ("shoot", "managedseed", "work")
"""Kinds of which something runs at an agent."""

_IDENTITY = {"creationTimestamp": str, "generation": int, "uid": str}


def adoptable_manifest(held: Document, key: ObjectKey, *, uid: str, seed: str) -> Document:
    """The manifest of a Shoot on this seed by what its gardenlet holds; empty if that is not this Shoot's."""
    metadata = section(held, "metadata")
    is_its_own = (
        key.kind == "shoot"
        and held.get("kind") == "Shoot"
        and (metadata.get("namespace"), metadata.get("name"), metadata.get("uid")) == (key.namespace, key.name, uid)
        and all(isinstance(metadata.get(name), wanted) for name, wanted in _IDENTITY.items())
    )
    if not is_its_own:
        return {}
    kept = {name: value for name, value in metadata.items() if not name.startswith("deletion")}
    placed = {part: {**section(held, part), "seedName": seed} for part in ("spec", "status")}
    manifest = {"apiVersion": held.get("apiVersion"), "kind": "Shoot", "metadata": kept, **placed}
    return manifest if len(encode(manifest)) <= MANIFEST_LIMIT else {}


def as_bound(stored: StoredObject, unknown: UnknownObject) -> Document:
    """A stored shoot without a seed, bound to where it runs: with the spec that it has there, unless it changed since.

    A bind adds one generation, and the defaults of the seed: what runs is newer than what is stored by that at least.
    """
    document = stored.document()
    held = unknown.manifest
    is_newer = bool(held) and section(held, "metadata")["generation"] > stored.generation
    spec = section(held if is_newer else document, "spec")
    finalizers = [name for name in document["metadata"].get("finalizers") or () if name != FINALIZER]
    return {
        **document,
        "metadata": {**document["metadata"], "finalizers": [*finalizers, FINALIZER]},
        "spec": {**spec, "seedName": unknown.seed},
    }
