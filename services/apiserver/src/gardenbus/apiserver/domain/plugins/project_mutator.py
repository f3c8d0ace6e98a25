"""ProjectMutator: who created a project and who owns it.

Nothing is recorded of a user without a name (`system:anonymous`): whoever else has none would own the project too.
Source: `plugin/pkg/project/mutator`.
"""

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.project_owners import owner_of_members, subject_of_user, with_owner_as_member
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.users import ANONYMOUS

_FIELD = "createdBy"


def _mutate(project: Document, change: Change, _related: RelatedObjects) -> Document:
    stated = section(project, "spec")
    if not stated:
        return project
    spec = _with_people(stated, change.user) if change.old is None else _with_creator(stated, change.old)
    spec = with_owner_as_member(spec)
    return project if spec is stated else {**project, "spec": spec}


def _with_people(spec: Document, user: str) -> Document:
    """The spec of a new project with its creator, and an owner."""
    creator = subject_of_user(user) if user not in ("", ANONYMOUS) else None
    people: Document = {} if creator is None else {_FIELD: creator}
    owner = owner_of_members(spec) or creator
    if not spec.get("owner") and owner is not None:
        people["owner"] = owner
    return {**spec, **people} if people else spec


def _with_creator(spec: Document, old: Document) -> Document:
    """The spec with the creator who is stored."""
    creator = section(old, "spec").get(_FIELD)
    return spec if not creator or spec.get(_FIELD) == creator else {**spec, _FIELD: creator}


PLUGIN = AdmissionPlugin(
    name="ProjectMutator",
    acts="records who created a project; gives it an owner, by default its creator, and makes the owner a member",
    rules=(AdmissionRule(("Project",), mutate=_mutate),),
)
