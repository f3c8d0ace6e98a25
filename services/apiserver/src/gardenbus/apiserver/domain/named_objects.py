"""Admission of what an object names besides profiles and bindings: Secrets, Quotas, seeds and the like are there.

Facts: what is named newly. Of a stored object that is changed only that is looked for, and nothing once it is being
deleted. What is named is read without a guard, as by Gardener: finalizers keep it from then on.
A Seed may name a Secret for its backup that comes later: its gardenlet says so in a condition, as in Gardener.
Source: Gardener's plugin ResourceReferenceManager.
"""

from collections.abc import Iterator, Sequence

from gardenbus.apiserver.domain.rejection_messages import NOT_THERE
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, mappings
from gardenbus.common.api.garden.backup_references import backup_references
from gardenbus.common.api.garden.credentials_bindings import credentials_of, name_of
from gardenbus.common.api.garden.named_references import NamedReference, named_references
from gardenbus.common.api.garden.quotas import quota_keys
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import FieldProblem


def named_object_queries(document: Document, old: Document | None) -> Sequence[RelatedQuery]:
    """Queries of the objects that are named newly."""
    return [ObjectQuery(each.key) for each in _new(document, old)]


def admit_named_objects(document: Document, old: Document | None, related: RelatedObjects) -> None:
    """Raise InvalidResource with each newly named object that is not there."""
    problems = [
        FieldProblem(each.path, NOT_THERE(object=each.key))
        for each in _new(document, old)
        if each.key not in related.objects
    ]
    if problems:
        raise invalid(problems)


def _new(document: Document, old: Document | None) -> Sequence[NamedReference]:
    if is_deleting(document):
        return ()
    named = _named(document)
    if not named or old is None:
        return named
    before = {each.key for each in _named(old)}
    return [each for each in named if each.key not in before]


def _named(document: Document) -> Sequence[NamedReference]:
    match document.get("kind"):
        case "Shoot" | "Seed":
            return tuple(named_references(document))
        case "BackupBucket" | "BackupEntry":
            return tuple(NamedReference(*each) for each in backup_references(document))
        case "ControllerRegistration":
            return tuple(_of_registration(document))
        case _:
            return _of_binding(document)


def _of_registration(registration: Document) -> Iterator[NamedReference]:
    for index, each in enumerate(mappings(section(registration, "spec", "deployment").get("deploymentRefs"))):
        if name := name_of(each.get("name")):
            path = f"spec.deployment.deploymentRefs[{index}].name"
            yield NamedReference(path, ObjectKey("controllerdeployment", "", name))


def _of_binding(document: Document) -> Sequence[NamedReference]:
    credentials = credentials_of(document)
    field = "secretRef" if document.get("kind") == "SecretBinding" else "credentialsRef"
    named = () if credentials is None else (NamedReference(field, credentials),)
    quotas = (NamedReference(f"quotas[{index}]", key) for index, key in enumerate(quota_keys(document)))
    return (*named, *quotas)
