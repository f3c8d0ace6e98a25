"""Durable requests that wait in REQUESTS: read for a backup, and put back by a restore.

JetStream has acknowledged them, and nobody has carried them out: they are nowhere else. Each is saved with its place on
the bus, and put back with it (`api.restored_requests`), so that the store knows which ones it has carried out already,
and lets whatever was sent later win.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence

from gardenbus.common.api.keys import Subjects
from gardenbus.common.api.restored_requests import SentAs, put_back, sent_as
from gardenbus.common.controller.stream_incarnation import StreamIncarnation
from gardenbus.common.errors import BadRequest, NotFound
from gardenbus.common.ports.backups import WaitingRequest
from gardenbus.common.ports.bus import Bus, Message, StreamMessage
from gardenbus.common.ports.clock import timestamp
from gardenbus.common.ports.stream_history import StreamHistories

_TOGETHER = 64
"""Messages read at once."""


class WaitingRequests:
    """See the module. All methods raise Unavailable."""

    def __init__(self, bus: Bus, histories: StreamHistories, subjects: Subjects) -> None:
        self._bus = bus
        self._subjects = subjects
        self.stream = subjects.stream("REQUESTS")
        self._incarnation = StreamIncarnation(bus, histories, self.stream)

    async def are_there(self) -> bool:
        """True if any request waits."""
        try:
            return await self._bus.first_from(self.stream, 0) is not None
        except NotFound:
            return False

    async def pages(self) -> AsyncIterator[Sequence[WaitingRequest]]:
        """Read all that wait, in order; none where the stream was never made."""
        try:
            await self._incarnation.position()
        except NotFound:
            return
        behind = 0
        while page := await self._page(behind + 1):
            incarnations = await self._incarnation.of_stored(page)
            yield [
                saved
                for message, incarnation in zip(page, incarnations, strict=True)
                if (saved := self._saved(message, incarnation)) is not None
            ]
            behind = page[-1].sequence

    async def put_back(self, requests: Iterable[WaitingRequest]) -> None:
        """Publish requests as they were sent, with their places. May be repeated: the store takes each place once."""
        await self._bus.publish_many([self._restored(each) for each in requests])

    async def _page(self, start: int) -> Sequence[StreamMessage]:
        """Some messages from a sequence on, without a gap: the responses of neighbours overlap."""
        first = await self._bus.first_from(self.stream, start)
        if first is None:
            return ()
        neighbours = range(first.sequence + 1, first.sequence + _TOGETHER)
        found = await asyncio.gather(*(self._bus.first_from(self.stream, sequence) for sequence in neighbours))
        by_sequence = {each.sequence: each for each in (first, *found) if each is not None}
        return [by_sequence[sequence] for sequence in sorted(by_sequence)]

    def _saved(self, message: StreamMessage, incarnation: int) -> WaitingRequest | None:
        try:
            sent = sent_as(message.subject, message.headers, self._subjects)
        except BadRequest:
            return None  # the apiserver rejects it, whenever
        place = sent.place or (incarnation, message.sequence)
        return WaitingRequest(sent.subject, sent.headers, message.body, *place, timestamp(message.at))

    def _restored(self, request: WaitingRequest) -> Message:
        sent = SentAs(request.subject, request.headers, (request.incarnation, request.sequence))
        subject, headers = put_back(sent, self._subjects)
        return Message(subject, request.body, headers)
