"""The loop around a reconciler: takes work from a queue, looks, and turns what comes of it into a queue action.

| what comes of a look                  | what happens to the work                                         |
|---------------------------------------|------------------------------------------------------------------|
| Done                                  | acknowledged                                                     |
| After(seconds)                        | a timer is set, then it is acknowledged; failures start at none  |
| Again, Conflict                       | another look at once, a few times; then as a failure             |
| Transient, any unknown exception      | a timer with backoff and one failure more, then acknowledged     |
| Terminal                              | acknowledged; the object's next change brings it back            |
| delivered more often than allowed     | `rejected` is called, then acknowledged                          |
| this process is stopped meanwhile     | released, for another replica to take at once                    |

Within one process no two looks at the same object run at once; between processes they may, and the store decides.
A timer is stored before the work is acknowledged: a crash in between means one look too many, never one too few.
"""

import asyncio
import random
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Literal, TypeVar

import msgspec
import structlog

from gardenbus.common.errors import Conflict, Terminal, Transient, Unavailable
from gardenbus.common.machinery import controller_metrics as metrics
from gardenbus.common.machinery.backoff import Backoff
from gardenbus.common.machinery.timers import Timers
from gardenbus.common.ports.bus import Work, WorkQueue
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.keys import CLUSTER_SCOPE, Header

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class WorkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work: which object to look at. `attempt` counts failures so far (0: none)."""

    subject: str
    tail: str
    attempt: int
    deliveries: int
    reconcile_id: str
    queued_ms: float

    @property
    def namespace(self) -> str:
        """The object's namespace, "" when it has none."""
        namespace = self.tail.partition(".")[0]
        return "" if namespace == CLUSTER_SCOPE else namespace

    @property
    def name(self) -> str:
        """The object's name (it may hold dots)."""
        return self.tail.partition(".")[2]


class Done(msgspec.Struct, frozen=True):
    """There is nothing to do until the object changes."""

    reason: str = ""


class After(msgspec.Struct, frozen=True):
    """Look again in some seconds; not a failure."""

    seconds: float
    reason: str = ""


class Again(msgspec.Struct, frozen=True):
    """Look again at once: what was read is no longer so."""

    reason: str = ""


Outcome = Done | After | Again
Reconcile = Callable[[WorkRequest], Awaitable[Outcome]]
Rejected = Callable[[WorkRequest, str], Awaitable[None]]
Waited = TypeVar("Waited")
Ending = Literal["done", "after", "failed", "dropped", "rejected"]

_RESULTS: Mapping[Ending, str] = {
    "done": "success",
    "after": "requeue_after",
    "failed": "error",
    "dropped": "error",
    "rejected": "error",
}


class ControllerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a controller works."""

    workers: int = 16
    """Looks at once; they wait for servers most of the time."""

    looks: int = 10
    """Looks in a row at an object that changes underneath, before it has to wait its turn."""

    max_deliveries: int = 5
    """Work delivered more often has ended every process that took it."""

    wait_seconds: float = 5.0
    """Length of a wait for work; it costs one request."""

    heartbeat_seconds: float = 3.0
    """How often the queue is told that work is still in hand: a third of its acknowledgement time."""

    drain_seconds: float = 3.0
    """How long work in hand may go on after `stop`."""

    retry_seconds: float = 0.5
    """Pause after the bus did not answer."""


class _Verdict(msgspec.Struct, frozen=True):
    ending: Ending
    reason: str
    after_seconds: float = 0.0


class Controller:
    """See the module. `name` is the queue's word below `garden.queue`, and the metrics' label."""

    def __init__(  # noqa: PLR0913  (each is a collaborator of its own)
        self,
        name: str,
        queue: WorkQueue,
        reconcile: Reconcile,
        *,
        timers: Timers,
        clock: Clock,
        rejected: Rejected,
        backoff: Backoff = Backoff(),  # noqa: B008  (frozen)
        settings: ControllerSettings = ControllerSettings(),  # noqa: B008  (frozen)
        fraction: Callable[[], float] = random.random,
    ) -> None:
        self._name = name
        self._queue = queue
        self._reconcile = reconcile
        self._timers = timers
        self._clock = clock
        self._rejected = rejected
        self._backoff = backoff
        self._settings = settings
        self._fraction = fraction
        self._subject_prefix = timers.subjects.queue_of(name).removesuffix(">")
        self._in_hand: dict[asyncio.Task[None], tuple[Work, float]] = {}
        self._latest: dict[str, asyncio.Task[None]] = {}
        self._stopping = asyncio.Event()
        self._stopped = asyncio.Event()
        self._stopped.set()

    async def run(self) -> None:
        """Work until `stop`; then let go of what is in hand. To be run once."""
        self._stopped.clear()
        metrics.MAX_CONCURRENT.labels(self._name).set(self._settings.workers)
        heartbeat = asyncio.create_task(self._keep_in_hand())
        try:
            while not self._stopping.is_set():
                await self._take_work()
            await self._drain()
        finally:
            heartbeat.cancel()
            for task in self._in_hand:
                task.cancel()
            self._stopped.set()

    async def stop(self) -> None:
        """Take no more work; returns when the work in hand has ended or was released."""
        self._stopping.set()
        await self._stopped.wait()

    async def _take_work(self) -> None:
        free = self._settings.workers - len(self._in_hand)
        if free <= 0:
            await self._unless_stopping(self._one_ended())
            return
        try:
            works = await self._unless_stopping(self._queue.fetch(free, self._settings.wait_seconds))
        except Unavailable as error:
            log.warning("queue.unreachable", controller=self._name, reason=error.message)
            await self._unless_stopping(self._clock.sleep(self._settings.retry_seconds))
            return
        for work in works or ():
            self._begin(work)
        metrics.DEPTH.labels(self._name).set(self._queue.depth)

    async def _one_ended(self) -> None:
        await asyncio.wait(self._in_hand, return_when=asyncio.FIRST_COMPLETED)

    async def _unless_stopping(self, waiting: Awaitable[Waited]) -> Waited | None:
        """Wait for something, but not longer than until `stop`."""
        task = asyncio.ensure_future(waiting)
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            if not task.done():
                task.cancel()
        with suppress(asyncio.CancelledError):
            return await task  # what came in the last moment counts
        return None

    def _begin(self, work: Work) -> None:
        metrics.ADDS.labels(self._name).inc()
        metrics.QUEUE_SECONDS.labels(self._name).observe(work.queued_ms / 1000)
        subject = work.message.subject
        task = asyncio.create_task(self._handle(work, self._latest.get(subject)))
        self._latest[subject] = task
        self._in_hand[task] = (work, self._clock.monotonic())
        task.add_done_callback(lambda ended: self._end(subject, ended))
        metrics.ACTIVE.labels(self._name).set(len(self._in_hand))

    def _end(self, subject: str, task: asyncio.Task[None]) -> None:
        _, began_at = self._in_hand.pop(task)
        if self._latest.get(subject) is task:
            del self._latest[subject]
        metrics.WORK_SECONDS.labels(self._name).observe(self._clock.monotonic() - began_at)
        metrics.ACTIVE.labels(self._name).set(len(self._in_hand))
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("work.abandoned", controller=self._name, subject=subject, exc_info=error)

    async def _handle(self, work: Work, predecessor: asyncio.Task[None] | None) -> None:
        try:
            if predecessor is not None:
                await asyncio.wait((predecessor,))
            request = self._request(work)
            began_at = self._clock.monotonic()
            verdict = await self._judge(request)
            duration_seconds = self._clock.monotonic() - began_at
            await self._settle(work, request, verdict)
        except asyncio.CancelledError:
            await work.release()
            raise
        self._record(request, verdict, duration_seconds)

    def _request(self, work: Work) -> WorkRequest:
        message = work.message
        attempt = message.headers.get(Header.ATTEMPT, "0")
        return WorkRequest(
            subject=message.subject,
            tail=message.subject.removeprefix(self._subject_prefix),
            attempt=int(attempt) if attempt.isdecimal() else 0,
            deliveries=work.deliveries,
            reconcile_id=message.headers.get(Header.RECONCILE_ID) or secrets.token_hex(8),
            queued_ms=work.queued_ms,
        )

    async def _judge(self, request: WorkRequest) -> _Verdict:
        """Look until the answer is one that the queue can carry out."""
        if request.deliveries > self._settings.max_deliveries:
            return _Verdict("rejected", f"delivered {request.deliveries} times without an end")
        reason = ""
        for _ in range(self._settings.looks):
            try:
                outcome = await self._reconcile(request)
            except Conflict as error:
                outcome = Again(error.message)
            except Terminal as error:
                return _Verdict("dropped", error.message)
            except Transient as error:
                return self._failure(request, error.message)
            except Exception as error:
                log.exception("reconcile.crashed", controller=self._name, object=request.tail)
                return self._failure(request, repr(error))
            if isinstance(outcome, Done):
                return _Verdict("done", outcome.reason)
            if isinstance(outcome, After):
                return _Verdict("after", outcome.reason, outcome.seconds)
            reason = outcome.reason
            metrics.RECONCILES.labels(self._name, "requeue").inc()
            await asyncio.sleep(0)
        return self._failure(request, f"it changed during each of {self._settings.looks} looks: {reason}")

    def _failure(self, request: WorkRequest, reason: str) -> _Verdict:
        return _Verdict("failed", reason, self._backoff.delay_seconds(request.attempt + 1, self._fraction()))

    async def _settle(self, work: Work, request: WorkRequest, verdict: _Verdict) -> None:
        """Carry out a verdict, through outages of the bus, and acknowledge the work."""
        while True:
            try:
                if verdict.ending == "rejected":
                    await self._rejected(request, verdict.reason)
                elif verdict.ending in ("after", "failed"):
                    await self._timers.park(
                        request.subject,
                        verdict.after_seconds,
                        request.attempt + 1 if verdict.ending == "failed" else 0,
                        {Header.RECONCILE_ID: request.reconcile_id},
                    )
            except Transient as error:
                log.warning("work.kept", controller=self._name, object=request.tail, reason=error.message)
                await self._clock.sleep(self._settings.retry_seconds)
            else:
                await work.ack()
                return

    def _record(self, request: WorkRequest, verdict: _Verdict, duration_seconds: float) -> None:
        metrics.RECONCILES.labels(self._name, _RESULTS[verdict.ending]).inc()
        metrics.RECONCILE_SECONDS.labels(self._name).observe(duration_seconds)
        if verdict.ending == "failed":
            metrics.RETRIES.labels(self._name).inc()
            metrics.ERRORS.labels(self._name).inc()
        elif verdict.ending in ("dropped", "rejected"):
            metrics.TERMINAL_ERRORS.labels(self._name).inc()
        log.info(
            "reconcile.finished",
            controller=self._name,
            object=request.tail,
            reconcile_id=request.reconcile_id,
            outcome=verdict.ending,
            reason=verdict.reason,
            after_seconds=round(verdict.after_seconds, 3),
            attempt=request.attempt,
            queued_ms=round(request.queued_ms, 1),
            duration_ms=round(duration_seconds * 1000, 1),
        )

    async def _keep_in_hand(self) -> None:
        while True:
            await self._clock.sleep(self._settings.heartbeat_seconds)
            now = self._clock.monotonic()
            ages = [now - began_at for _, began_at in self._in_hand.values()]
            metrics.UNFINISHED_SECONDS.labels(self._name).set(sum(ages))
            metrics.LONGEST_SECONDS.labels(self._name).set(max(ages, default=0.0))
            for work, _ in tuple(self._in_hand.values()):
                await work.in_progress()

    async def _drain(self) -> None:
        if self._in_hand:
            log.info("controller.drained", controller=self._name, in_hand=len(self._in_hand))
            await asyncio.wait(self._in_hand, timeout=self._settings.drain_seconds)
        unfinished = tuple(self._in_hand)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
