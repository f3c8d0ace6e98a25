"""ControllerRegistrations: a finalizer until no ControllerInstallation names them.

Source: Gardener's `pkg/controllermanager/controller/controllerregistration/controllerregistrationfinalizer`.
"""

from operator import methodcaller

import structlog

from gardenbus.common.api.document import StoredObject, section
from gardenbus.common.api.document_parts import with_finalizer, without_finalizer
from gardenbus.common.api.garden.extensions import REGISTRATION_FINALIZER
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileResult, RequeueAfter
from gardenbus.common.controller.event_recorder import EventRecorder
from gardenbus.common.controller.writes import update
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.store import WritePrecondition
from gardenbus.controllermanager.domain.installations import INSTALLATION, REGISTRATION, held_message
from gardenbus.controllermanager.watch.loop import REPORTER, BuiltLoop, Loop, LoopContext, existing

NAME = KIND = REGISTRATION
IN_USE_SECONDS = 60.0
"""After which a deleted registration is checked again, should the event of its release have been lost."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class RegistrationReconciler:
    """Reconciles one ControllerRegistration at a time."""

    def __init__(self, context: LoopContext) -> None:
        self._store = context.store
        self._objects = context.objects
        self._events = EventRecorder(context.store, REPORTER)

    async def reconcile(self, stored: StoredObject) -> ReconcileResult:
        """Protect a registration, or release it. Raises Conflict, Unavailable."""
        document = stored.document()
        if not stored.is_deleting:
            protected = with_finalizer(document, REGISTRATION_FINALIZER)
            if protected is not document:
                await update(self._store, stored, protected)
            return Done()
        if REGISTRATION_FINALIZER not in stored.parts.finalizers:
            return Done("it is being deleted")
        unused = WritePrecondition("references", stored.key.stored, f"{stored.key} is in use")
        try:
            await update(self._store, stored, without_finalizer(document, REGISTRATION_FINALIZER), (unused,))
        except Forbidden:
            message = held_message(stored.key.name, self._installations(stored.key))
            await self._events.record(stored.key, stored.uid, reason="ReconcileError", message=message)
            return RequeueAfter(IN_USE_SECONDS, message)
        log.info("object.released", object=str(stored.key))
        return Done("it is released")

    def _installations(self, registration: ObjectKey) -> list[str]:
        installations = self._objects.objects(INSTALLATION).values()
        return sorted(each.key.name for each in installations if _registration_of(each) == registration)


def _registration_of(installation: StoredObject) -> ObjectKey:
    name = section(installation.document(), "spec", "registrationRef").get("name")
    return ObjectKey(KIND, "", str(name or ""))


def _build(context: LoopContext) -> BuiltLoop:
    def changed(key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue registrations that are new or being deleted, and deleted ones that an installation has left."""
        if key.kind == INSTALLATION:
            if old is not None and new is None:
                registration = context.objects.objects(KIND).get(_registration_of(old))
                if registration is not None and registration.is_deleting:
                    context.enqueue(registration.key)
        elif new is not None and (
            old is None
            or old.is_deleting != new.is_deleting
            or (REGISTRATION_FINALIZER not in new.parts.finalizers and not new.is_deleting)
        ):
            context.enqueue(key)

    return BuiltLoop(existing(context, KIND, RegistrationReconciler(context).reconcile), changed)


LOOP = Loop(NAME, (KIND, INSTALLATION), _build, methodcaller("workers", "controllerregistration"))
