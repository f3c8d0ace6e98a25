"""ShootValidator: the cloud profile offers what a shoot wants, its seed can have it, and what changes may change.

Facts: the profile, the seed and the Project. Source: `plugin/pkg/shoot/validator`.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.kubernetes_versions import VERSION_REJECTIONS, version_problems
from gardenbus.apiserver.domain.migration import MOVING, admit_change
from gardenbus.apiserver.domain.placed_shoots import PLACED_REJECTIONS, admit_placed, placed_shoot_queries
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.profile_admission import (
    NOT_ALLOWED,
    NOT_COMPLETED,
    NOT_OFFERED,
    OTHER_TYPE,
    admit_offered,
    profile_queries,
)
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import ProjectQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.apiserver.domain.validation.workerless import workerless_warnings
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import differ, is_deleting, mappings, name_of, namespace_of
from gardenbus.common.api.garden.hibernation import is_hibernation_enabled
from gardenbus.common.errors import Forbidden

_PROJECT_DELETING = RejectionMessage("metadata.namespace: the project {project} is being deleted")

_NOT_POSSIBLE = RejectionMessage("spec.hibernation.enabled: the constraint HibernationPossible is {status}: {message}")

_FROZEN = RejectionMessage("spec.{field}: cannot be changed while the shoot is being deleted")

LONGEST_NAMES = 21
"""Characters that project and shoot name should have together; Gardener allows no more."""


def _queries(shoot: Document, old: Document | None) -> Sequence[RelatedQuery]:
    project = (ProjectQuery(namespace_of(shoot)),) if old is None else ()
    return (*project, *placed_shoot_queries(shoot, old))


def _warn(shoot: Document, change: Change, related: RelatedObjects) -> Sequence[str]:
    if change.old is not None:
        return ()
    return (*_name_warnings(shoot, related), *workerless_warnings(section(shoot, "spec")))


def _name_warnings(shoot: Document, related: RelatedObjects) -> Sequence[str]:
    project, namespace = related.projects.get(namespace_of(shoot)), namespace_of(shoot)
    if project is None:
        return (f"metadata.namespace: {namespace} belongs to no Project: the shoot waits until one has it",)
    length = len(name_of(project)) + len(name_of(shoot))
    if length > LONGEST_NAMES:
        together = f"{length} characters together"
        return (f"metadata.name: project and shoot name have {together}, Gardener allows {LONGEST_NAMES}",)
    return ()


def _admit(shoot: Document, change: Change, related: RelatedObjects) -> None:
    project = related.projects.get(namespace_of(shoot))
    if change.old is None and project is not None and is_deleting(project):
        raise Forbidden(_PROJECT_DELETING(project=name_of(project)))
    if change.old is not None:
        _admit_frozen(shoot, change.given, change.old)
        admit_change(shoot, change.old)
        _admit_hibernation(shoot, change.old)
    _admit_versions(shoot, change.old)
    admit_placed(shoot, change.old or {}, related)
    admit_offered(shoot, change.old, related, now=change.now)


def _admit_frozen(shoot: Document, given: Document, old: Document) -> None:
    """A shoot that is being deleted is torn down as it stands; what plug-ins fill in is no change of its sender.

    Source: `ValidateShootSpecUpdate` in Gardener's `pkg/api/core/validation/shoot.go`.
    """
    if not is_deleting(old):
        return
    before = section(old, "spec")
    changed = [_differing(section(each, "spec"), before) for each in (shoot, given)]
    if all(changed):
        raise Forbidden(_FROZEN(field=min(changed[0])))


def _differing(spec: Document, before: Document) -> Sequence[str]:
    return [field for field in spec.keys() | before.keys() if spec.get(field) != before.get(field)]


def _admit_hibernation(shoot: Document, old: Document) -> None:
    """A cluster that could not be woken up again is not put to sleep."""
    if is_hibernation_enabled(section(old, "spec")) or not is_hibernation_enabled(section(shoot, "spec")):
        return
    for constraint in mappings(section(shoot, "status").get("constraints")):
        if constraint.get("type") == "HibernationPossible" and (status := constraint.get("status")) != "True":
            raise Forbidden(_NOT_POSSIBLE(status=status, message=constraint.get("message")))


def _admit_versions(shoot: Document, old: Document | None) -> None:
    spec, before = section(shoot, "spec"), section(old or {}, "spec")
    if old is not None and (is_deleting(shoot) or not differ(spec, before, "kubernetes", "provider")):
        return
    if problems := list(version_problems(spec, before)):
        raise invalid(problems)


PLUGIN = AdmissionPlugin(
    name="ShootValidator",
    acts="rejects what the cloud profile does not offer, a seed that cannot take the shoot, and forbidden changes",
    rejections=(
        *(_PROJECT_DELETING, _FROZEN, MOVING, _NOT_POSSIBLE),
        *(*VERSION_REJECTIONS, *PLACED_REJECTIONS, NOT_OFFERED, NOT_COMPLETED, NOT_ALLOWED, OTHER_TYPE),
    ),
    rules=(
        AdmissionRule(("Shoot",), queries=profile_queries),
        AdmissionRule(("Shoot",), queries=_queries, warn=_warn, admit=_admit),
    ),
)
