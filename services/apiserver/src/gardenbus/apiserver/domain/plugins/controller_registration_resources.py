"""ControllerRegistrationResources: one primary registration for each kind and type of extension.

Facts: all ControllerRegistrations, only where the resources of one change. Of two that are created in the same instant
the store takes one: to be primary is a claim of an object (`IndexKeys.claims`). Source:
`plugin/pkg/controllerregistration/resources`.
"""

from collections.abc import Iterator, Sequence

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import KindQuery, RelatedObjects, RelatedQuery
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, name_of
from gardenbus.common.errors import Forbidden

_PRIMARY = RejectionMessage(
    "spec.resources[{index}]: the ControllerRegistration {holder} is primary for {kind} of the type {type}; write"
    " primary: false"
)

_KIND = "controllerregistration"


def _queries(registration: Document, old: Document | None) -> Sequence[RelatedQuery]:
    return (KindQuery(_KIND),) if _is_checked(registration, old) else ()


def _admit(registration: Document, change: Change, related: RelatedObjects) -> None:
    if not _is_checked(registration, change.old):
        return
    taken = {
        pair: name_of(other)
        for other in related.all_of.get(_KIND, ())
        if name_of(other) != name_of(registration)
        for _, pair in _primaries(other)
    }
    for index, (kind, of_type) in _primaries(registration):
        if holder := taken.get((kind, of_type)):
            raise Forbidden(_PRIMARY(index=index, holder=holder, kind=kind, type=of_type))


def _is_checked(registration: Document, old: Document | None) -> bool:
    resources = section(registration, "spec").get("resources")
    return bool(resources) and (old is None or section(old, "spec").get("resources") != resources)


def _primaries(registration: Document) -> Iterator[tuple[int, tuple[str, str]]]:
    """Index, kind and type of each resource that it is primary for: of all that do not say otherwise."""
    for index, resource in enumerate(mappings(section(registration, "spec").get("resources"))):
        if resource.get("primary") is not False:
            yield index, (str(resource.get("kind")), str(resource.get("type")))


PLUGIN = AdmissionPlugin(
    name="ControllerRegistrationResources",
    acts="rejects a second primary ControllerRegistration for a kind and type of extension",
    rejections=(_PRIMARY,),
    rules=(AdmissionRule(("ControllerRegistration",), queries=_queries, admit=_admit),),
)
