"""ResourceSize: no objects larger, or more of them, than the limits of the configuration.

Facts: none. The store counts what is there in the call that creates the object. An object is measured as JSON without
status and metadata.managedFields; the first limit on the size, and the first on the number, that names its resource
holds. One that is being deleted passes, so that it can go. `operationMode: log` is for sizes: a number is kept.
Source: Gardener's `pkg/admissioncontroller/webhook/admission/resourcesize`.
"""

from collections.abc import Mapping, Sequence

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.configuration.resource_sizes import ResourceSizes
from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.document_parts import key_of_document, without
from gardenbus.common.api.resource_quotas import COUNT, count_resource
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.store import WritePrecondition

_TOO_LARGE = RejectionMessage("{resource} {name} has {size} bytes; the maximum is {limit}")
_TOO_MANY = RejectionMessage("{resource} {name}: the maximum is {limit}")
"""The store adds how many there are."""


def plugin(sizes: ResourceSizes) -> AdmissionPlugin:
    """The plug-in with the limits of a configuration."""

    def excess(document: Document, change: Change) -> Mapping[str, object] | None:
        is_deleting = bool(section(change.old or {}, "metadata").get("deletionTimestamp"))
        is_exempt = is_deleting or any(subject.is_meant(change.user) for subject in sizes.unrestricted)
        return None if is_exempt else _excess(document, sizes)

    def admit(document: Document, change: Change, _related: RelatedObjects) -> None:
        if sizes.blocks and (found := excess(document, change)):
            raise Forbidden(_TOO_LARGE(**found))

    def warn(document: Document, change: Change, _related: RelatedObjects) -> Sequence[str]:
        found = None if sizes.blocks else excess(document, change)
        return (_TOO_LARGE(**found),) if found else ()

    def guards(document: Document, change: Change, _related: RelatedObjects) -> Sequence[WritePrecondition]:
        if change.old is not None or any(subject.is_meant(change.user) for subject in sizes.unrestricted):
            return ()
        return _count_guards(document, sizes)

    return AdmissionPlugin(
        name="ResourceSize",
        acts=(
            "rejects an object larger than its configuration allows, and one more than it allows, or (operationMode"
            " log) accepts it with a warning"
        ),
        rules=(AdmissionRule(admit=admit, warn=warn, guards=guards),),
        rejections=(_TOO_LARGE, _TOO_MANY),
    )


def _resource_of(document: Document) -> tuple[str, str, str]:
    """Group, version and resource (a plural) of an object."""
    api_version = str(document.get("apiVersion"))
    group, _, version = api_version.rpartition("/")
    resource = count_resource(key_of_document(document).kind, api_version).removeprefix(COUNT).partition(".")[0]
    return group, version, resource


def _excess(document: Document, sizes: ResourceSizes) -> Mapping[str, object] | None:
    """Values of the sentence about an object that is too large; None where it is not."""
    group, version, resource = _resource_of(document)
    limits = (one.size for one in sizes.limits if one.size is not None and one.is_for(group, version, resource))
    limit = next(limits, None)
    if limit is None or (size := measured(document)) <= limit:
        return None
    return {"resource": resource, "name": repr(key_of_document(document).name), "size": size, "limit": limit}


def _count_guards(document: Document, sizes: ResourceSizes) -> Sequence[WritePrecondition]:
    counts = [one for one in sizes.limits if one.count is not None]
    if not counts:
        return ()
    group, version, resource = _resource_of(document)
    limit = next((one.count for one in counts if one.is_for(group, version, resource)), None)
    if limit is None:
        return ()
    key = key_of_document(document)
    found = {"resource": resource, "name": repr(key.name), "limit": limit}
    return (WritePrecondition("count", key.kind, _TOO_MANY(**found), most=limit),)


def measured(document: Document) -> int:
    """Bytes of an object as JSON, without what others than its author write."""
    metadata = without(section(document, "metadata"), "managedFields")
    return len(encode({**without(document, "status"), "metadata": metadata}))


PLUGIN = plugin(ResourceSizes())
