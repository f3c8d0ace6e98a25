"""ResourceQuota: no more objects of a kind in a namespace than its ResourceQuotas allow.

Facts: none. The store counts what is there in the same call as it creates the object, so that those who create at once
are counted one after the other. Source: Kubernetes' `plugin/pkg/admission/resourcequota`.
"""

from collections.abc import Iterator, Sequence

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change, of_stored
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import key_of_document
from gardenbus.common.api.resource_quotas import COUNT, count_resource, counted_kind
from gardenbus.common.ports.store import WritePrecondition

_EXCEEDED = RejectionMessage('{resource} "{name}" is forbidden')
"""The store adds the quota that is exceeded, what was requested, used and allowed."""


def _guards(document: Document, old: Document | None, _related: RelatedObjects) -> Sequence[WritePrecondition]:
    if old is not None or not section(document, "metadata").get("namespace"):
        return ()
    key = key_of_document(document)
    resource = count_resource(key.kind, str(document.get("apiVersion"))).removeprefix(COUNT)
    return (WritePrecondition("quota", key.stored, _EXCEEDED(resource=resource, name=key.name)),)


def _warn(quota: Document, _change: Change, _related: RelatedObjects) -> Sequence[str]:
    spec = section(quota, "spec")
    if spec.get("scopes") or spec.get("scopeSelector"):
        return ("spec.scopes: nothing acts on them: scopes are for pods, of which there are none here",)
    return list(_uncounted(spec))


def _uncounted(spec: Document) -> Iterator[str]:
    for resource in section(spec, "hard"):
        if not counted_kind(resource):
            example = f"{COUNT}shoots.core.gardener.cloud"
            yield f"spec.hard[{resource[:80]}]: nothing acts on it: only objects are counted, as {example}"


PLUGIN = AdmissionPlugin(
    name="ResourceQuota",
    acts="rejects an object beyond those that the ResourceQuotas of its namespace allow",
    rejections=(_EXCEEDED,),
    rules=(AdmissionRule(guards=of_stored(_guards)), AdmissionRule(("ResourceQuota",), warn=_warn)),
)
