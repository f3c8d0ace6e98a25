"""Taking messages from a durable queue in batches, whatever happens.

- The store or the bus is away: the batch stays in hand (and is kept from being delivered to others) until it is back.
  Nothing is released meanwhile, as each delivery counts against a message.
- A batch that ended in an unexpected error is released and comes back. A message that comes back is
  taken alone, so that it harms nobody else, and the last time in the opposite order: where one message of a batch
  kills the process, what stands before it gets through at first, and what stands behind it at last.
- What came back more than `deliveries_max` times is rejected.
- While a batch of new messages is carried out the next one is fetched, and prepared while the store is waited for.
  Beside messages that came back nothing is: where one of them kills the process, a delivery would count against
  messages that nobody has looked at.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog
from prometheus_client import Counter, Histogram

from gardenbus.apiserver.reconcilers.rejecting import Rejections
from gardenbus.common.errors import Terminal, Transient
from gardenbus.common.ports.bus import Work, WorkQueue
from gardenbus.common.ports.clock import Clock

_log = structlog.stdlib.get_logger()

TAKEN = Counter("gardenbus_apiserver_messages_taken_total", "Messages that were carried out or rejected.", ["intake"])
WAIT_SECONDS = Histogram(
    "gardenbus_apiserver_queue_wait_seconds", "From publishing until it was in hand, of each batch's first message.",
    ["intake"], buckets=(0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)  # fmt: skip
RETURNED = Counter("gardenbus_apiserver_messages_returned_total", "Messages given back after an error.", ["intake"])

KEEP_SECONDS = 4.0
"""How often messages in hand are kept from being delivered again; less than half of the queues' 10 s."""

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 5.0

ALONE_FROM = 2
"""From this delivery on a message is taken alone."""

Handle = Callable[[Sequence[Work]], Awaitable[None]]
"""Carries a batch out and acknowledges it. Raises Transient when it must be taken again as it is."""


Prepare = Callable[[Sequence[Work]], Awaitable[None]]
"""Does ahead what can be done of a batch while another one is carried out. Where it fails, the handler does it all."""


class KilledItsHandler(Terminal):
    """A message that was delivered too often without being ended."""

    reason = "HandlerFailed"


class Intake:
    """One loop over one durable queue."""

    def __init__(  # noqa: PLR0913
        self,
        name: str,
        queue: WorkQueue,
        handle: Handle,
        rejections: Rejections,
        clock: Clock,
        *,
        batch: int,
        prepare: Prepare | None = None,
    ) -> None:
        self._name = name
        self._queue = queue
        self._handle = handle
        self._prepare = prepare
        self._rejections = rejections
        self._clock = clock
        self._batch = batch
        self._ahead: Sequence[Work] = ()
        self._stopping = asyncio.Event()
        self._ended = asyncio.Event()
        self._ended.set()
        RETURNED.labels(name)  # shown as 0 from the beginning: a rate needs a first value

    async def run(self, *, deliveries_max: int, wait_seconds: float) -> None:
        """Take batches until `stop`."""
        self._ended.clear()
        try:
            works = await self._fetch(wait_seconds)
            while not self._stopping.is_set():
                works = await self._take_and_fetch(works, deliveries_max=deliveries_max, wait_seconds=wait_seconds)
            await self._release(works)
        finally:
            self._ended.set()

    async def _take_and_fetch(
        self, works: Sequence[Work], *, deliveries_max: int, wait_seconds: float
    ) -> Sequence[Work]:
        """Carry out a batch, and answer the next one; it is fetched meanwhile where that does no harm."""
        if not works or any(work.deliveries >= ALONE_FROM for work in works):
            await self.take(works, deliveries_max=deliveries_max)
            return await self._fetch(wait_seconds)
        fetching = asyncio.create_task(self._fetch_ahead(wait_seconds))
        try:
            await self.take(works, deliveries_max=deliveries_max)
            return await fetching
        finally:
            fetching.cancel()
            self._ahead = ()

    async def stop(self) -> None:
        """Take no more, and wait for what is in hand."""
        self._stopping.set()
        await self._ended.wait()

    async def _fetch(self, wait_seconds: float) -> Sequence[Work]:
        pause = FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            try:
                return await self._queue.fetch(self._batch, wait_seconds)
            except Transient as error:
                _log.warning("intake.interrupted", intake=self._name, reason=error.message)
                await self._clock.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        return ()

    async def _fetch_ahead(self, wait_seconds: float) -> Sequence[Work]:
        self._ahead = works = await self._fetch(wait_seconds)
        if self._prepare is not None and works and all(work.deliveries < ALONE_FROM for work in works):
            try:
                await self._prepare(works)
            except Exception as error:  # noqa: BLE001 - the handler meets it again, where one batch is all that fails
                _log.info("intake.unprepared", intake=self._name, reason=str(error), messages=len(works))
        return works

    async def take(self, works: Sequence[Work], *, deliveries_max: int) -> None:
        """Carry out what was fetched: new messages together, those that came back one by one."""
        together, alone = arranged(works, deliveries_max)
        for portion in ([together] if together else []) + [[work] for work in alone]:
            if portion[0].deliveries > deliveries_max:
                await self._insist(portion, self._give_up)
            else:
                await self._insist(portion, self._handle)
            TAKEN.labels(self._name).inc(len(portion))
            WAIT_SECONDS.labels(self._name).observe(portion[0].queued_ms / 1000)

    async def _insist(self, works: Sequence[Work], handle: Handle) -> None:
        pause = FIRST_PAUSE_SECONDS
        keeper = asyncio.create_task(self._keep(works))
        try:
            while True:
                try:
                    return await handle(works)
                except Transient as error:
                    _log.warning("intake.paused", intake=self._name, reason=error.message, messages=len(works))
                    if self._stopping.is_set():
                        return await self._release(works)
                except Exception:  # noqa: BLE001 - the loop that must go on
                    _log.exception("intake.failed", intake=self._name, messages=len(works))
                    RETURNED.labels(self._name).inc(len(works))
                    return await self._release(works)
                await self._clock.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        finally:
            keeper.cancel()

    async def _keep(self, works: Sequence[Work]) -> None:
        while True:
            await self._clock.sleep(KEEP_SECONDS)
            try:
                for work in (*works, *self._ahead):
                    await work.in_progress()
            except Transient as error:
                _log.warning("intake.keeping_failed", intake=self._name, reason=error.message)

    async def _release(self, works: Sequence[Work]) -> None:
        for work in works:
            try:
                await work.release()
            except Transient:
                return  # it is delivered again by itself when the acknowledgement does not come

    async def _give_up(self, works: Sequence[Work]) -> None:
        for work in works:
            failures = work.deliveries - 1
            error = KilledItsHandler(f"its handler failed {failures} times and did not end it")
            await self._rejections.reject(work.message, error)
            await work.ack()


def arranged(works: Sequence[Work], deliveries_max: int) -> tuple[Sequence[Work], Sequence[Work]]:
    """Messages to be taken together, and those to be taken alone, in the order to take them in."""
    together = [work for work in works if work.deliveries < ALONE_FROM]
    again = [work for work in works if work.deliveries >= ALONE_FROM]
    is_last_chance = bool(again) and max(work.deliveries for work in again) == deliveries_max
    return together, again[::-1] if is_last_chance else again
