"""What cannot be taken: kept on `garden.rejected` with the reason, and told as an Event where an object is known."""

import structlog

from gardenbus.apiserver.answers import reason_of, rejection
from gardenbus.apiserver.reconcilers.speaking import reporter_and_key
from gardenbus.common.errors import BadRequest, GardenbusError
from gardenbus.common.machinery.rejected_metrics import REJECTED
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Bus, Delivered, Message
from gardenbus.common.ports.store import EventRecord, Store
from gardenbus.common.resources.document import Document, StoredObject, encode
from gardenbus.common.resources.keys import Subjects

_log = structlog.stdlib.get_logger()

EVENT_TEXT_LIMIT = 1024
"""Characters of an Event's message, as Kubernetes has it."""

REPORTER = "apiserver"


class Rejections:
    """Puts away what cannot be taken. Both ways may repeat: the same refusal twice is one Event with a count."""

    def __init__(self, bus: Bus, store: Store, subjects: Subjects) -> None:
        self._bus = bus
        self._store = store
        self._subjects = subjects

    async def reject(
        self,
        message: Delivered,
        error: GardenbusError,
        *,
        document: Document | None = None,
        about: StoredObject | None = None,
        action: str = "",
    ) -> None:
        """Keep the message, or the one `document` of it that is at fault; say so about an object that is stored.

        That object is `about`, or where nobody knows one, what the subject of a report names.
        Raises Unavailable: the message must then not be acknowledged.
        """
        reason = reason_of(error)
        kept = rejection(
            rejected_subject=self._subjects.rejected,
            subject=message.subject,
            body=message.body,
            reason=reason,
            refused_part=None if document is None else encode(document),
        )
        await self._keep(kept)
        REJECTED.labels(error.reason).inc()
        _log.warning(
            "request.rejected",
            subject=message.subject,
            sequence=message.sequence,
            reason=reason[:500],
            **tracing.fields(tracing.received(message.headers)),
        )
        about = about or await self._reported_on(message.subject)
        if about is not None:
            await self._store.record_event(
                EventRecord(
                    about=about.key,
                    uid=about.uid,
                    type="Warning",
                    reason=error.reason,
                    message=reason[:EVENT_TEXT_LIMIT],
                    reporter=REPORTER,
                    action=action,
                )
            )

    async def _reported_on(self, subject: str) -> StoredObject | None:
        try:
            _, key = reporter_and_key(subject, self._subjects)
        except BadRequest:
            return None
        return await self._store.get(key)

    async def _keep(self, kept: Message) -> None:
        await self._bus.publish(kept)
