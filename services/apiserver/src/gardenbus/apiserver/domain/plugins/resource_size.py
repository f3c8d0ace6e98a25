"""ResourceSize: no objects larger than the limits of the configuration.

Facts: none. An object is measured as JSON without status and metadata.managedFields; the first limit that names its
resource holds. One that is being deleted passes, so that it can go.
Source: Gardener's `pkg/admissioncontroller/webhook/admission/resourcesize`.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.document_parts import key_of_document, without
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.configuration.resource_sizes import ResourceSizes
from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.resource_quotas import COUNT, count_resource
from gardenbus.common.errors import Forbidden


def plugin(sizes: ResourceSizes) -> AdmissionPlugin:
    """The plug-in with the limits of a configuration."""
    unrestricted = frozenset(subject.user for subject in sizes.unrestricted)

    def excess(document: Document, change: Change) -> str:
        is_deleting = bool(section(change.old or {}, "metadata").get("deletionTimestamp"))
        return "" if is_deleting or change.user in unrestricted else _excess(document, sizes)

    def admit(document: Document, change: Change, _related: RelatedObjects) -> None:
        if sizes.blocks and (message := excess(document, change)):
            raise Forbidden(message)

    def warn(document: Document, change: Change, _related: RelatedObjects) -> Sequence[str]:
        message = "" if sizes.blocks else excess(document, change)
        return (message,) if message else ()

    return AdmissionPlugin(
        name="ResourceSize",
        acts="rejects an object larger than its configuration allows, or (operationMode log) takes it with a warning",
        rules=(AdmissionRule(admit=admit, warn=warn),),
    )


def _excess(document: Document, sizes: ResourceSizes) -> str:
    """The problem with a size; "" where there is none."""
    api_version = str(document.get("apiVersion"))
    group, _, version = api_version.rpartition("/")
    key = key_of_document(document)
    resource = count_resource(key.kind, api_version).removeprefix(COUNT).partition(".")[0]
    limit = next((one.size for one in sizes.limits if one.is_for(group, version, resource)), None)
    if limit is None:
        return ""
    size = measured(document)
    return f"{resource} {key.name!r} has {size} bytes; the maximum is {limit}" if size > limit else ""


def measured(document: Document) -> int:
    """Bytes of an object as JSON, without what others than its author write."""
    metadata = without(section(document, "metadata"), "managedFields")
    return len(encode({**without(document, "status"), "metadata": metadata}))


PLUGIN = plugin(ResourceSizes())
