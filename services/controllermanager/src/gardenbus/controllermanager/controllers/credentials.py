"""Keeps the credentials that bindings and BackupBuckets refer to: a finalizer, and labels of the bindings.

Source: Gardener's `pkg/controllermanager/controller/{secretbinding,credentialsbinding}`, which do this from the
binding's side, and its gardenlet, which does so for the bucket of its seed.
"""

from operator import methodcaller

import structlog

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.document_parts import EXTERNAL_FINALIZER
from gardenbus.common.api.garden.credentials_bindings import BINDING_KINDS, CREDENTIALS_KINDS
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileResult
from gardenbus.common.controller.writes import update
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.store import WritePrecondition
from gardenbus.controllermanager.domain.protection import protected_credentials
from gardenbus.controllermanager.watch.cached_bindings import REFERRING_KINDS, credentials_named_by
from gardenbus.controllermanager.watch.loop import BuiltLoop, Loop, LoopContext, existing

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class CredentialsReconciler:
    """Reconciles one object with credentials at a time."""

    def __init__(self, context: LoopContext) -> None:
        self._store = context.store
        self._bindings = context.bindings

    async def reconcile(self, stored: StoredObject) -> ReconcileResult:
        """Protect credentials while something refers to them, or release them. Raises Conflict, Unavailable."""
        bindings = self._bindings.referring_to(stored.key)
        document = protected_credentials(stored.document(), bindings)
        if document == stored.document():
            return Done()
        unused = WritePrecondition("references", stored.key.stored, f"{stored.key} is in use")
        try:
            await update(self._store, stored, document, () if bindings else (unused,))
        except Forbidden:
            return Done("something refers to it by now: its events bring the credentials back")
        log.info("credentials.reconciled", object=str(stored.key), bindings=len(bindings))
        return Done()


def _loop(kind: str) -> Loop:
    def build(context: LoopContext) -> BuiltLoop:
        bindings = context.bindings

        def changed(key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
            """Enqueue what something refers to, or did, and credentials that are new, deleted, or lost a protection."""
            if key.kind in REFERRING_KINDS:
                named = {credentials_named_by(each.document()) for each in (old, new) if each is not None}
                if key.kind not in BINDING_KINDS and old is not None and new is not None and len(named) == 1:
                    return  # a report on a bucket
                for credentials in named:
                    if credentials is not None and credentials.kind == kind:
                        context.enqueue(credentials)
            elif new is not None and (EXTERNAL_FINALIZER in new.parts.finalizers) != bindings.is_referred_to(key):
                context.enqueue(key)

        return BuiltLoop(existing(context, kind, CredentialsReconciler(context).reconcile), changed)

    return Loop(kind, (kind, *REFERRING_KINDS), build, methodcaller("workers", "secretbinding"))


LOOPS = tuple(_loop(kind) for kind in CREDENTIALS_KINDS)
"""A loop for each kind: the queue has its name."""
