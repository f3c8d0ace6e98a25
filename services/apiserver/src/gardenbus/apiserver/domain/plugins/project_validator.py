"""ProjectValidator: namespaces of projects have their prefix, and stay with the project while shoots are in them.

Source: `plugin/pkg/project/validator`, and the admission controller's webhook for namespaces.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import is_protected, key_of_document
from gardenbus.common.api.garden.projects import Project
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.api.shown_values import shown
from gardenbus.common.errors import FieldProblem
from gardenbus.common.ports.store import WritePrecondition

_PREFIX = f"{GARDEN_NAMESPACE}-"
_UNPREFIXED = RejectionMessage(
    f"{{namespace}} has to begin with {_PREFIX}: only the garden's own is {GARDEN_NAMESPACE}"
)
_SHOOTS_OF_PROJECT = RejectionMessage("{project}: there are shoots in its namespace {namespace}")
_SHOOTS = RejectionMessage("{namespace}: there are shoots in it")
_OF_PROJECT = RejectionMessage("{namespace}: it is a project's, and goes after it")


def _admit(project: Document, change: Change, _related: RelatedObjects) -> None:
    """Check the namespace of a new project: those stored before keep theirs."""
    namespace = Project.from_document(project).namespace
    if change.old is None and namespace != GARDEN_NAMESPACE and not namespace.startswith(_PREFIX):
        raise invalid([FieldProblem("spec.namespace", _UNPREFIXED(namespace=shown(namespace)))])


def _project_guards(stored: Document) -> Sequence[WritePrecondition]:
    if is_protected(stored):
        return ()
    key, owned = key_of_document(stored), ObjectKey("namespace", "", Project.from_document(stored).namespace)
    return (WritePrecondition("references", owned.stored, _SHOOTS_OF_PROJECT(project=key, namespace=owned.name)),)


def _namespace_guards(stored: Document) -> Sequence[WritePrecondition]:
    key = key_of_document(stored)
    return (
        WritePrecondition("references", key.stored, _SHOOTS(namespace=key)),
        WritePrecondition("claim", f"namespace/{key.name}", _OF_PROJECT(namespace=key)),
    )


PLUGIN = AdmissionPlugin(
    name="ProjectValidator",
    acts="rejects a namespace without the prefix garden-; keeps a project with shoots, and the namespace of a project",
    rejections=(_UNPREFIXED, _SHOOTS_OF_PROJECT, _SHOOTS, _OF_PROJECT),
    rules=(
        AdmissionRule(("Project",), admit=_admit, deletion_guards=_project_guards),
        AdmissionRule(("Namespace",), deletion_guards=_namespace_guards),
    ),
)
