"""Announces the outbox on JetStream, in order, and keeps store and bus true to each other.

One relay leads. Before its first announcement, and after every doubt (a refused batch, an unknown outcome, a server
that came back), it *settles*: it compares where the streams stand with where they stood at the last trim.

    | the store  | the stream                       | what the relay does                                        |
    |------------|----------------------------------|------------------------------------------------------------|
    | is closed  | holds more than was trimmed      | puts back what the bus has in a higher version, then opens |
    | is open    | another incarnation, or shorter  | announces again what lies above the stream's last version  |
    | any        | QUEUES went back                 | queues every pending shoot again                           |

A batch carries the sequence that the stream must stand at, and lets nobody else in between, so a relay that was paused
while another took over cannot announce the past after the present. The first page after a doubt goes in batches that
are stored whole or not at all: should one of its messages be what the server refuses, it is found that way.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

import msgspec
import structlog

from gardenbus.common.errors import BadRequest, Conflict, NotFound, Transient
from gardenbus.common.machinery.announcements import announcements
from gardenbus.common.machinery.announcing_spans import tell_followed, with_spans
from gardenbus.common.machinery.cancellation import is_cancelled
from gardenbus.common.ports.bus import Bus, Delivered, Message, ReplayDone, StreamPosition
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.outbox import News, Outbox, OutboxPage, Restored
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import Header, ObjectKey, Subjects

_log = structlog.stdlib.get_logger()
_decode = msgspec.json.Decoder(Document).decode

OBJECTS, BINDINGS, QUEUES, REQUESTS = "OBJECTS", "BINDINGS", "QUEUES", "REQUESTS"
GRAVE_AGE = timedelta(hours=1)

RESTORED_TOGETHER = 200
"""Objects put back in one round trip: many, but done long before the lead could pass to another relay."""


class RelaySettings(msgspec.Struct, frozen=True):
    """How the relay works."""

    page: int = 400
    """Outbox entries a round: two announcements each stay below JetStream's 1,000 messages a batch."""
    lead_ttl_seconds: float = 5.0
    """How long a dead relay keeps the lead."""
    idle_seconds: float = 0.5
    """Longest wait for news before the lead is renewed."""
    housekeeping_seconds: float = 60.0
    """How often removed objects are forgotten."""
    requests_consumer: str = "apiserver"
    """Whose acknowledgement floor on REQUESTS tells which removed objects may be forgotten."""


class Relay:
    """See the module. `run` ends only when it is cancelled."""

    def __init__(
        self, outbox: Outbox, bus: Bus, subjects: Subjects, clock: Clock, settings: RelaySettings | None = None
    ) -> None:
        self._outbox = outbox
        self._bus = bus
        self._subjects = subjects
        self._clock = clock
        self._settings = settings or RelaySettings()
        self._places: dict[str, StreamPosition] = {}
        self._in_doubt = True
        self._is_wary = True
        self._announced_gain = 0
        self._ahead: OutboxPage | None = None
        self._renew_at = 0.0
        self._housekeeping_at = 0.0
        self.leading = False
        self.on_announced: Callable[[Sequence[News]], None] = lambda _news: None

    async def run(self) -> None:
        """Lead whenever nobody else does, and announce."""
        self._bus.on_reconnect(self._doubt)
        try:
            while not is_cancelled():
                try:
                    await self._lead_once()
                except (Conflict, NotFound) as error:  # NotFound: a stream is gone; settling brings it about again
                    _log.info("relay.doubted", reason=error.message)
                    self._in_doubt = True
                except Transient as error:
                    _log.warning("relay.interrupted", reason=error.message)
                    self._in_doubt = True
                    await self._clock.sleep(self._settings.idle_seconds)
        finally:
            if self.leading:
                await asyncio.shield(self._resign())
        raise asyncio.CancelledError

    async def _resign(self) -> None:
        try:
            await self._outbox.resign()
        except Transient as error:
            _log.info("relay.resignation_failed", reason=error.message)

    async def _doubt(self) -> None:
        self._in_doubt = True

    async def _lead_once(self) -> None:
        """Renew the lead when due, settle when in doubt, announce one page."""
        now = self._clock.monotonic()
        if now >= self._renew_at or not self.leading:
            await self._renew(now)
        if not self.leading:
            await self._clock.sleep(self._settings.idle_seconds)
            return
        if self._in_doubt:
            self._ahead = None  # another relay may have announced it by now
            await self._settle()
        await self._announce_page()
        await self._keep_house(now)

    async def _renew(self, now: float) -> None:
        leadership = await self._outbox.lead(self._settings.lead_ttl_seconds)
        if leadership.leading != self.leading:
            _log.info("relay.leading" if leadership.leading else "relay.standing_by")
        self._in_doubt |= not (self.leading and leadership.is_open)
        self.leading = leadership.leading
        self._renew_at = now + self._settings.lead_ttl_seconds / 5
        if self.leading and not self._in_doubt:
            queues = await self._bus.position(self._subjects.stream(QUEUES))
            self._in_doubt |= _went_back(self._places.get(QUEUES), queues)
            if not self._in_doubt:
                self._places[QUEUES] = queues

    # ------------------------------------------------------------------------------------------ announcing

    async def _announce_page(self) -> None:
        page, self._ahead = self._ahead or await self._outbox.head(self._settings.page), None
        if not page.news:
            await self._outbox.wait(self._settings.idle_seconds)
            return
        page, spans = with_spans(page)
        messages = announcements(page, self._subjects, announced_gain=self._announced_gain)
        last = page.news[-1].entry
        results = await asyncio.gather(
            self._publish(OBJECTS, messages.changed),
            self._publish(BINDINGS, messages.concerning),
            self._publish_loose(messages.loose),
            self._look_ahead(len(page.news), last),
            return_exceptions=True,
        )
        problem = next((result for result in results if isinstance(result, BaseException)), None)
        for span in spans:
            span.end(failed="" if problem is None else str(problem))
        if problem is not None:
            raise problem
        tell_followed(page)
        self._announced_gain = messages.gain
        await self._outbox.trim(last, self._places)
        self._is_wary = False
        self.on_announced(page.news)

    async def _publish_loose(self, messages: Sequence[Message]) -> None:
        """Publish work and Events; what the bus can never take is left out, or nothing would ever follow it."""
        try:
            await self._bus.publish_many(messages)
        except BadRequest as error:
            if len(messages) > 1:
                middle = len(messages) // 2
                await self._publish_loose(messages[:middle])
                await self._publish_loose(messages[middle:])
                return
            _log.error("announcement.left_out", subject=messages[0].subject, reason=error.message)

    async def _look_ahead(self, count: int, last: str) -> None:
        """Read the next page while one is published, if there is likely to be one."""
        if count >= self._settings.page // 2:
            ahead = await self._outbox.head(self._settings.page, last)
            self._ahead = ahead if ahead.news else None

    async def _publish(self, stream: str, batch: Sequence[Message]) -> None:
        if not batch:
            return
        place = self._places[stream]
        try:
            last = await self._bus.publish_batch(
                self._subjects.stream(stream), batch, expected_last_sequence=place.sequence, whole=self._is_wary
            )
        except BadRequest as error:
            await self._publish_around(stream, batch, error)
            return
        self._places[stream] = StreamPosition(place.created, last)

    async def _publish_around(self, stream: str, batch: Sequence[Message], error: BadRequest) -> None:
        """Halve a batch that the server refuses for its content until the culprit is alone; announce that bodiless."""
        if len(batch) > 1:
            middle = len(batch) // 2
            await self._publish(stream, batch[:middle])
            await self._publish(stream, batch[middle:])
            return
        message = batch[0]
        if Header.TOO_LARGE in message.headers:
            raise Conflict(f"{message.subject} is refused even without its body: {error.message}")
        _log.error("announcement.shortened", subject=message.subject, bytes=len(message.body), reason=error.message)
        headers = {**message.headers, Header.TOO_LARGE: str(len(message.body))}
        await self._publish(stream, [msgspec.structs.replace(message, body=b"", headers=headers)])

    # ------------------------------------------------------------------------------------------ settling

    async def _settle(self) -> None:
        """See the module's table."""
        await self._bus.ensure_streams()
        recorded = await self._outbox.positions()
        now = {name: await self._bus.position(self._subjects.stream(name)) for name in (OBJECTS, BINDINGS, QUEUES)}
        leadership = await self._outbox.lead(self._settings.lead_ttl_seconds)
        if not leadership.leading:
            raise Conflict("another relay leads by now")
        if not leadership.is_open:
            await self._reopen(recorded.get(OBJECTS), now[OBJECTS])
        await self._repeat(recorded, now)
        self._places = dict(now)
        self._in_doubt, self._is_wary = False, True
        await self._outbox.trim(None, self._places)

    async def _repeat(self, recorded: Mapping[str, StreamPosition], now: Mapping[str, StreamPosition]) -> None:
        """Announce again what streams that went back have lost."""
        lost = [name for name in (OBJECTS, BINDINGS) if _went_back(recorded.get(name), now[name])]
        if lost:
            above = min([await self._last_version(name, recorded[name], now[name]) for name in lost])
            _log.warning("announcements.repeated", streams=lost, above_version=above)
            await self._outbox.reannounce(above)
        if _went_back(recorded.get(QUEUES), now[QUEUES]):
            _log.warning("pending_shoots.requeued")
            await self._outbox.requeue_pending()

    async def _reopen(self, recorded: StreamPosition | None, now: StreamPosition) -> None:
        """Put back what the bus knows better, then open the store."""
        same = recorded is not None and recorded.created == now.created
        after = recorded.sequence if recorded is not None and same else 0
        version = gain = 0
        restored: list[int] = []
        read: list[Restored] = []
        if now.sequence > after:
            async with self._bus.follow(
                self._subjects.stream(OBJECTS), [f"{self._subjects.prefix}.changed.>"], after_sequence=after
            ) as follower:
                async for event in follower:
                    if isinstance(event, ReplayDone):
                        break
                    if isinstance(event, Delivered):
                        version = max(version, int(event.headers.get(Header.VERSION, "0")))
                        gain = max(gain, int(event.headers.get(Header.GAIN, "0")))
                        if (known := self._restored(event)) is not None:
                            read.append(known)
                        if len(read) >= RESTORED_TOGETHER:
                            restored += await self._restore(read)
                            read = []
        restored += await self._restore(read)
        await self._outbox.open(version, gain)
        _log.info("store.opened", restored=len(restored), version=version)
        if restored:  # the store lost their outbox entries too: bindings and work may never have been announced
            await self._outbox.reannounce(min(restored) - 1)
            await self._outbox.requeue_pending()

    async def _keep_lead(self) -> None:
        now = self._clock.monotonic()
        if now >= self._renew_at:
            self._renew_at = now + self._settings.lead_ttl_seconds / 5
            await self._outbox.lead(self._settings.lead_ttl_seconds)

    def _restored(self, message: Delivered) -> Restored | None:
        """What a message holds of an object, unless it does not say."""
        if Header.TOO_LARGE in message.headers or Header.VERSION not in message.headers:
            _log.error("document.unrestorable", subject=message.subject)
            return None
        deleted = message.headers.get(Header.VERB) == "deleted"
        return Restored(
            key=ObjectKey.from_tail(message.subject.removeprefix(f"{self._subjects.prefix}.changed.")),
            uid=message.headers[Header.UID],
            version=int(message.headers[Header.VERSION]),
            document=None if deleted else _decode(message.body),
        )

    async def _restore(self, read: Sequence[Restored]) -> list[int]:
        """Put back what the store has in a lower version; answer which versions those were."""
        answers = await self._outbox.restore_many(read)
        await self._keep_lead()
        return [each.version for each, was_lost in zip(read, answers, strict=True) if was_lost]

    async def _last_version(self, name: str, recorded: StreamPosition, now: StreamPosition) -> int:
        """The version of a stream's last message: everything above it may never have been announced there."""
        if recorded.created != now.created or now.sequence == 0:
            return 0
        async with self._bus.follow(
            self._subjects.stream(name), [f"{self._subjects.prefix}.>"], after_sequence=max(0, now.sequence - 1)
        ) as follower:
            async for event in follower:
                if isinstance(event, Delivered):
                    return int(event.headers.get(Header.VERSION, "0"))
                break
        return 0

    async def _keep_house(self, now: float) -> None:
        if now < self._housekeeping_at:
            return
        self._housekeeping_at = now + self._settings.housekeeping_seconds
        try:
            floor = await self._bus.acknowledged_floor(
                self._subjects.stream(REQUESTS), self._settings.requests_consumer
            )
        except NotFound:
            return  # no apiserver has ever run: there are no requests to wait for, and nothing was removed either
        buried = await self._outbox.bury(timestamp(self._clock.now() - GRAVE_AGE), floor)
        if buried:
            _log.info("graves.closed", count=buried)


def _went_back(recorded: StreamPosition | None, now: StreamPosition) -> bool:
    """Whether a stream is another incarnation, or shorter, than it was at the last trim."""
    return recorded is not None and (recorded.created != now.created or now.sequence < recorded.sequence)
