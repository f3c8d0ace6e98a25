"""The namespace of a Seed in the garden, and copies of the landscape's Secrets there.

Source: Gardener's `pkg/controllermanager/controller/seed/secrets`.
"""

from collections.abc import Iterable, Mapping

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, name_of
from gardenbus.common.api.identity.issued_credentials import PURPOSE_LABEL, SEEDS_ANNOTATION
from gardenbus.common.api.keys import GARDEN_NAMESPACE, seed_namespace
from gardenbus.controllermanager.domain.references import GARDEN_ROLE

NOT_COPIED = frozenset(
    {"kubeconfig", "ssh-keypair", "monitoring", "helm-pull-secret", "oci-ca-bundle", "resource-reference"}
)
"""Roles of Secrets that no seed needs as such."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def is_copied(namespace: str, labels: Mapping[str, str]) -> bool:
    """True for a Secret of the landscape that seeds get a copy of. Whoever it lets in, it is no copy of theirs."""
    role = labels.get(GARDEN_ROLE)
    return namespace == GARDEN_NAMESPACE and bool(role) and role not in NOT_COPIED and PURPOSE_LABEL not in labels


def is_for_seed(secret: Document, seed: str) -> bool:
    """False for a Secret whose annotation names other seeds."""
    seeds = section(secret, "metadata", "annotations").get(SEEDS_ANNOTATION)
    return seeds is None or seed in {each.strip() for each in str(seeds).split(",")}


def namespace_of_seed(seed: Document) -> Document:
    """The namespace of a Seed, which owns it."""
    metadata = {
        "name": seed_namespace(name_of(seed)),
        "labels": {GARDEN_ROLE: "seed"},
        "ownerReferences": [_owner(seed)],
    }
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def is_controlled(namespace: Document, seed: Document) -> bool:
    """True for a namespace that belongs to this very Seed."""
    uid = section(seed, "metadata").get("uid")
    owners = mappings(section(namespace, "metadata").get("ownerReferences"))
    return any(each.get("controller") is True and each.get("uid") == uid for each in owners)


def copies(seed: Document, originals: Iterable[Document]) -> Mapping[str, Document]:
    """Copies of Secrets for a Seed, by their names."""
    return {name_of(each): _copy(seed, each) for each in originals if is_for_seed(each, name_of(seed))}


def updated_copy(stored: Document, wanted: Document) -> Document:
    """A stored copy as it should be; the same document where it is."""
    if _content(stored) == _content(wanted):
        return stored
    kept = {name: value for name, value in stored.items() if name not in ("data", "type", "immutable")}
    return {**kept, **wanted, "metadata": {**section(stored, "metadata"), **section(wanted, "metadata")}}


def _copy(seed: Document, original: Document) -> Document:
    metadata = section(original, "metadata")
    annotations = {name: value for name, value in section(metadata, "annotations").items() if name != _LAST_APPLIED}
    copied: Document = {
        "name": name_of(original),
        "namespace": seed_namespace(name_of(seed)),
        "labels": section(metadata, "labels"),
        "annotations": annotations,
        "ownerReferences": [_owner(seed)],
    }
    content = {name: original[name] for name in ("type", "data") if name in original}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": copied, **content}


def _content(secret: Document) -> object:
    metadata = section(secret, "metadata")
    kept = [section(metadata, field) for field in ("labels", "annotations")]
    return kept, secret.get("type"), secret.get("data"), mappings(metadata.get("ownerReferences"))


def _owner(seed: Document) -> Document:
    return {
        "apiVersion": seed["apiVersion"],
        "kind": "Seed",
        "name": name_of(seed),
        "uid": section(seed, "metadata").get("uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
