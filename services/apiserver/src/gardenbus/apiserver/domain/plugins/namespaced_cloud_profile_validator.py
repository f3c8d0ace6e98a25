"""NamespacedCloudProfileValidator: the parent exists, and the merged profile stands in the status.

Facts: the parent. Source: `plugin/pkg/namespacedcloudprofile/validator`.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.cloud_profiles import parent_key, with_parent
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.rejection_messages import NOT_THERE
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects, RelatedQuery
from gardenbus.common.api.document import Document
from gardenbus.common.api.validation.field_cursor import invalid
from gardenbus.common.errors import FieldProblem


def _queries(profile: Document, _old: Document | None) -> Sequence[RelatedQuery]:
    parent = parent_key(profile)
    return (ObjectQuery(parent),) if parent else ()


def _mutate(profile: Document, _change: Change, related: RelatedObjects) -> Document:
    parent = parent_key(profile)
    above = related.objects.get(parent) if parent else None
    return profile if above is None else with_parent(profile, above)


def _admit(profile: Document, _change: Change, related: RelatedObjects) -> None:
    parent = parent_key(profile)
    if parent is not None and parent not in related.objects:
        raise invalid([FieldProblem("spec.parent.name", NOT_THERE(object=parent))])


PLUGIN = AdmissionPlugin(
    name="NamespacedCloudProfileValidator",
    acts="rejects a NamespacedCloudProfile without its parent, and merges the two in the status",
    rejections=(NOT_THERE,),
    rules=(AdmissionRule(("NamespacedCloudProfile",), queries=_queries, mutate=_mutate, admit=_admit),),
)
