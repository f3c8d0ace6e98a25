"""ExtensionValidator: the types of extensions that a changed spec names are registered.

Facts: all ControllerRegistrations, without which nothing is checked, and the bucket of a BackupEntry. They are read
without a guard on the write: a type whose registration goes in the same instant leaves the object as if it had come a
moment earlier. Source: `plugin/pkg/global/extensionvalidation`.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.extensions import NEEDED, REGISTRATION, missing_extensions
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import KindQuery, ObjectQuery, RelatedObjects, RelatedQuery
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting
from gardenbus.common.api.garden.backup_references import bucket_of
from gardenbus.common.errors import Forbidden

_NOT_REGISTERED = RejectionMessage(
    "given {kind} uses non-registered extensions: {extensions}. Apply a ControllerRegistration for it"
)


def _queries(document: Document, old: Document | None) -> Sequence[RelatedQuery]:
    bucket = bucket_of(document)
    named = () if bucket is None else (ObjectQuery(bucket),)
    return (KindQuery(REGISTRATION), *named) if _is_checked(document, old) else ()


def _admit(document: Document, change: Change, related: RelatedObjects) -> None:
    registrations = related.all_of.get(REGISTRATION, ())
    if not registrations or not _is_checked(document, change.old):
        return
    kind, bucket = str(document.get("kind")), bucket_of(document)
    spec = section(document if bucket is None else related.objects.get(bucket, {}), "spec")
    if missing := tuple(missing_extensions(kind, spec, registrations)):
        raise Forbidden(_NOT_REGISTERED(kind=kind, extensions="; ".join(missing)))


def _is_checked(document: Document, old: Document | None) -> bool:
    return not is_deleting(document) and (old is None or section(document, "spec") != section(old, "spec"))


PLUGIN = AdmissionPlugin(
    name="ExtensionValidator",
    acts="rejects types of extensions that no ControllerRegistration is primary for, once there is a registration",
    rejections=(_NOT_REGISTERED,),
    rules=(AdmissionRule(tuple(NEEDED), queries=_queries, admit=_admit),),
)
