"""The namespace of a project: created, adopted, and released after it.

A namespace that is there already is adopted only if it says that it is meant for the project: otherwise whoever may
create projects could take any namespace. One that was adopted is kept after the project; one that was created goes
with all that is in it, unless it is the garden's own.
Source: Gardener's `pkg/controllermanager/controller/project/project/reconciler.go`.
"""

from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import FINALIZER, without_finalizer
from gardenbus.common.api.garden.projects import Project
from gardenbus.common.api.keys import GARDEN_NAMESPACE
from gardenbus.common.api.owners import controller_reference, owner_references

ROLE_LABEL = "gardener.cloud/role"
PROJECT_ROLE = "project"
PROJECT_LABEL = "project.gardener.cloud/name"
PROJECT_ANNOTATION = "namespace.gardener.cloud/project"
CREATED_ANNOTATION = "namespace.gardener.cloud/created-by-project-controller"
KEEP_ANNOTATION = "namespace.gardener.cloud/keep-after-project-deletion"


class CreateNamespace(NamedTuple):
    """There is none yet."""

    namespace: Document


class AdoptNamespace(NamedTuple):
    """There is one; it becomes this."""

    namespace: Document


class KeepNamespace(NamedTuple):
    """It is as it should be."""


class RejectNamespace(NamedTuple):
    """There is one that is not meant for this project."""

    message: str


NamespacePlan = CreateNamespace | AdoptNamespace | KeepNamespace | RejectNamespace


class ReleaseNamespace(NamedTuple):
    """It is kept, and belongs to no project any more."""

    namespace: Document


class MarkNamespace(NamedTuple):
    """It is deleted, and goes as soon as it is empty."""


class EmptyNamespace(NamedTuple):
    """It is being deleted: what is in it has to go."""


class NothingToRelease(NamedTuple):
    """It is gone, or another project's."""


ReleasePlan = ReleaseNamespace | MarkNamespace | EmptyNamespace | NothingToRelease


def with_owner(document: Document, owner: Document) -> Document:
    """A document with an ownerReference, in the place of one with the same uid."""
    others = [each for each in owner_references(document) if each.get("uid") != owner.get("uid")]
    metadata = {**section(document, "metadata"), "ownerReferences": [*others, owner]}
    return {**document, "metadata": metadata}


def plan_namespace(project: Document, namespace: Document | None) -> NamespacePlan:
    """Plan a project's namespace; `namespace` is the one of that name."""
    labels, annotations = _labels(project), _annotations(project)
    name = Project.from_document(project).namespace
    if namespace is None:
        return CreateNamespace(_new_namespace(project, name))
    metadata = section(namespace, "metadata")
    if metadata.get("deletionTimestamp"):
        return RejectNamespace(f"namespace {name} is being deleted")
    if not labels.items() <= section(metadata, "labels").items():
        wanted = ", ".join(f"{label}={value}" for label, value in labels.items())
        return RejectNamespace(f"namespace {name} cannot be used as it needs the labels of the project: {wanted}")
    stated = section(metadata, "annotations")
    if PROJECT_ANNOTATION in stated and not annotations.items() <= stated.items():
        return RejectNamespace(f"namespace {name} is already in use by another project")
    kept = {} if CREATED_ANNOTATION in stated else {KEEP_ANNOTATION: "true"}
    adopted = with_owner(namespace, controller_reference(project))
    adopted["metadata"] = {**adopted["metadata"], "annotations": {**stated, **annotations, **kept}}
    return KeepNamespace() if adopted == namespace else AdoptNamespace(adopted)


def plan_release(project: Document, namespace: Document | None) -> ReleasePlan:
    """Plan the release of the namespace of a project that is being deleted, and has no shoots left."""
    if namespace is None:
        return NothingToRelease()
    metadata = section(namespace, "metadata")
    annotations = section(metadata, "annotations")
    if annotations.get(PROJECT_ANNOTATION) != section(project, "metadata").get("uid"):
        return NothingToRelease()
    if annotations.get(KEEP_ANNOTATION) == "true":
        return ReleaseNamespace(_released(project, namespace))
    return EmptyNamespace() if metadata.get("deletionTimestamp") else MarkNamespace()


def _new_namespace(project: Document, name: str) -> Document:
    kept = {KEEP_ANNOTATION: "true"} if name == GARDEN_NAMESPACE else {}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": _labels(project),
            "annotations": {**_annotations(project), CREATED_ANNOTATION: "true", **kept},
            "finalizers": [FINALIZER],
            "ownerReferences": [controller_reference(project)],
        },
    }


def _released(project: Document, namespace: Document) -> Document:
    """A kept namespace without what made it the project's."""
    metadata = section(namespace, "metadata")
    uid = section(project, "metadata").get("uid")
    dropped = {ROLE_LABEL, PROJECT_LABEL, PROJECT_ANNOTATION, CREATED_ANNOTATION, KEEP_ANNOTATION}
    changes = {
        field: {name: value for name, value in section(metadata, field).items() if name not in dropped}
        for field in ("labels", "annotations")
    }
    owners = [each for each in owner_references(namespace) if each.get("uid") != uid]
    return without_finalizer({**namespace, "metadata": {**metadata, **changes, "ownerReferences": owners}})


def _labels(project: Document) -> dict[str, str]:
    return {ROLE_LABEL: PROJECT_ROLE, PROJECT_LABEL: str(section(project, "metadata").get("name"))}


def _annotations(project: Document) -> dict[str, str]:
    return {PROJECT_ANNOTATION: str(section(project, "metadata").get("uid"))}
