"""Runs a reconciler against a work queue, one object at a time, and turns its results into queue actions.

| result of a reconcile                 | what happens to its message                                      |
|---------------------------------------|------------------------------------------------------------------|
| Done                                  | acknowledged                                                     |
| RequeueAfter(seconds)                 | a timer is set, then it is acknowledged; failures start at none  |
| Requeue, Conflict                     | reconciled again at once, a few times; then as a failure         |
| Transient, any unknown exception      | a timer with backoff and one failure more, then acknowledged     |
| Terminal                              | acknowledged; the object's next change brings it back            |
| delivered more often than allowed     | rejected (see `dead_letter`)                                     |
| this process is stopped meanwhile     | released, for another replica to claim at once                   |

Within one process no object is reconciled twice at the same time; between processes it may be, and the store decides.
A timer is stored before the message is acknowledged: a crash in between means one reconcile more, never one less.
"""

import asyncio
import random
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

import msgspec
import structlog

from gardenbus.common.api.keys import CLUSTER_SCOPE, Header
from gardenbus.common.api.numbers import whole_number
from gardenbus.common.controller import metrics
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.controller.cancellation import unless_set
from gardenbus.common.controller.timers import Timers
from gardenbus.common.controller.wait import RETRY_SECONDS, forever
from gardenbus.common.errors import Conflict, Terminal, Transient, Unavailable
from gardenbus.common.ports.bus import QueueMessage, WorkQueue
from gardenbus.common.ports.clock import Clock

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class ReconcileRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Object to reconcile. `attempt` counts failures so far (0: none); `tail` is `<namespace>.<name>`."""

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
    """Nothing is left to do until the object changes."""

    reason: str = ""


class RequeueAfter(msgspec.Struct, frozen=True):
    """Reconcile again in some seconds; not a failure."""

    seconds: float
    reason: str = ""


class Requeue(msgspec.Struct, frozen=True):
    """Reconcile again at once: what was read has changed."""

    reason: str = ""


ReconcileResult = Done | RequeueAfter | Requeue
Reconcile = Callable[[ReconcileRequest], Awaitable[ReconcileResult]]
Reject = Callable[[QueueMessage], Awaitable[None]]
"""Keeps a poison message and acknowledges it; see `dead_letter`. Raises Transient: it is tried again."""

Outcome = Literal["done", "after", "failed", "dropped", "rejected"]

_RESULTS: Mapping[Outcome, str] = {
    "done": "success",
    "after": "requeue_after",
    "failed": "error",
    "dropped": "error",
    "rejected": "error",
}


class ControllerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and intervals of a controller."""

    workers: int = 16
    """Concurrent reconciles; they wait for servers most of the time."""

    max_conflict_retries: int = 10
    """Reconciles in a row of an object that changes underneath, before it has to wait its turn."""

    max_deliveries: int = 5
    """Deliveries after which a message is poison: it has ended every process that claimed it."""

    wait_seconds: float = 5.0
    """Longest wait of a fetch; it costs one request."""

    heartbeat_seconds: float = 3.0
    """Interval at which ack deadlines are extended: a third of the queue's acknowledgement time."""

    drain_seconds: float = 3.0
    """Longest wait for what is in flight after `stop`."""

    retry_seconds: float = RETRY_SECONDS
    """Pause after the bus did not respond."""


class _Finish(msgspec.Struct, frozen=True):
    """Queue action after a message's reconciles."""

    outcome: Outcome
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
        reject: Reject,
        backoff: Backoff = Backoff(),  # noqa: B008  (frozen)
        settings: ControllerSettings = ControllerSettings(),  # noqa: B008  (frozen)
        fraction: Callable[[], float] = random.random,
    ) -> None:
        self._name = name
        self._queue = queue
        self._reconcile = reconcile
        self._timers = timers
        self._clock = clock
        self._reject = reject
        self._backoff = backoff
        self._settings = settings
        self._fraction = fraction
        self._subject_prefix = timers.subjects.queue_of(name).removesuffix(">")
        self._in_flight: dict[asyncio.Task[None], tuple[QueueMessage, float]] = {}
        self._latest: dict[str, asyncio.Task[None]] = {}
        self._stopping = asyncio.Event()
        self._stopped = asyncio.Event()
        self._stopped.set()

    async def run(self) -> None:
        """Reconcile until `stop`; then release what is in flight. To be run once."""
        self._stopped.clear()
        metrics.MAX_CONCURRENT.labels(self._name).set(self._settings.workers)
        heartbeat = asyncio.create_task(
            forever(
                self._extend_deadlines,
                period_seconds=self._settings.heartbeat_seconds,
                sleep=self._clock.sleep,
                is_immediate=False,
            )
        )
        try:
            while not self._stopping.is_set():
                await self._fetch()
            await self._drain()
        finally:
            heartbeat.cancel()
            for task in self._in_flight:
                task.cancel()
            self._stopped.set()

    async def stop(self) -> None:
        """Fetch no more; returns when what is in flight has finished or was released."""
        self._stopping.set()
        await self._stopped.wait()

    async def _fetch(self) -> None:
        free = self._settings.workers - len(self._in_flight)
        if free <= 0:
            await unless_set(self._stopping, self._one_finished())
            return
        try:
            messages = await unless_set(self._stopping, self._queue.fetch(free, self._settings.wait_seconds))
        except Unavailable as error:
            log.warning("queue.unreachable", controller=self._name, reason=error.message)
            await unless_set(self._stopping, self._clock.sleep(self._settings.retry_seconds))
            return
        for message in messages or ():
            self._start(message)
        metrics.DEPTH.labels(self._name).set(self._queue.depth)

    async def _one_finished(self) -> None:
        await asyncio.wait(self._in_flight, return_when=asyncio.FIRST_COMPLETED)

    def _start(self, message: QueueMessage) -> None:
        metrics.ADDS.labels(self._name).inc()
        metrics.QUEUE_SECONDS.labels(self._name).observe(message.queued_ms / 1000)
        subject = message.message.subject
        task = asyncio.create_task(self._process(message, self._latest.get(subject)))
        self._latest[subject] = task
        self._in_flight[task] = (message, self._clock.monotonic())
        task.add_done_callback(lambda finished: self._on_finished(subject, finished))
        metrics.ACTIVE.labels(self._name).set(len(self._in_flight))

    def _on_finished(self, subject: str, task: asyncio.Task[None]) -> None:
        _, started_at = self._in_flight.pop(task)
        if self._latest.get(subject) is task:
            del self._latest[subject]
        metrics.WORK_SECONDS.labels(self._name).observe(self._clock.monotonic() - started_at)
        metrics.ACTIVE.labels(self._name).set(len(self._in_flight))
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("message.abandoned", controller=self._name, subject=subject, exc_info=error)

    async def _process(self, message: QueueMessage, predecessor: asyncio.Task[None] | None) -> None:
        try:
            if predecessor is not None:
                await asyncio.wait((predecessor,))
            request = self._request(message)
            structlog.contextvars.bind_contextvars(reconcile_id=request.reconcile_id)  # of this task alone
            started_at = self._clock.monotonic()
            finish = await self._reconcile_until_finished(request)
            duration_seconds = self._clock.monotonic() - started_at
            await self._carry_out(message, request, finish)
        except asyncio.CancelledError:
            await message.release()
            raise
        self._record(request, finish, duration_seconds)

    def _request(self, queued: QueueMessage) -> ReconcileRequest:
        message = queued.message
        return ReconcileRequest(
            subject=message.subject,
            tail=message.subject.removeprefix(self._subject_prefix),
            attempt=whole_number(message.headers.get(Header.ATTEMPT)),
            deliveries=queued.deliveries,
            reconcile_id=message.headers.get(Header.RECONCILE_ID) or secrets.token_hex(8),
            queued_ms=queued.queued_ms,
        )

    async def _reconcile_until_finished(self, request: ReconcileRequest) -> _Finish:
        """Reconcile until the result is one that the queue can carry out."""
        if request.deliveries > self._settings.max_deliveries:
            return _Finish("rejected", f"delivered {request.deliveries} times without an end")
        reason = ""
        for _ in range(self._settings.max_conflict_retries):
            try:
                result = await self._reconcile(request)
            except Conflict as error:
                result = Requeue(error.message)
            except Terminal as error:
                return _Finish("dropped", error.message)
            except Transient as error:
                return self._failure(request, error.message)
            except Exception as error:
                log.exception("reconcile.crashed", controller=self._name, object=request.tail)
                return self._failure(request, repr(error))
            if isinstance(result, Done):
                return _Finish("done", result.reason)
            if isinstance(result, RequeueAfter):
                return _Finish("after", result.reason, result.seconds)
            reason = result.reason
            metrics.RECONCILES.labels(self._name, "requeue").inc()
            await asyncio.sleep(0)
        retries = self._settings.max_conflict_retries
        return self._failure(request, f"it changed during each of {retries} reconciles: {reason}")

    def _failure(self, request: ReconcileRequest, reason: str) -> _Finish:
        return _Finish("failed", reason, self._backoff.delay_seconds(request.attempt + 1, self._fraction()))

    async def _carry_out(self, message: QueueMessage, request: ReconcileRequest, finish: _Finish) -> None:
        """Set the timer or reject, through outages of the bus, and acknowledge the message."""
        while True:
            try:
                if finish.outcome == "rejected":
                    await self._reject(message)
                elif finish.outcome in ("after", "failed"):
                    await self._timers.enqueue_after(
                        request.subject,
                        finish.after_seconds,
                        request.attempt + 1 if finish.outcome == "failed" else 0,
                        {Header.RECONCILE_ID: request.reconcile_id},
                    )
            except Transient as error:
                log.warning("message.kept", controller=self._name, object=request.tail, reason=error.message)
                await self._clock.sleep(self._settings.retry_seconds)
            else:
                await message.ack()
                return

    def _record(self, request: ReconcileRequest, finish: _Finish, duration_seconds: float) -> None:
        metrics.RECONCILES.labels(self._name, _RESULTS[finish.outcome]).inc()
        metrics.RECONCILE_SECONDS.labels(self._name).observe(duration_seconds)
        if finish.outcome == "failed":
            metrics.RETRIES.labels(self._name).inc()
            metrics.ERRORS.labels(self._name).inc()
        elif finish.outcome in ("dropped", "rejected"):
            metrics.TERMINAL_ERRORS.labels(self._name).inc()
        log.info(
            "reconcile.finished",
            controller=self._name,
            object=request.tail,
            reconcile_id=request.reconcile_id,
            outcome=finish.outcome,
            reason=finish.reason,
            after_seconds=round(finish.after_seconds, 3),
            attempt=request.attempt,
            queued_ms=round(request.queued_ms, 1),
            duration_ms=round(duration_seconds * 1000, 1),
        )

    async def _extend_deadlines(self) -> None:
        now = self._clock.monotonic()
        ages = [now - started_at for _, started_at in self._in_flight.values()]
        metrics.UNFINISHED_SECONDS.labels(self._name).set(sum(ages))
        metrics.LONGEST_SECONDS.labels(self._name).set(max(ages, default=0.0))
        for message, _ in tuple(self._in_flight.values()):
            await message.in_progress()

    async def _drain(self) -> None:
        if self._in_flight:
            log.info("controller.drained", controller=self._name, in_flight=len(self._in_flight))
            await asyncio.wait(self._in_flight, timeout=self._settings.drain_seconds)
        unfinished = tuple(self._in_flight)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
