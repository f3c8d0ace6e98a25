"""ResourceSize: no objects larger than the limits of the configuration.

Facts: none. An object is measured as JSON without status and metadata.managedFields; the first limit that names its
resource holds. One that is being deleted passes, so that it can go.
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

_TOO_LARGE = RejectionMessage("{resource} {name} has {size} bytes; the maximum is {limit}")


def plugin(sizes: ResourceSizes) -> AdmissionPlugin:
    """The plug-in with the limits of a configuration."""
    unrestricted = frozenset(subject.user for subject in sizes.unrestricted)

    def excess(document: Document, change: Change) -> Mapping[str, object] | None:
        is_deleting = bool(section(change.old or {}, "metadata").get("deletionTimestamp"))
        return None if is_deleting or change.user in unrestricted else _excess(document, sizes)

    def admit(document: Document, change: Change, _related: RelatedObjects) -> None:
        if sizes.blocks and (found := excess(document, change)):
            raise Forbidden(_TOO_LARGE(**found))

    def warn(document: Document, change: Change, _related: RelatedObjects) -> Sequence[str]:
        found = None if sizes.blocks else excess(document, change)
        return (_TOO_LARGE(**found),) if found else ()

    return AdmissionPlugin(
        name="ResourceSize",
        acts="rejects an object larger than its configuration allows, or (operationMode log) takes it with a warning",
        rules=(AdmissionRule(admit=admit, warn=warn),),
        rejections=(_TOO_LARGE,),
    )


def _excess(document: Document, sizes: ResourceSizes) -> Mapping[str, object] | None:
    """Values of the sentence about an object that is too large; None where it is not."""
    api_version = str(document.get("apiVersion"))
    group, _, version = api_version.rpartition("/")
    key = key_of_document(document)
    resource = count_resource(key.kind, api_version).removeprefix(COUNT).partition(".")[0]
    limit = next((one.size for one in sizes.limits if one.is_for(group, version, resource)), None)
    if limit is None or (size := measured(document)) <= limit:
        return None
    return {"resource": resource, "name": repr(key.name), "size": size, "limit": limit}


def measured(document: Document) -> int:
    """Bytes of an object as JSON, without what others than its author write."""
    metadata = without(section(document, "metadata"), "managedFields")
    return len(encode({**without(document, "status"), "metadata": metadata}))


PLUGIN = plugin(ResourceSizes())
