"""SchedulingRequirements: what a shoot requires of its seed, over the defaults of its project, is resolved. Ours.

Facts: the Project of the shoot's namespace. Its defaults reach a shoot with the next write of it. A priority above what
it allows takes the verb `prioritize`, and so does that allowance itself.
"""

from collections.abc import Mapping, Sequence

from gardenbus.apiserver.domain.authorization.custom_verbs import TAKES_VERB
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import ProjectQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import namespace_of
from gardenbus.common.api.garden.scheduling_order import MAX_PRIORITY, max_priority
from gardenbus.common.api.garden.scheduling_requirements import REQUIREMENTS, RESOLVED, resolved_of, with_resolved
from gardenbus.common.errors import FieldProblem

_OF_ADMISSION = RejectionMessage("is written by admission alone: leave it out, and state {requirements}")

_LATE_GATES = RejectionMessage("gates can only be added when a shoot is created, and taken away later: {gates}")


def _queries(shoot: Document, _old: Document | None) -> Sequence[RelatedQuery]:
    return (ProjectQuery(namespace_of(shoot)),)


def _admit(shoot: Document, change: Change, related: RelatedObjects) -> None:
    new, old = resolved_of(shoot), resolved_of(change.old or {})
    added = sorted(set(new.gates) - set(old.gates))
    if added and change.old is not None:
        field = f"metadata.annotations[{REQUIREMENTS}].schedulingGates"
        raise invalid([FieldProblem(field, _LATE_GATES(gates=", ".join(added)))])
    if new.priority != old.priority and new.priority > max_priority(related.projects.get(namespace_of(shoot))):
        change.check_verbs(change.old, shoot)


def _admit_project(project: Document, change: Change, _related: RelatedObjects) -> None:
    if _stated_cap(project) != _stated_cap(change.old):
        change.check_verbs(change.old, project)


def _stated_cap(project: Document | None) -> object:
    return section(project or {}, "metadata", "annotations").get(MAX_PRIORITY)


def _resolved(shoot: Document) -> object:
    return section(shoot, "metadata", "annotations").get(RESOLVED)


def plugin(priority_by_purpose: Mapping[str, int]) -> AdmissionPlugin:
    """The plug-in with the priorities of shoots that state none, by their purpose."""

    def mutate(shoot: Document, change: Change, related: RelatedObjects) -> Document:
        resolved = with_resolved(shoot, related.projects.get(namespace_of(shoot)), priority_by_purpose)
        stated = _resolved(change.given)
        if stated is not None and stated not in (_resolved(change.old or {}), _resolved(resolved)):
            field = f"metadata.annotations[{RESOLVED}]"
            raise invalid([FieldProblem(field, _OF_ADMISSION(requirements=REQUIREMENTS))])
        return resolved

    return AdmissionPlugin(
        name="SchedulingRequirements",
        acts=(
            "resolves what a shoot requires of its seed, over the defaults of its project; rejects gates that come"
            " later, and priorities above what the project allows"
        ),
        rejections=(_OF_ADMISSION, _LATE_GATES, TAKES_VERB),
        rules=(
            AdmissionRule(("Shoot",), queries=_queries, mutate=mutate, admit=_admit),
            AdmissionRule(("Project",), admit=_admit_project),
        ),
    )


PLUGIN = plugin({})
