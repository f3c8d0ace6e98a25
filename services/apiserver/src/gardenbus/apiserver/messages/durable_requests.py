"""Durable requests: `garden.apply` and `garden.delete`, handled in the order of the bus. A batch takes five steps.

1. It is read: documents, and the objects that they need (`request_reader`).
2. Messages are rejected whole in which their sender may not write something.
3. The documents are carried out, kind by kind, so that a shoot finds the profile that was sent ahead of it: those of
   one object in order, different objects concurrently; new objects together.
4. Messages of which nothing was rejected are acknowledged.
5. The others go to the dead letter, document by document, and are acknowledged. A rejection that depends on other
   objects is retried first, once all earlier requests are finished, by whichever replica.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, groupby

import msgspec
import structlog

from gardenbus.apiserver.access.authorizer import AccessGrant, Authorizer
from gardenbus.apiserver.domain.authorization.actions import Action
from gardenbus.apiserver.domain.senders import UserOf, as_stated
from gardenbus.apiserver.registry.batch_creator import BatchCreator, NewObject
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import StaleVersion, UnmetDependency, WriteResult
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.apiserver.request_reader import (
    DocumentRequest,
    RejectedDocument,
    RequestBatch,
    RequestReader,
    as_sent,
    queries_once,
)
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.api.restored_requests import is_restored
from gardenbus.common.controller.dead_letter import EVENT_TEXT_LIMIT, DeadLetter
from gardenbus.common.controller.event_recorder import EventRecorder
from gardenbus.common.controller.stream_incarnation import StreamIncarnation
from gardenbus.common.errors import (
    BadRequest,
    Conflict,
    GardenbusError,
    NotFound,
    Terminal,
    Transient,
    Unavailable,
)
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Bus, QueueMessage, WorkQueue
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store

_log = structlog.stdlib.get_logger()

EARLIER_SECONDS = 12.0
"""Longest wait of a rejected request for earlier ones at other replicas: if one dies, they are redelivered in 10 s."""

EARLIER_POLL_SECONDS = 0.02

LAST_WAIT = 3
"""Delivery of a request that is decided on without its earlier ones. Before, it is released: they may stand behind it
in this very replica, fetched in advance, and be handled as soon as it is out of their way."""

STARTED_TOGETHER = 50
"""Objects admitted before the store is called: its limit for one call. It works on these while the next are admitted.
"""

MANIFEST_WARNING = "ManifestWarning"
"""Reason of the Event about a manifest that was taken though something in it is unknown, or nothing acts on it."""


@dataclass(kw_only=True)
class DurableRequestHandler:
    """Carries out batches of durable requests."""

    bus: Bus
    store: Store
    clock: Clock
    subjects: Subjects
    queue: WorkQueue
    writer: Writer
    manifests: ManifestCache
    dead_letter: DeadLetter
    authorizer: Authorizer
    consumer: str
    concurrency: int
    reporter: str = "apiserver"
    user_of: UserOf = as_stated

    def __post_init__(self) -> None:
        self._creator = BatchCreator(self.store, self.writer)
        self._recorder = EventRecorder(self.store, self.reporter)
        self._slots = asyncio.Semaphore(self.concurrency)
        self.reader = RequestReader(
            store=self.store,
            subjects=self.subjects,
            writer=self.writer,
            manifests=self.manifests,
            authorizer=self.authorizer,
            incarnation=StreamIncarnation(self.bus, self.store, self.subjects.stream("REQUESTS")),
            user_of=self.user_of,
        )
        self._waits: dict[int, tuple[int, float]] = {}

    async def handle(self, queued_messages: Sequence[QueueMessage]) -> None:
        """Handle a batch and acknowledge it. Raises Unavailable; a second time has the same result."""
        batch = await self.reader.read(queued_messages)  # 1
        rejected = batch.rejected
        try:
            permitted = await self._permitted(batch)  # 2
            for _, run in groupby(permitted, key=lambda request: request.key.kind):
                rejected += await self._process_run(list(run), batch.reads)  # 3
            unfinished = {id(rejection.queued) for rejection in rejected}
            done = [queued for queued in batch.queued_messages if id(queued) not in unfinished]
            await self.queue.ack_many(done)  # 4
            await self._finish_rejected(rejected, batch.reads)  # 5
        finally:  # a span that is not ended is not exported
            for request in batch.requests:
                request.span.end(failed="interrupted")

    async def _permitted(self, batch: RequestBatch) -> Sequence[DocumentRequest]:
        """The requests of a batch but for those of messages in which something may not be written: these are rejected.

        Nothing is written of such a message, and it is one dead letter.
        """
        permitted: list[DocumentRequest] = []
        for _, of_one in groupby(batch.requests, key=lambda request: id(request.queued)):
            requests = list(of_one)
            first = requests[0]
            if len(requests) == 1 or not self.authorizer.decides_on(first.requester):
                permitted += requests
                continue
            keys = [request.key for request in requests]
            try:
                permits = await self.authorizer.permit_message(first.requester, first.verb, keys, batch.reads)
            except Terminal as error:
                batch.rejected.append(RejectedDocument(first.queued, error))
            else:
                permitted += [msgspec.structs.replace(request, permits=permits) for request in requests]
        return permitted

    # ------------------------------------------------------------------------------------------ writing

    async def _process_run(self, requests: Sequence[DocumentRequest], reads: ReadCache) -> list[RejectedDocument]:
        """Handle requests for objects of one kind; returns those that are rejected."""
        of_access = (self.authorizer.queries(each.requester, Action.on(each.verb, each.key)) for each in requests)
        of_admission = queries_once(request.queries for request in requests)
        related = chain(chain.from_iterable(of_access), of_admission)
        await reads.prefetch_related(related, [request.key for request in requests])
        by_key: dict[ObjectKey, list[DocumentRequest]] = {}
        for request in requests:
            by_key.setdefault(request.key, []).append(request)
        new: list[NewObject] = []
        grants: dict[ObjectKey, AccessGrant] = {}
        for key, (request, *others) in by_key.items():
            if request.verb == "apply" and not others and reads.is_absent(key):
                granted = await self._tentative_grant(request, reads)
                if granted is not None:
                    grants[key] = granted
                    new.append(_new_object(request, granted))
        for key, written in (await self._creator.create(new, reads)).items():
            (request,) = by_key.pop(key)
            grants[key].written(written.outcome)
            await self._accepted(request, written)
        tasks: list[asyncio.Task[list[RejectedDocument] | Transient]] = []
        async with asyncio.TaskGroup() as group:
            for number, of_one in enumerate(by_key.values(), 1):
                tasks.append(group.create_task(self._in_order(of_one, reads)))
                if number % STARTED_TOGETHER == 0:
                    await asyncio.sleep(0)
        results = [task.result() for task in tasks]
        for result in results:
            if isinstance(result, Transient):
                raise result
        return [rejection for result in results if not isinstance(result, Transient) for rejection in result]

    async def _tentative_grant(self, request: DocumentRequest, reads: ReadCache) -> AccessGrant | None:
        """The grant of a creation; None, without a line in the audit log, where it is left to `_process`."""
        try:
            return await self.authorizer.grant_write(
                request.requester,
                request.verb,
                request.key,
                reads,
                request.document,
                is_tentative=True,
                permits=request.permits,
            )
        except Terminal:
            return None

    async def _in_order(
        self, requests: Sequence[DocumentRequest], reads: ReadCache
    ) -> list[RejectedDocument] | Transient:
        async with self._slots:
            rejected: list[RejectedDocument] = []
            for request in requests:
                try:
                    rejection = await self._process_traced(request, reads)
                except Transient as error:
                    return error
                if rejection is not None:
                    rejected.append(rejection)
            return rejected

    async def _process_traced(self, request: DocumentRequest, reads: ReadCache) -> RejectedDocument | None:
        if request.span is tracing.NOT_TRACED:
            return await self._process(request, reads)
        with tracing.within(request.span.traceparent):
            rejection = await self._process(request, reads)
        if rejection is None:
            request.span.end(outcome="superseded")  # unless another outcome is set
        return rejection

    async def _process(self, request: DocumentRequest, reads: ReadCache) -> RejectedDocument | None:
        try:
            granted = await self.authorizer.grant_write(
                request.requester, request.verb, request.key, reads, request.document, permits=request.permits
            )
            if request.verb == "apply":
                written = await self.writer.apply(
                    request.document,
                    reads,
                    user=request.user,
                    origin=request.origin,
                    key=request.key,
                    checks=granted.checks,
                    validation=request.validation,
                )
            else:
                written = await self.writer.delete(request.key, reads, user=request.user, origin=request.origin)
            granted.written(written.outcome)
        except UnmetDependency as unmet:
            return await self._rejected(request, unmet.error, reads, has_unmet_dependency=True)
        except NotFound as error:  # a deletion; an earlier request may still create the object
            return RejectedDocument(
                request.queued, error, request, has_unmet_dependency=True, document=request.document
            )
        except (Terminal, StaleVersion) as error:
            return await self._rejected(request, error, reads)
        except Conflict as error:
            raise Unavailable(error.message) from error
        await self._accepted(request, written)
        return None

    async def _accepted(self, request: DocumentRequest, written: WriteResult) -> None:
        """Log a request that was carried out, and warn about its manifest: its sender gets no response."""
        _log_accepted(request, written.outcome)
        if not written.notices or written.stored is None:
            return
        message = "; ".join(written.notices)[:EVENT_TEXT_LIMIT]
        _log.warning("manifest.questioned", object=str(request.key), warnings=written.notices)
        await self._recorder.record(
            request.key, written.stored.uid, reason=MANIFEST_WARNING, message=message, action="Apply"
        )

    async def _rejected(
        self, request: DocumentRequest, error: GardenbusError, reads: ReadCache, *, has_unmet_dependency: bool = False
    ) -> RejectedDocument | None:
        """The rejection of a request, unless it was carried out at an earlier delivery, as far as the store can tell.

        One that is delivered for the first time was not: it is rejected although a newer one has been carried out.
        """
        if self._may_be_repeated(request.queued) and await self.writer.is_superseded(
            request.key, request.origin, reads
        ):
            return None
        return RejectedDocument(
            request.queued, error, request, has_unmet_dependency=has_unmet_dependency, document=request.document
        )

    def _may_be_repeated(self, queued: QueueMessage) -> bool:
        """True for a message that may have been handled before: delivered again, put back, or held over an outage."""
        return queued.deliveries > 1 or queued.is_held_over or is_restored(queued.message.subject, self.subjects)

    # ------------------------------------------------------------------------------------------ rejecting

    async def _finish_rejected(self, rejected: Sequence[RejectedDocument], reads: ReadCache) -> None:
        """Reject documents in order, and acknowledge; retry first what depends on earlier requests."""
        deadline = self.clock.monotonic() + EARLIER_SECONDS
        in_order = sorted(rejected, key=lambda rejection: rejection.queued.message.sequence)
        for _, of_message in groupby(in_order, key=lambda rejection: rejection.queued.message.sequence):
            rejections_of_message = list(of_message)
            for rejection in rejections_of_message:
                final = rejection
                if rejection.has_unmet_dependency and rejection.request is not None:
                    is_first = await self._wait_for_earlier(rejection.queued, deadline)
                    if not is_first and rejection.queued.deliveries < LAST_WAIT:
                        await rejection.queued.release()
                        break
                    reads.invalidate_all()
                    final = await self._process_traced(rejection.request, reads)
                if final is not None and not _is_already_deleted(final):
                    await self._reject(final, reads)
                elif final is not None and final.request is not None:
                    final.request.span.end(outcome="deleted")
            else:
                await rejections_of_message[0].queued.ack()

    async def _wait_for_earlier(self, queued: QueueMessage, deadline: float) -> bool:
        """Wait until all earlier requests are finished; False when that takes too long.

        All that wait for one request at the same delivery do so for the same `EARLIER_SECONDS`: should that request
        fail again and again, it does not cost each of them as much.
        """
        stream = self.subjects.stream("REQUESTS")
        while self.clock.monotonic() < deadline:
            floor = (await self.bus.acknowledged_floor(stream, self.consumer)).sequence
            if floor >= queued.message.sequence - 1:
                return True
            waited_for, until = self._waits.get(queued.deliveries, (-1, 0.0))
            if waited_for != floor:
                self._waits[queued.deliveries] = floor, self.clock.monotonic() + EARLIER_SECONDS
            elif self.clock.monotonic() >= until:
                return False
            await self.clock.sleep(EARLIER_POLL_SECONDS)
        return False

    async def _reject(self, rejection: RejectedDocument, reads: ReadCache) -> None:
        about = await reads.get(rejection.request.key) if rejection.request is not None else None
        action = rejection.request.verb.capitalize() if rejection.request is not None else ""
        message = rejection.queued.message
        if not message.body:  # nothing to send again: the server writes such itself, as heartbeats of consumers
            _log.warning("request.empty", subject=message.subject, sequence=message.sequence)
            return
        with contextlib.suppress(BadRequest):
            message, _ = as_sent(message, self.subjects)
        await self.dead_letter.reject(message, rejection.error, document=rejection.document, about=about, action=action)
        if rejection.request is not None:
            rejection.request.span.end(failed=rejection.error.message)


def _log_accepted(request: DocumentRequest, outcome: str) -> None:
    """End the span of a request, and log it: at a level that is shown if it is traced."""
    request.span.end(outcome=outcome)
    log = _log.debug if request.span is tracing.NOT_TRACED else _log.info
    log(
        "request.accepted",
        object=str(request.key),
        verb=request.verb,
        outcome=outcome,
        queued_ms=round(request.queued.queued_ms, 1),
        **tracing.fields(request.span.traceparent),
    )


def _new_object(request: DocumentRequest, granted: AccessGrant) -> NewObject:
    return NewObject(
        request.key,
        request.document,
        request.user,
        request.origin,
        request.validation,
        request.span.traceparent,
        granted.checks,
        request.queries,
        request.prepared,
    )


def _is_already_deleted(rejection: RejectedDocument) -> bool:
    """True when nothing is left to do: the object to be deleted is missing."""
    return (
        isinstance(rejection.error, NotFound) and rejection.request is not None and rejection.request.verb == "delete"
    )
