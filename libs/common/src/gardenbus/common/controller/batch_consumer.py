"""Runs a handler against a work queue in batches.

| a batch, or a message of it         | what happens                                                                   |
|-------------------------------------|--------------------------------------------------------------------------------|
| the handler raises Transient        | stays in flight, its ack deadline extended, and is handled again after a pause |
| the handler raises anything else    | released, all of it, and comes back                                            |
| a message was delivered before      | isolated: handled alone, so that it harms no other                             |
| a message waits for its turn        | its ack deadline is extended with those of the messages that are handled       |
| delivered for the last allowed time | handled in the opposite order: what is behind a poison message gets through    |
| delivered more often than allowed   | rejected (see `dead_letter`)                                                   |
| it was delivered to a process that  | a suspect: handled alone in a process of its own (see `isolation`), where      |
| may have died of it                 | there is one; rejected if that process dies too, however often delivered       |
| the consumer is stopped             | what is not finished is released, for another replica                          |

Nothing is released while a server is away, as each delivery counts against a message. While a batch of new messages is
handled, the next one is fetched if more waited than one fetch takes. Else what comes meanwhile makes one
batch afterwards, or is another replica's that is idle. Beside messages that came back nothing is fetched: where one of
them kills the process, a delivery would count against messages that no handler has seen.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import msgspec
import structlog

from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.controller.cancellation import unless_set
from gardenbus.common.controller.controller import Reject
from gardenbus.common.controller.isolation import Handle, Isolation, Survived
from gardenbus.common.controller.reconcile_ids import bound_reconcile_id
from gardenbus.common.controller.wait import forever
from gardenbus.common.errors import Transient, Unavailable
from gardenbus.common.ports.bus import QueueMessage, WorkQueue
from gardenbus.common.ports.clock import Clock

EXTEND_SECONDS = 3.0
"""Interval at which ack deadlines of messages in flight are extended; less than a third of the queues' 10 s."""

PAUSES = Backoff(base_seconds=0.2, cap_seconds=5.0)

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class BatchSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a batch consumer."""

    batch: int = 100
    """Messages fetched at once."""

    wait_seconds: float = 1.0
    """Longest wait for the first message of a batch."""

    isolate_from: int = 2
    """Delivery from which on a message is handled alone."""

    max_deliveries: int = 5
    """Deliveries after which a message is rejected."""

    fetches_ahead: bool = True
    """Fetch the next batch while one is handled where more waits."""


class BatchObserver(Protocol):
    """Counts what a consumer does."""

    def finished(self, messages: Sequence[QueueMessage]) -> None:
        """Messages were handled or rejected."""
        ...

    def returned(self, messages: Sequence[QueueMessage]) -> None:
        """Messages were released after an unexpected error."""
        ...


class _NoObserver:
    def finished(self, messages: Sequence[QueueMessage]) -> None: ...

    def returned(self, messages: Sequence[QueueMessage]) -> None: ...


class IsolatedHandlerFailed(Exception):
    """The handler raised something unexpected in the process of its own, which has logged it."""


class BatchConsumer:
    """One loop over one durable queue; see the module."""

    def __init__(  # noqa: PLR0913
        self,
        name: str,
        queue: WorkQueue,
        handle: Handle,
        *,
        reject: Reject,
        clock: Clock,
        settings: BatchSettings = BatchSettings(),  # noqa: B008  (frozen)
        observer: BatchObserver = _NoObserver(),  # noqa: B008  (stateless)
        stopping: asyncio.Event | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        self._name = name
        self._queue = queue
        self._handle = handle
        self._reject = reject
        self._clock = clock
        self._settings = settings
        self._observer = observer
        self._isolation = isolation
        self._survived = Survived()
        self._prefetched: Sequence[QueueMessage] = ()
        self._stopping = stopping or asyncio.Event()
        self._stopped = asyncio.Event()
        self._stopped.set()

    async def run(self) -> None:
        """Consume until `stop`."""
        self._stopped.clear()
        try:
            messages = await self._fetch()
            while not self._stopping.is_set():
                messages = await self._process_and_fetch(messages)
            await self._release(messages)
        finally:
            self._stopped.set()

    async def stop(self) -> None:
        """Fetch no more, not even what is being waited for; returns when what is in flight has ended."""
        self._stopping.set()
        await self._stopped.wait()

    async def process(self, messages: Sequence[QueueMessage]) -> None:
        """Handle what was fetched: new messages together, those that came back one by one."""
        together, isolated = arrange(messages, self._settings)
        portions = ([together] if together else []) + [[message] for message in isolated]
        for number, portion in enumerate(portions, start=1):
            handle = self._handler_of(portion[0])
            waiting = [message for later in portions[number:] for message in later]
            with bound_reconcile_id():
                await self._retry_while_unavailable(portion, handle, waiting=waiting)
            self._observer.finished(portion)
            if self._isolation is not None:
                self._survived.note(portion)

    def _handler_of(self, first: QueueMessage) -> Handle:
        """Handler of a portion, by its first message, which is the only one if it came back."""
        if self._isolation is not None and self._survived.is_suspect(first):
            return self._handle_isolated
        return self._reject_all if first.deliveries > self._settings.max_deliveries else self._handle

    async def _process_and_fetch(self, messages: Sequence[QueueMessage]) -> Sequence[QueueMessage]:
        """Handle a batch and return the next one."""
        if not (self._settings.fetches_ahead and self._all_new(messages) and self._queue.depth):
            await self.process(messages)
            return await self._fetch()
        fetching = asyncio.create_task(self._prefetch(), name=f"{self._name} fetch")
        try:
            await self.process(messages)
            return await fetching
        finally:
            fetching.cancel()
            self._prefetched = ()

    def _all_new(self, messages: Sequence[QueueMessage]) -> bool:
        return bool(messages) and all(message.deliveries < self._settings.isolate_from for message in messages)

    async def _fetch(self) -> Sequence[QueueMessage]:
        pauses = PAUSES.pauses()
        while not self._stopping.is_set():
            try:
                fetching = self._queue.fetch(self._settings.batch, self._settings.wait_seconds)
                return await unless_set(self._stopping, fetching) or ()
            except Transient as error:
                _log.warning("queue.unreachable", consumer=self._name, reason=error.message)
                await unless_set(self._stopping, self._clock.sleep(next(pauses)))
        return ()

    async def _prefetch(self) -> Sequence[QueueMessage]:
        self._prefetched = await self._fetch()
        return self._prefetched

    async def _retry_while_unavailable(
        self, messages: Sequence[QueueMessage], handle: Handle, *, waiting: Sequence[QueueMessage]
    ) -> None:
        pauses = PAUSES.pauses()
        in_flight = (*messages, *waiting)
        extending = asyncio.create_task(self._extend_deadlines(in_flight), name=f"{self._name} extend")
        try:
            while True:
                try:
                    return await handle(messages)
                except Transient as error:
                    _log.warning("batch.interrupted", consumer=self._name, reason=error.message, messages=len(messages))
                    if self._stopping.is_set():
                        return await self._release(messages)
                except Exception:  # noqa: BLE001 - the loop that must go on
                    _log.exception("batch.failed", consumer=self._name, messages=len(messages))
                    self._observer.returned(messages)
                    return await self._release(messages)
                await self._clock.sleep(next(pauses))
                await self._extend(in_flight)
        finally:
            extending.cancel()

    async def _extend_deadlines(self, messages: Sequence[QueueMessage]) -> None:
        await forever(
            lambda: self._extend((*messages, *self._prefetched)),
            period_seconds=EXTEND_SECONDS,
            sleep=asyncio.sleep,
            is_immediate=False,
        )

    async def _extend(self, messages: Sequence[QueueMessage]) -> None:
        try:
            for message in messages:
                await message.in_progress()
        except Transient as error:
            _log.warning("deadline.not_extended", consumer=self._name, reason=error.message)

    async def _release(self, messages: Sequence[QueueMessage]) -> None:
        with suppress(Transient):  # what cannot be released is delivered again when its deadline has passed
            for message in messages:
                await message.release()

    async def _handle_isolated(self, messages: Sequence[QueueMessage]) -> None:
        """Handle a suspect in a process of its own, and do with it what its handler did there."""
        assert self._isolation is not None
        (message,) = messages
        result = await self._isolation.handle(self._name, message)
        if result.death:
            _log.error("message.deadly", consumer=self._name, subject=message.message.subject, reason=result.death)
            await self._isolation.reject(message, result.death)
        elif result.transient:
            raise Unavailable(result.transient)
        elif result.error and message.deliveries > self._settings.max_deliveries:
            await self._reject(message)
        elif result.error:
            raise IsolatedHandlerFailed(result.error)
        elif result.ended == "acknowledged":
            await message.ack()
        else:
            await message.release()

    async def _reject_all(self, messages: Sequence[QueueMessage]) -> None:
        for message in messages:
            await self._reject(message)


def arrange(
    messages: Sequence[QueueMessage], settings: BatchSettings
) -> tuple[Sequence[QueueMessage], Sequence[QueueMessage]]:
    """Messages to be handled together, and those to be handled alone, in the order of the stream.

    What is delivered again comes in the order in which its deadlines passed.
    """
    together = [message for message in messages if message.deliveries < settings.isolate_from]
    again = (message for message in messages if message.deliveries >= settings.isolate_from)
    isolated = sorted(again, key=lambda message: message.message.sequence)
    is_last_chance = bool(isolated) and max(each.deliveries for each in isolated) == settings.max_deliveries
    return together, isolated[::-1] if is_last_chance else isolated
