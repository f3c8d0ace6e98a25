"""One worker: takes batches off a queue and has them settled, through outages, and finds out what kills it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import structlog

from gardenbus.common.errors import Transient
from gardenbus.common.machinery.rejected_metrics import HANDLER_FAILED, REJECTED
from gardenbus.common.ports.bus import Bus, Message, Work, WorkQueue
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import EventRecord, Store
from gardenbus.common.resources.keys import Header, ObjectKey, Subjects

_log = structlog.stdlib.get_logger()

WAIT_SECONDS = 1.0
"""How long a fetch waits for the first message; a stop takes at most that long to be noticed."""

HOLD_SECONDS = 3.0
"""How often work that was fetched ahead is told to be in hand; far below the queue's acknowledgement time of 10 s."""

RETRY_SECONDS = 0.5
"""Pause after a server was away."""

ALONE_AFTER = 3
"""Work delivered more often than this is settled on its own, to tell what kills a process from its neighbours."""

MOST_DELIVERIES = 5
"""Work delivered more often than this has killed its handler too often, and is rejected."""

Settle = Callable[[Sequence[Work]], Awaitable[None]]


class Worker:
    """Runs one queue until `stopping` is set; batches of at most `batch_size`."""

    def __init__(
        self,
        *,
        queue: WorkQueue,
        settle: Settle,
        reject: Callable[[Work], Awaitable[None]],
        clock: Clock,
        stopping: asyncio.Event,
        batch_size: int,
    ) -> None:
        self._queue = queue
        self._settle = settle
        self._reject = reject
        self._clock = clock
        self._stopping = stopping
        self._batch_size = batch_size

    async def run(self) -> None:
        """Work until stopped; what is in hand then is still settled.

        While a batch is settled the next one is fetched.
        """
        ahead: asyncio.Task[Sequence[Work]] | None = None
        try:
            while ahead is not None or not self._stopping.is_set():
                ahead = ahead or self._ask()
                try:
                    works = await ahead
                except Transient as error:
                    ahead = None
                    _log.warning("queue.unreachable", reason=error.message)
                    await self._clock.sleep(RETRY_SECONDS)
                    continue
                ahead = self._ask() if works and not self._stopping.is_set() else None
                for batch in _batches(works):
                    await self._holding(ahead, self._through_outages(batch))
        finally:
            if ahead is not None:
                ahead.cancel()

    def _ask(self) -> "asyncio.Task[Sequence[Work]]":
        return asyncio.create_task(self._fetched(), name="fetch")

    async def _fetched(self) -> Sequence[Work]:
        return await self._queue.fetch(self._batch_size, WAIT_SECONDS)

    async def _holding(self, ahead: "asyncio.Task[Sequence[Work]] | None", settling: Coroutine[Any, Any, None]) -> None:
        """Settle, and keep the work that was fetched ahead from being given to others meanwhile."""
        task = asyncio.create_task(settling, name="settle")
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=HOLD_SECONDS)
                if not task.done() and ahead is not None and ahead.done() and ahead.exception() is None:
                    await asyncio.gather(*(work.in_progress() for work in ahead.result()))
        finally:
            task.cancel()
        await task

    async def _through_outages(self, batch: Sequence[Work]) -> None:
        while True:
            try:
                if batch[0].deliveries > MOST_DELIVERIES:
                    await self._reject(batch[0])
                else:
                    await self._settle(batch)
            except Transient as error:
                _log.warning("batch.interrupted", works=len(batch), reason=error.message)
                if self._stopping.is_set():
                    return  # it is delivered again
                await self._clock.sleep(RETRY_SECONDS)
                with contextlib.suppress(Transient):
                    await asyncio.gather(*(work.in_progress() for work in batch))
            else:
                return


def _batches(works: Sequence[Work]) -> list[Sequence[Work]]:
    together = [work for work in works if work.deliveries <= ALONE_AFTER]
    alone = [[work] for work in works if work.deliveries > ALONE_AFTER]
    return [*([together] if together else []), *alone]


class Rejection:
    """What becomes of work that nobody survives: kept on the subject for rejected messages, with a Warning Event."""

    def __init__(self, *, bus: Bus, store: Store, subjects: Subjects, queue: WorkQueue) -> None:
        self._bus = bus
        self._store = store
        self._subjects = subjects
        self._queue = queue

    async def __call__(self, work: Work) -> None:
        """Reject one message about a shoot."""
        subject = work.message.subject
        reason = f"its handler did not survive {work.deliveries - 1} deliveries"
        headers = {Header.REASON: reason, Header.SUBJECT: subject}
        await self._bus.publish(Message(self._subjects.rejected, work.message.body, headers))
        REJECTED.labels(HANDLER_FAILED).inc()
        namespace, name = subject.split(".queue.", 1)[-1].split(".", 3)[2:]
        stored = await self._store.get(ObjectKey("shoot", namespace, name))
        if stored is not None:
            await self._store.record_event(
                EventRecord(
                    about=stored.key,
                    uid=stored.uid,
                    type="Warning",
                    reason="SchedulingRejected",
                    message=f"The shoot is not scheduled until it changes: {reason}",
                    reporter="shoot-scheduler",
                    action="Reconcile",
                )
            )
        _log.error("work.rejected", subject=subject, reason=reason)
        await self._queue.ack_many([work])
