"""NamespacedCloudProfileValidator: the parent exists and is overridden as far as that goes; both stand in the status.

Facts: the parent. Source: `plugin/pkg/namespacedcloudprofile/validator`.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.cloud_profiles import parent_key, with_parent
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.profile_overrides import override_problems
from gardenbus.apiserver.domain.rejection_messages import NOT_THERE, RejectionMessage
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting
from gardenbus.common.errors import FieldProblem

_AT_ODDS = RejectionMessage("with {parent} above it: {reason}")


def _queries(profile: Document, _old: Document | None) -> Sequence[RelatedQuery]:
    parent = parent_key(profile)
    return (ObjectQuery(parent),) if parent else ()


def _mutate(profile: Document, _change: Change, related: RelatedObjects) -> Document:
    parent = parent_key(profile)
    above = related.objects.get(parent) if parent else None
    return profile if above is None else with_parent(profile, above)


def _admit(profile: Document, change: Change, related: RelatedObjects) -> None:
    parent = parent_key(profile)
    if parent is None:
        return
    above = related.objects.get(parent)
    if above is None:
        raise invalid([FieldProblem("spec.parent.name", NOT_THERE(object=parent))])
    own, before = section(profile, "spec"), section(change.old or {}, "spec")
    if own != before and not is_deleting(profile):
        found = override_problems(own, before, section(above, "spec"), change.now)
        if problems := [FieldProblem(each.field, _AT_ODDS(parent=parent, reason=each.reason)) for each in found]:
            raise invalid(problems)


PLUGIN = AdmissionPlugin(
    name="NamespacedCloudProfileValidator",
    acts="rejects a NamespacedCloudProfile without its parent, or at odds with it, and merges the two in the status",
    rejections=(NOT_THERE, _AT_ODDS),
    rules=(AdmissionRule(("NamespacedCloudProfile",), queries=_queries, mutate=_mutate, admit=_admit),),
)
