"""Records Events about objects under one reporter's name."""

from typing import Literal

import structlog

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Transient
from gardenbus.common.ports.store import EventRecord, Store

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class EventRecorder:
    """Records best-effort: while the store is away, the Event is logged as `event.lost` and dropped."""

    def __init__(self, store: Store, reporter: str) -> None:
        self._store = store
        self._reporter = reporter

    async def record(
        self,
        about: ObjectKey,
        uid: str,
        *,
        reason: str,
        message: str,
        type: Literal["Normal", "Warning"] = "Warning",  # noqa: A002  the Event's own word
        action: str = "",
    ) -> None:
        """Record one Event."""
        event = EventRecord(about, uid, type, reason, message, self._reporter, action)
        try:
            await self._store.record_event(event)
        except Transient as error:
            _log.warning("event.lost", object=str(about), event_reason=reason, reason=error.message)
