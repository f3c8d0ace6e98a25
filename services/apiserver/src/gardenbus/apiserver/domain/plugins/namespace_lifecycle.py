"""NamespaceLifecycle: nothing new comes about in a namespace that is being deleted.

Facts: the Namespace. A namespace is deleted with its Project, after the last shoot; what came about in it then would be
left behind. The object is written only while the Namespace has the version that was read: of a creation and a deletion
in the same instant the creation is decided upon once more, or the Project waits for what was created. A namespace of
which there is no object is any namespace, unlike in Kubernetes: the sender gets a warning then. Source: Kubernetes'
`plugin/pkg/admission/namespace/lifecycle`.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change, of_stored
from gardenbus.apiserver.domain.rejection_messages import CHANGED_MEANWHILE, RejectionMessage, unchanged
from gardenbus.apiserver.domain.related_objects import ObjectQuery, ProjectQuery, RelatedObjects, RelatedQuery
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, key_of_document, name_of, namespace_of
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.api.resource_quotas import COUNT, count_resource
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.store import WritePrecondition

_TERMINATED = RejectionMessage(
    '{resource} "{name}" is forbidden: unable to create new content in namespace {namespace} because it is being'
    " terminated"
)


_UNWARNED = frozenset({"Shoot", "Event", "Lease"})
"""Kinds whose own rules name their namespace, and those that services write."""


def _key(document: Document) -> ObjectKey | None:
    """The Namespace that an object is in; None for one that is in none."""
    name = section(document, "metadata").get("namespace")
    return ObjectKey("namespace", "", name) if isinstance(name, str) and name else None


def _queries(document: Document, old: Document | None) -> Sequence[RelatedQuery]:
    key = _key(document) if old is None else None
    if key is None:
        return ()
    return (ObjectQuery(key), ProjectQuery(key.name)) if _is_named(key, document) else (ObjectQuery(key),)


def _is_named(key: ObjectKey, document: Document) -> bool:
    """True where the sender is told of a namespace that is not there."""
    return key.name != GARDEN_NAMESPACE and document.get("kind") not in _UNWARNED


def _warn(document: Document, change: Change, related: RelatedObjects) -> Sequence[str]:
    key = _key(document) if change.old is None else None
    if key is None or not _is_named(key, document) or key in related.objects or key.name in related.projects:
        return ()
    return (f"metadata.namespace: there is no Namespace {key.name}, nor a Project that has it",)


def _admit(document: Document, change: Change, related: RelatedObjects) -> None:
    key = _key(document) if change.old is None else None
    namespace = None if key is None else related.objects.get(key)
    if namespace is None or not is_deleting(namespace):
        return
    kind = key_of_document(document).kind
    resource = count_resource(kind, str(document.get("apiVersion"))).removeprefix(COUNT)
    raise Forbidden(_TERMINATED(resource=resource, name=name_of(document), namespace=namespace_of(document)))


def _guards(document: Document, old: Document | None, related: RelatedObjects) -> Sequence[WritePrecondition]:
    key = _key(document) if old is None else None
    namespace = None if key is None else related.objects.get(key)
    if key is None or namespace is None:
        return ()
    return (unchanged(key, int(section(namespace, "metadata")["resourceVersion"])),)


PLUGIN = AdmissionPlugin(
    name="NamespaceLifecycle",
    acts="rejects a new object in a Namespace that is being deleted",
    rejections=(_TERMINATED, CHANGED_MEANWHILE),
    rules=(AdmissionRule(queries=_queries, warn=_warn, admit=_admit, guards=of_stored(_guards)),),
)
