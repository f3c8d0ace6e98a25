"""FinalizerRemoval: a shoot keeps its finalizer while it has a control plane.

Source: `plugin/pkg/global/finalizerremoval`.
"""

from gardenbus.apiserver.domain.document_parts import is_deleted
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.index_keys import FINALIZER
from gardenbus.common.errors import Forbidden


def _admit(shoot: Document, change: Change, _related: RelatedObjects) -> None:
    old = change.old
    if old is None:
        return
    had, has = (FINALIZER in (section(one, "metadata").get("finalizers") or ()) for one in (old, shoot))
    status = section(old, "status")
    if had and not has and status.get("technicalID") and status.get("lastOperation") and not is_deleted(old):
        raise Forbidden(f"metadata.finalizers: {FINALIZER} is taken off by the gardenlet once the deletion is done")


PLUGIN = AdmissionPlugin(
    name="FinalizerRemoval",
    acts="rejects that somebody takes the finalizer off a shoot whose control plane is still there",
    rules=(AdmissionRule(("Shoot",), admit=_admit),),
)
