"""Bastion: a Bastion leads into a shoot that runs, gets its seed and provider, and goes with it.

Facts: the shoot. Source: `plugin/pkg/bastion/validator`.
"""

from collections.abc import Iterator, Sequence

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, mappings, namespace_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import FieldProblem

_NEEDED = RejectionMessage("is needed: the shoot that the bastion leads into")
_SET_ONCE = RejectionMessage("is set once: make a new bastion for another shoot")
_NOT_THERE = RejectionMessage("{shoot} not found")
_DELETING = RejectionMessage("{shoot} is being deleted")
_NO_SEED = RejectionMessage("{shoot} has no seed yet: wait until it runs")
_NO_ACCESS = RejectionMessage("{shoot} has no SSH access to its nodes (spec.provider.workersSettings.sshAccess)")

_PATH = "spec.shootRef.name"


def shoot_of_bastion(bastion: Document) -> ObjectKey | None:
    """The shoot that a Bastion leads into; None when it names none."""
    name = section(bastion, "spec", "shootRef").get("name")
    return ObjectKey("shoot", namespace_of(bastion), name) if isinstance(name, str) and name else None


def _queries(bastion: Document, old: Document | None) -> Sequence[RelatedQuery]:
    key = shoot_of_bastion(bastion)
    return (ObjectQuery(key),) if old is None and key is not None else ()


def _mutate(bastion: Document, change: Change, related: RelatedObjects) -> Document:
    """A new Bastion with seed and provider of its shoot, which owns it."""
    shoot = _shoot(bastion, related)
    if change.old is not None or shoot is None:
        return bastion
    metadata, spec = section(bastion, "metadata"), section(shoot, "spec")
    owner = {
        "apiVersion": shoot["apiVersion"],
        "kind": "Shoot",
        "name": section(shoot, "metadata").get("name"),
        "uid": section(shoot, "metadata").get("uid"),
    }
    owners = mappings(metadata.get("ownerReferences"))
    owners = owners if any(each.get("uid") == owner["uid"] for each in owners) else [*owners, owner]
    own = {"seedName": spec.get("seedName"), "providerType": section(spec, "provider").get("type")}
    filled = {name: value for name, value in own.items() if value}
    return {
        **bastion,
        "metadata": {**metadata, "ownerReferences": list(owners)},
        "spec": {**section(bastion, "spec"), **filled},
    }


def _admit(bastion: Document, change: Change, related: RelatedObjects) -> None:
    if problems := list(_problems(bastion, change, related)):
        raise invalid(problems)


def _problems(bastion: Document, change: Change, related: RelatedObjects) -> Iterator[FieldProblem]:
    key = shoot_of_bastion(bastion)
    if key is None:
        yield FieldProblem(_PATH, _NEEDED())
        return
    if change.old is not None:
        if key != shoot_of_bastion(change.old):
            yield FieldProblem(_PATH, _SET_ONCE())
        return
    shoot = _shoot(bastion, related)
    if shoot is None:
        yield FieldProblem(_PATH, _NOT_THERE(shoot=key))
    elif is_deleting(shoot):
        yield FieldProblem(_PATH, _DELETING(shoot=key))
    elif not section(shoot, "spec").get("seedName"):
        yield FieldProblem(_PATH, _NO_SEED(shoot=key))
    elif section(shoot, "spec", "provider", "workersSettings", "sshAccess").get("enabled") is False:
        yield FieldProblem(_PATH, _NO_ACCESS(shoot=key))


def _shoot(bastion: Document, related: RelatedObjects) -> Document | None:
    key = shoot_of_bastion(bastion)
    return related.objects.get(key) if key is not None else None


PLUGIN = AdmissionPlugin(
    name="Bastion",
    acts="gives a Bastion seed and provider of its shoot; rejects one whose shoot is missing, leaves, or runs nowhere",
    rejections=(_NEEDED, _SET_ONCE, _NOT_THERE, _DELETING, _NO_SEED, _NO_ACCESS),
    rules=(AdmissionRule(("Bastion",), queries=_queries, mutate=_mutate, admit=_admit),),
)
