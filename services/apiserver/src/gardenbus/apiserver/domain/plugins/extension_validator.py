"""ExtensionValidator: the types of extensions that a changed spec names are registered.

Facts: all ControllerRegistrations; as long as there is none, nothing is checked. They are read without a guard on the
write: a type whose registration goes in the same instant leaves the object as if it had come a moment earlier. Source:
`plugin/pkg/global/extensionvalidation`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import KindQuery, RelatedObjects, RelatedQuery
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting
from gardenbus.common.api.garden.extensions import (
    REGISTRATION,
    NeededExtension,
    needed_by_bucket,
    needed_by_seed,
    needed_by_shoot,
    registered,
)
from gardenbus.common.api.shown_values import shown
from gardenbus.common.errors import Forbidden

_NOT_REGISTERED = RejectionMessage(
    "given {kind} uses non-registered extensions: {extensions}. Apply a ControllerRegistration for it"
)

_NEEDED: Mapping[str, Callable[[Document], Iterator[NeededExtension]]] = {
    "Shoot": needed_by_shoot,
    "Seed": needed_by_seed,
    "BackupBucket": needed_by_bucket,
}


def _queries(document: Document, old: Document | None) -> Sequence[RelatedQuery]:
    return (KindQuery(REGISTRATION),) if _is_checked(document, old) else ()


def _admit(document: Document, change: Change, related: RelatedObjects) -> None:
    registrations = related.all_of.get(REGISTRATION, ())
    if not registrations or not _is_checked(document, change.old):
        return
    offered = registered(registrations)
    kind = str(document.get("kind"))
    missing = [need for need in _NEEDED[kind](section(document, "spec")) if (need.kind, need.type) not in offered]
    if missing:
        details = "; ".join(f"{need.path}: no {need.kind} of the type {shown(need.type)}" for need in missing)
        raise Forbidden(_NOT_REGISTERED(kind=kind, extensions=details))


def _is_checked(document: Document, old: Document | None) -> bool:
    return not is_deleting(document) and (old is None or section(document, "spec") != section(old, "spec"))


PLUGIN = AdmissionPlugin(
    name="ExtensionValidator",
    acts="rejects types of extensions that no ControllerRegistration is primary for, once there is a registration",
    rejections=(_NOT_REGISTERED,),
    rules=(AdmissionRule(tuple(_NEEDED), queries=_queries, admit=_admit),),
)
