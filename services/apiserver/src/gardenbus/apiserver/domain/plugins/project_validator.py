"""ProjectValidator: a project and its namespace stay while shoots are in it.

Source: `plugin/pkg/project/validator`, and the admission controller's webhook for namespaces.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.document_parts import key_of_document
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.projects import Project
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import WritePrecondition


def _project_guards(stored: Document) -> Sequence[WritePrecondition]:
    key, owned = key_of_document(stored), ObjectKey("namespace", "", Project.from_document(stored).namespace)
    return (WritePrecondition("references", owned.stored, f"{key}: there are shoots in its namespace {owned.name}"),)


def _namespace_guards(stored: Document) -> Sequence[WritePrecondition]:
    key = key_of_document(stored)
    return (
        WritePrecondition("references", key.stored, f"{key}: there are shoots in it"),
        WritePrecondition("claim", f"namespace/{key.name}", f"{key}: it is a project's, and goes after it"),
    )


PLUGIN = AdmissionPlugin(
    name="ProjectValidator",
    acts="keeps a project with shoots, and the namespace of a project",
    rules=(
        AdmissionRule(("Project",), deletion_guards=_project_guards),
        AdmissionRule(("Namespace",), deletion_guards=_namespace_guards),
    ),
)
