"""ShootExposureClass: an exposure class gives its selector and its tolerations to a shoot that names it.

Facts: the class. Source: `plugin/pkg/shoot/exposureclass`.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.admission_defaults import EXPOSURE_CLASS_REJECTIONS, with_exposure_class
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.rejection_messages import NOT_THERE
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import differ
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import FieldProblem


def exposure_class_queries(shoot: Document, old: Document | None) -> Sequence[RelatedQuery]:
    """Query of the class of a shoot, where selector or tolerations are new."""
    key = _class_key(shoot)
    if key is None:
        return ()
    is_new = old is None or differ(section(shoot, "spec"), section(old, "spec"), "seedSelector", "tolerations")
    return (ObjectQuery(key),) if is_new else ()


def exposure_class_of(shoot: Document, related: RelatedObjects) -> Document | None:
    """The class of a shoot, as far as it was queried."""
    key = _class_key(shoot)
    return related.objects.get(key) if key else None


def _mutate(shoot: Document, change: Change, related: RelatedObjects) -> Document:
    key, spec = _class_key(shoot), section(shoot, "spec")
    if key is None or not spec:
        return shoot
    exposure_class = related.objects.get(key)
    if exposure_class is None:
        if change.old is None:
            raise invalid([FieldProblem("spec.exposureClassName", NOT_THERE(object=key))])
        return shoot
    before = None if change.old is None else section(change.old, "spec")
    return {**shoot, "spec": with_exposure_class(spec, before, exposure_class)}


def _class_key(shoot: Document) -> ObjectKey | None:
    name: object = section(shoot, "spec").get("exposureClassName")
    return ObjectKey("exposureclass", "", name) if isinstance(name, str) and name else None


PLUGIN = AdmissionPlugin(
    name="ShootExposureClass",
    acts="merges the seed selector and the tolerations of a new shoot's exposure class; rejects contradictions",
    rejections=(NOT_THERE, *EXPOSURE_CLASS_REJECTIONS),
    rules=(AdmissionRule(("Shoot",), queries=exposure_class_queries, mutate=_mutate),),
)
