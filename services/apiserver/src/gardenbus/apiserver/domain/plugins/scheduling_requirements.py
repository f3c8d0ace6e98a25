"""SchedulingRequirements: what a shoot requires of its seed, over the defaults of its project, is resolved. Ours.

Facts: the Project of the shoot's namespace. Its defaults reach a shoot with the next write of it.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import ProjectQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import namespace_of
from gardenbus.common.api.garden.scheduling_requirements import REQUIREMENTS, RESOLVED, with_resolved
from gardenbus.common.errors import FieldProblem

_OF_ADMISSION = RejectionMessage("is written by admission alone: leave it out, and state {requirements}")


def _queries(shoot: Document, _old: Document | None) -> Sequence[RelatedQuery]:
    return (ProjectQuery(namespace_of(shoot)),)


def _mutate(shoot: Document, change: Change, related: RelatedObjects) -> Document:
    resolved = with_resolved(shoot, related.projects.get(namespace_of(shoot)))
    stated = _resolved(change.given)
    if stated is not None and stated not in (_resolved(change.old or {}), _resolved(resolved)):
        field = f"metadata.annotations[{RESOLVED}]"
        raise invalid([FieldProblem(field, _OF_ADMISSION(requirements=REQUIREMENTS))])
    return resolved


def _resolved(shoot: Document) -> object:
    return section(shoot, "metadata", "annotations").get(RESOLVED)


PLUGIN = AdmissionPlugin(
    name="SchedulingRequirements",
    acts="resolves what a shoot requires of its seed, over the defaults of its project",
    rejections=(_OF_ADMISSION,),
    rules=(AdmissionRule(("Shoot",), queries=_queries, mutate=_mutate),),
)
