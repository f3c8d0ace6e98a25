"""Announces the outbox on JetStream, in order, and keeps store and bus consistent.

One relay leads. Before its first announcement, and after every doubt (a rejected batch, an unknown outcome, a server
that came back), it *recovers*: it compares the positions of the streams with those at the last trim.

    | the store  | the stream                       | what the relay does                                        |
    |------------|----------------------------------|------------------------------------------------------------|
    | is closed  | has stored more since the trim   | puts back what the bus has in a higher version, then opens |
    | is open    | another incarnation, or shorter  | announces again what lies above the stream's last version  |
    | any        | QUEUES went back, or one of both | queues every pending shoot again                           |
    | any        | any                              | queues the pending shoots again that were never tried      |
    | any        | another stream went back         | raises its incarnation, reports the loss (`stream_watch`)  |
    | any        | has what was replaced or removed | removes it (`obsolete_messages`), after each connection    |
    | has shoots |                                  | counts them by state, where an older version stored them   |
    | went back  |                                  | waits for the seeds' inventories (`recovery`)              |

A batch carries the sequence that the stream must stand at, and lets nobody else in between, so a relay that was paused
while another took over cannot announce the past after the present. BINDINGS gets nothing that OBJECTS does not have,
but for what was removed since: from there a store that went back learns what a seed runs. The first page after a
recovery goes in batches that are stored whole or not at all: should one of its messages be what the server rejects, it
is found that way.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import msgspec
import structlog

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.api.numbers import whole_number
from gardenbus.common.api.restored_requests import is_restored
from gardenbus.common.controller.cancellation import is_cancelled
from gardenbus.common.errors import BadRequest, Conflict, NotFound, Transient, Unavailable
from gardenbus.common.ports.bus import Bus, Message, ReplayDone, StreamMessage, StreamPosition
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.relay.domain.announcements import Announcements, announcements
from gardenbus.relay.held_page import HeldPage
from gardenbus.relay.obsolete_messages import ObsoleteMessages
from gardenbus.relay.ports.outbox import IndexedUpTo, Outbox, OutboxEntry, OutboxPage, RecoveryStart, Restored
from gardenbus.relay.recovery import RecoveryWatch
from gardenbus.relay.stream_watch import StreamWatch
from gardenbus.relay.tracing import log_announced, with_spans

_log = structlog.stdlib.get_logger()
_decode = json_decoder(Document)

OBJECTS, BINDINGS, QUEUES, REQUESTS = "OBJECTS", "BINDINGS", "QUEUES", "REQUESTS"
RESTORED, TRIMMED = "restored", "trimmed"
"""Kept beside the streams' positions: the lowest version put back and not yet announced again (0: none), as one that
dies over it leaves the rest to the next one; and the relay's clock (µs)."""

TOMBSTONE_AGE = timedelta(hours=1)

CLOCKS_DIFFER = timedelta(seconds=10)
"""By so much the clock of NATS may be behind the relay's."""

COMPARE_AGAIN_SECONDS = 60.0
"""Pause after a comparison with the bus that failed; twice as long after each further one."""

RESTORED_TOGETHER = 200
"""Objects put back in one round trip: many, but done long before the lead could pass to another relay."""


class RelaySettings(msgspec.Struct, frozen=True):
    """Limits and intervals of the relay."""

    page: int = 400
    """Outbox entries a round: two announcements each stay below JetStream's 1,000 messages a batch."""
    lead_ttl_seconds: float = 5.0
    """Life of the lead of a relay that died."""
    idle_seconds: float = 0.5
    """Longest wait for entries before the lead is renewed."""
    housekeeping_seconds: float = 60.0
    """Interval at which tombstones are collected."""
    lease_period: timedelta = timedelta(seconds=40)
    """Time that a recovery of the store lasts at least: a gardenlet that lives has posted within it."""
    holds_pages: bool = True
    """Have a page wait for its shoots to get seeds (`held_page`)."""
    fetches_ahead: bool = True
    """Read the next page while one is published."""
    requests_consumer: str = "apiserver"
    """Consumer whose acknowledgement floor on REQUESTS decides which tombstones may go."""


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
        self._watch = StreamWatch(outbox, bus, subjects, clock, consumer=self._settings.requests_consumer)
        self._obsolete = ObsoleteMessages(outbox, bus, subjects)
        self._recovery = RecoveryWatch(outbox, clock, self._settings.lease_period)
        self._compare_at, self._compare_again_after = 0.0, COMPARE_AGAIN_SECONDS
        self._positions: dict[str, StreamPosition] = {}
        self._needs_recovery = True
        self._is_cautious = True
        self._counts_older = True
        self._indexed = IndexedUpTo(0, is_end=False)
        self._announced_unblock_index = 0
        self._prefetched: OutboxPage | None = None
        self._held = HeldPage(outbox, clock, self._settings.page, is_enabled=self._settings.holds_pages)
        self._renew_at = 0.0
        self._housekeeping_at = 0.0
        self.leading = False
        self.on_announced: Callable[[Sequence[OutboxEntry]], None] = lambda _entries: None

    async def run(self) -> None:
        """Lead whenever nobody else does, and announce."""
        self._bus.on_reconnect(self._note_reconnect)
        try:
            while not is_cancelled():
                try:
                    await self._lead_once()
                except (Conflict, NotFound) as error:  # NotFound: a stream is gone; recovering creates it again
                    _log.info("relay.recovery_needed", reason=error.message)
                    self._needs_recovery = True
                except Transient as error:
                    _log.warning("relay.interrupted", reason=error.message)
                    self._needs_recovery = True
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

    async def _note_reconnect(self) -> None:
        self._needs_recovery = True
        self._obsolete.require()
        self._compare_at, self._compare_again_after = 0.0, COMPARE_AGAIN_SECONDS

    async def _lead_once(self) -> None:
        """Renew the lead when due, recover when in doubt, announce one page."""
        now = self._clock.monotonic()
        if now >= self._renew_at or not self.leading:
            await self._renew(now)
        if not self.leading:
            await self._clock.sleep(self._settings.idle_seconds)
            return
        if self._needs_recovery:
            self._prefetched = None  # another relay may have announced it by now
            await self._recover()
        await self._announce_page()
        if await self._recovery.step():
            await self._outbox.requeue_pending()
        if not self._indexed.is_end:
            self._indexed = await self._outbox.index_older(self._indexed.version)
        if self._counts_older:
            self._counts_older = await self._outbox.count_older()
        await self._compare_announced()
        await self._collect_tombstones(now)

    async def _compare_announced(self) -> None:
        """Compare one page with the store, later if that fails now: an older identity service may not permit it yet."""
        if not self._is_comparing():
            return
        try:
            await self._obsolete.step()
        except Unavailable as error:
            _log.warning("comparison.postponed", reason=error.message, seconds=self._compare_again_after)
            self._compare_at = self._clock.monotonic() + self._compare_again_after
            self._compare_again_after *= 2

    def _is_comparing(self) -> bool:
        return self._obsolete.is_pending and self._clock.monotonic() >= self._compare_at

    async def _renew(self, now: float) -> None:
        leadership = await self._outbox.lead(self._settings.lead_ttl_seconds)
        if leadership.leading != self.leading:
            _log.info("relay.leading" if leadership.leading else "relay.standing_by")
        self._needs_recovery |= not (leadership.is_continued and leadership.is_open)
        self.leading = leadership.leading
        self._renew_at = now + self._settings.lead_ttl_seconds / 5
        if self.leading and not self._needs_recovery:
            found = await self._positions_now()
            self._needs_recovery = any(_went_back(self._positions.get(name), found[name]) for name in found)
            if not self._needs_recovery:
                self._positions[QUEUES] = found[QUEUES]
                await self._watch.observe()

    async def _positions_now(self) -> dict[str, StreamPosition]:
        """Positions of the streams that this relay fills. Raises NotFound when one is gone."""
        names = (OBJECTS, BINDINGS, QUEUES)
        return dict(
            zip(
                names,
                await asyncio.gather(*(self._bus.position(self._subjects.stream(name)) for name in names)),
                strict=True,
            )
        )

    # ------------------------------------------------------------------------------------------ announcing

    async def _announce_page(self) -> None:
        page, self._prefetched = self._prefetched or await self._outbox.head(self._settings.page), None
        page = await self._held.read(page, announced_unblock_index=self._announced_unblock_index)
        if not page.entries:
            if not (self._is_comparing() or self._counts_older):
                await self._outbox.wait(self._settings.idle_seconds)
            return
        page, spans = with_spans(page)
        messages = announcements(page, self._subjects, announced_unblock_index=self._announced_unblock_index)
        last = page.entries[-1].entry
        results = await asyncio.gather(
            self._publish_changes(messages),
            self._publish_loose(messages.loose),
            self._prefetch(len(page.entries), last),
            return_exceptions=True,
        )
        problem = next((result for result in results if isinstance(result, BaseException)), None)
        for span in spans:
            span.end(failed="" if problem is None else str(problem))
        if problem is not None:
            raise problem
        log_announced(page)
        self._announced_unblock_index = messages.unblock_index
        try:
            await self._trim(last)
        except Conflict:
            # Acknowledgements may take longer than a lead lives. Where nobody else has led since, nothing has to be
            # announced again.
            await self._renew(self._clock.monotonic())
            if self._needs_recovery or not self.leading:
                raise
            await self._trim(last)
        self._is_cautious = False
        self.on_announced(page.entries)

    async def _trim(self, last: str) -> None:
        """Forget a page that has been announced, and read the next one unless that was done meanwhile."""
        if self._prefetched is None:
            self._prefetched = await self._outbox.advance(last, self._trimmed(), self._settings.page)
        else:
            await self._outbox.trim(last, self._trimmed())

    async def _publish_changes(self, messages: Announcements) -> None:
        """Publish what changed, then what seeds see of it: they act on what OBJECTS can bring back to the store."""
        await self._publish(OBJECTS, messages.changed)
        await self._publish(BINDINGS, messages.bindings)

    async def _publish_loose(self, messages: Sequence[Message]) -> None:
        """Publish queue messages and Events, without those that the bus can never store: they would block others."""
        try:
            await self._bus.publish_many(messages)
        except BadRequest as error:
            if len(messages) > 1:
                middle = len(messages) // 2
                await self._publish_loose(messages[:middle])
                await self._publish_loose(messages[middle:])
                return
            _log.error("announcement.left_out", subject=messages[0].subject, reason=error.message)

    async def _prefetch(self, count: int, last: str) -> None:
        """Read the next page while one is published, if there is likely to be one."""
        if self._settings.fetches_ahead and count >= self._settings.page // 2:
            with suppress(Conflict):  # the lead has expired, which is found out when the page is trimmed
                prefetched = await self._outbox.head(self._settings.page, last)
                self._prefetched = prefetched if prefetched.entries else None

    async def _publish(self, stream: str, batch: Sequence[Message]) -> None:
        if not batch:
            return
        position = self._positions[stream]
        try:
            last = await self._bus.publish_batch(
                self._subjects.stream(stream), batch, expected_last_sequence=position.sequence, whole=self._is_cautious
            )
        except BadRequest as error:
            await self._publish_around(stream, batch, error)
            return
        self._positions[stream] = StreamPosition(position.created, last)

    async def _publish_around(self, stream: str, batch: Sequence[Message], error: BadRequest) -> None:
        """Halve a batch that the server rejects for its content until the culprit is alone; announce that bodiless."""
        if len(batch) > 1:
            middle = len(batch) // 2
            await self._publish(stream, batch[:middle])
            await self._publish(stream, batch[middle:])
            return
        message = batch[0]
        if Header.TOO_LARGE in message.headers:
            raise Conflict(f"{message.subject} is rejected even without its body: {error.message}")
        _log.error("announcement.shortened", subject=message.subject, bytes=len(message.body), reason=error.message)
        headers = {**message.headers, Header.TOO_LARGE: str(len(message.body))}
        await self._publish(stream, [msgspec.structs.replace(message, body=b"", headers=headers)])

    # ------------------------------------------------------------------------------------------ recovering

    async def _recover(self) -> None:
        """See the module's table."""
        await self._bus.ensure_streams()
        leadership = await self._outbox.lead(self._settings.lead_ttl_seconds)
        if not leadership.leading:
            raise Conflict("another relay leads by now")
        recorded = await self._outbox.positions()
        now = await self._positions_now()
        await self._keep_lead()
        restored_from = recorded[RESTORED].sequence if RESTORED in recorded else 0
        if not leadership.is_open:
            await self._watch.compare()
            restored_from = await self._reopen(recorded, now[OBJECTS], restored_from)
        self._recovery.require()
        if restored_from:  # the store lost their outbox entries too: bindings and work may never have been announced
            await self._outbox.reannounce(restored_from - 1)
            await self._outbox.requeue_pending()
            await self._note_restored(0)
        await self._watch.observe_all()  # before anything is queued again: it may have to be repeated for a while
        await self._repeat(recorded, now)
        self._positions = dict(now)
        self._needs_recovery, self._is_cautious = False, True
        await self._outbox.trim(None, self._trimmed())
        self._obsolete.begin(recorded)
        self._counts_older = True

    async def _repeat(self, recorded: Mapping[str, StreamPosition], now: Mapping[str, StreamPosition]) -> None:
        """Announce again what streams that went back have lost.

        QUEUES may have grown past its recorded end since, through what others publish. If it went back alone nothing
        shows it: shoots that were never tried, and the unblocking of the others, are queued in any case.
        """
        lost = [name for name in (OBJECTS, BINDINGS) if _went_back(recorded.get(name), now[name])]
        if lost:
            above = min([await self._last_version(name, recorded[name], now[name]) for name in lost])
            _log.warning("announcements.repeated", streams=lost, above_version=above)
            await self._outbox.reannounce(above)
        if lost or _went_back(recorded.get(QUEUES), now[QUEUES]):
            _log.warning("pending_shoots.requeued")
            await self._outbox.requeue_pending()
        else:
            await self._outbox.requeue_pending(untried_only=True)

    def _trimmed(self) -> Mapping[str, StreamPosition]:
        now = round(self._clock.now().timestamp() * 1_000_000)
        return {**self._positions, TRIMMED: StreamPosition(0, now)}

    async def _read_before(self, recorded: Mapping[str, StreamPosition], now: StreamPosition) -> int:
        """The last sequence of OBJECTS of which a store that is closed has all before it.

        The stream may have gone back since the last trim that the store knows, and have stored other messages in the
        places of those: what it stored after that trim is read as well, by the time.
        """
        last = recorded.get(OBJECTS)
        if last is None or last.created != now.created:
            return 0
        if TRIMMED not in recorded:
            return last.sequence
        trimmed_at = datetime.fromtimestamp(recorded[TRIMMED].sequence / 1_000_000, UTC)
        lowest, highest = 0, min(last.sequence, now.sequence)
        while lowest < highest:
            middle = (lowest + highest + 1) // 2
            found = await self._bus.first_from(self._subjects.stream(OBJECTS), middle)
            if found is not None and found.sequence <= highest and found.at <= trimmed_at - CLOCKS_DIFFER:
                lowest = found.sequence
            else:
                highest = middle - 1
        return lowest

    async def _reopen(self, recorded: Mapping[str, StreamPosition], now: StreamPosition, restored_from: int) -> int:
        """Put back what the bus has in higher versions, then open the store; returns the lowest version put back.

        `restored_from`: that of a relay that did not come to its end (0: none).
        """
        after = await self._read_before(recorded, now)
        version = unblock_index = 0
        restored = [restored_from] if restored_from else []
        read: list[Restored] = []
        if now.sequence > after:
            async with self._bus.follow(
                self._subjects.stream(OBJECTS), [f"{self._subjects.prefix}.changed.>"], after_sequence=after
            ) as follower:
                async for event in follower:
                    if isinstance(event, ReplayDone):
                        break
                    if isinstance(event, StreamMessage):
                        version = max(version, whole_number(event.headers.get(Header.VERSION)))
                        unblock_index = max(unblock_index, whole_number(event.headers.get(Header.UNBLOCK_INDEX)))
                        if (restorable := self._restored(event)) is not None:
                            read.append(restorable)
                        if len(read) >= RESTORED_TOGETHER:
                            restored += await self._restore(read, restored)
                            read = []
        restored += await self._restore(read, restored)
        await self._note_restored(min(restored, default=0))
        await self._index_older()
        cause = _cause(len(restored), is_bus_lost=_went_back(recorded.get(OBJECTS), now))
        requests = self._subjects.stream(REQUESTS)
        start = RecoveryStart(cause, requests, await self._bus.position(requests))
        await self._outbox.open(version, unblock_index, start)
        _log.info("store.opened", restored=len(restored), version=version)
        return min(restored, default=0)

    async def _note_restored(self, version: int) -> None:
        await self._outbox.trim(None, {RESTORED: StreamPosition(0, version)})

    async def _index_older(self) -> None:
        """Index what an older version stored; what it writes until the store is open is indexed after that."""
        self._indexed = IndexedUpTo(0, is_end=False)
        while not self._indexed.is_end:
            self._indexed = await self._outbox.index_older(self._indexed.version)
            await self._keep_lead()
        self._indexed = self._indexed._replace(is_end=False)

    async def _keep_lead(self) -> None:
        now = self._clock.monotonic()
        if now >= self._renew_at:
            self._renew_at = now + self._settings.lead_ttl_seconds / 5
            leadership = await self._outbox.lead(self._settings.lead_ttl_seconds)
            if not leadership.is_continued:
                raise Conflict("another relay leads by now, or the store is another one")

    def _restored(self, message: StreamMessage) -> Restored | None:
        """Decode an announcement; None when it cannot be restored from."""
        deleted = message.headers.get(Header.VERB) == "deleted"
        try:
            if Header.TOO_LARGE not in message.headers:
                return Restored(
                    key=ObjectKey.from_tail(message.subject.removeprefix(f"{self._subjects.prefix}.changed.")),
                    uid=message.headers[Header.UID],
                    version=int(message.headers[Header.VERSION]),
                    document=None if deleted else _decode(message.body),
                )
        except (KeyError, ValueError, msgspec.DecodeError):
            pass  # nothing that a relay has announced
        _log.error("document.unrestorable", subject=message.subject)
        return None

    async def _restore(self, read: Sequence[Restored], restored: Sequence[int]) -> list[int]:
        """Put back what the store has in a lower version; returns those versions. `restored`: those before."""
        if read:
            await self._note_restored(min([*restored, *(each.version for each in read)]))
        results = await self._outbox.restore_many(read)
        await self._keep_lead()
        return [each.version for each, was_restored in zip(read, results, strict=True) if was_restored]

    async def _last_version(self, name: str, recorded: StreamPosition, now: StreamPosition) -> int:
        """The version of a stream's last message: everything above it may never have been announced there."""
        if recorded.created != now.created or now.sequence == 0:
            return 0
        async with self._bus.follow(
            self._subjects.stream(name), [f"{self._subjects.prefix}.>"], after_sequence=max(0, now.sequence - 1)
        ) as follower:
            async for event in follower:
                if isinstance(event, StreamMessage):
                    return whole_number(event.headers.get(Header.VERSION))
                break
        return 0

    async def _collect_tombstones(self, now: float) -> None:
        if now < self._housekeeping_at:
            return
        self._housekeeping_at = now + self._settings.housekeeping_seconds
        await self._watch.observe_all()
        first = await self._bus.first_from(self._subjects.stream(REQUESTS), 0)
        if first is not None and is_restored(first.subject, self._subjects):
            return  # it was sent before all that the floor is about, and removals after it must be remembered
        try:
            floor = await self._bus.acknowledged_floor(
                self._subjects.stream(REQUESTS), self._settings.requests_consumer
            )
        except NotFound:
            return  # no apiserver has ever run: there are no requests to wait for, and nothing was removed either
        floor = msgspec.structs.replace(floor, created=(await self._watch.requests.position()).created)
        if collected := await self._outbox.collect_tombstones(timestamp(self._clock.now() - TOMBSTONE_AGE), floor):
            _log.info("tombstones.collected", count=collected)


def _went_back(recorded: StreamPosition | None, now: StreamPosition) -> bool:
    """True if a stream is another incarnation, or shorter, than it was at the last trim."""
    return recorded is not None and (recorded.created != now.created or now.sequence < recorded.sequence)


def _cause(restored: int, *, is_bus_lost: bool) -> str:
    """Grounds on which a store that is opened may lack what runs on seeds; "" for none."""
    if restored:
        return "it lacked what the bus had"
    return "OBJECTS is another stream than it knew, or has lost messages" if is_bus_lost else ""
