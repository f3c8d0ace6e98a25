"""FinalizerRemoval: a shoot keeps its finalizer while it has a control plane, and what is in use keeps its own.

Source: `plugin/pkg/global/finalizerremoval`.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change, of_stored
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import (
    FINALIZER,
    is_deleted,
    is_protected,
    key_of_document,
    protecting_finalizers,
)
from gardenbus.common.api.garden.named_references import named_reference
from gardenbus.common.api.garden.projects import Project
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.store import WritePrecondition

_CONTROL_PLANE = RejectionMessage(
    f"metadata.finalizers: {FINALIZER} is taken off by the gardenlet once the deletion is done"
)
_USED = RejectionMessage("metadata.finalizers: {object} is in use")

_PROTECTED = (
    *("Project", "CloudProfile", "NamespacedCloudProfile", "ExposureClass"),
    *("SecretBinding", "CredentialsBinding", "Quota"),
)
"""Kinds whose finalizer the controller manager places."""

_NAMED = ("Secret", "InternalSecret", "ConfigMap", "WorkloadIdentity")
"""Kinds that Shoots, Seeds and bindings name, which have finalizers while they do."""


def _admit(shoot: Document, change: Change, _related: RelatedObjects) -> None:
    old = change.old
    if old is None:
        return
    if is_protected(old) and not is_protected(shoot) and _has_control_plane(old):
        raise Forbidden(_CONTROL_PLANE())


def _has_control_plane(shoot: Document) -> bool:
    status = section(shoot, "status")
    return bool(status.get("technicalID") and status.get("lastOperation")) and not is_deleted(shoot)


def _guards(document: Document, old: Document | None, _related: RelatedObjects) -> Sequence[WritePrecondition]:
    """Conditions of taking the finalizer off: nothing refers to the object, or to a project's namespace."""
    if old is None or not is_protected(old) or is_protected(document):
        return ()
    key = key_of_document(old)
    used = ObjectKey("namespace", "", Project.from_document(old).namespace) if key.kind == "project" else key
    return (WritePrecondition("references", used.stored, _USED(object=key)),)


def _guards_of_named(document: Document, old: Document | None, _related: RelatedObjects) -> Sequence[WritePrecondition]:
    """Conditions of taking one of the protecting finalizers off: nothing names the object."""
    if old is None or protecting_finalizers(old) <= protecting_finalizers(document):
        return ()
    key = key_of_document(old)
    names = (key.stored, named_reference(key))
    return tuple(WritePrecondition("references", name, _USED(object=key)) for name in names)


PLUGIN = AdmissionPlugin(
    name="FinalizerRemoval",
    acts="rejects that somebody takes the finalizer off a shoot with a control plane, or off what is in use",
    rejections=(_CONTROL_PLANE, _USED),
    rules=(
        AdmissionRule(("Shoot",), admit=_admit),
        AdmissionRule(_PROTECTED, guards=of_stored(_guards)),
        AdmissionRule(_NAMED, guards=of_stored(_guards_of_named)),
    ),
)
