"""What becomes of a look that no process survives."""

import structlog

from gardenbus.autoscaler.reconcilers.autoscalers import KIND, REPORTER
from gardenbus.common.machinery.controller import WorkRequest
from gardenbus.common.machinery.rejected_metrics import HANDLER_FAILED, REJECTED
from gardenbus.common.ports.bus import Bus, Message
from gardenbus.common.ports.store import EventRecord, Store
from gardenbus.common.resources.keys import Header, ObjectKey, Subjects

_log = structlog.stdlib.get_logger()


class Rejections:
    """Keeps the message on the subject for rejected ones, and tells about the autoscaler."""

    def __init__(self, *, store: Store, bus: Bus, subjects: Subjects) -> None:
        self._store = store
        self._bus = bus
        self._subjects = subjects

    async def __call__(self, request: WorkRequest, reason: str) -> None:
        """Reject one look. Raises Transient: it must then not be acknowledged."""
        headers = {Header.REASON: reason, Header.SUBJECT: request.subject}
        await self._bus.publish(Message(self._subjects.rejected, b"", headers))
        REJECTED.labels(HANDLER_FAILED).inc()
        stored = await self._store.get(ObjectKey(KIND, request.namespace, request.name))
        if stored is not None:
            message = f"The autoscaler is not looked at until something changes: {reason}"
            await self._store.record_event(
                EventRecord(
                    about=stored.key,
                    uid=stored.uid,
                    type="Warning",
                    reason="ReconcileRejected",
                    message=message,
                    reporter=REPORTER,
                )
            )
        _log.error("work.rejected", subject=request.subject, reason=reason)
