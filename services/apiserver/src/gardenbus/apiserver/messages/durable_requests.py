"""Durable requests: `garden.apply` and `garden.delete`, handled in the order of the bus.

Documents of one object are handled in order; different objects of one kind concurrently; a change of kind waits for all
before it, so that a shoot finds the profile that was sent ahead of it. A rejection that depends on other objects is
retried once all earlier requests are finished, by whichever replica. Rejected documents go to the dead letter one
by one; the others of their message are applied, unless its sender may not write one of them: then nothing of it is.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from typing import NamedTuple

import msgspec
import structlog

from gardenbus.apiserver import spans
from gardenbus.apiserver.access.authorizer import AccessGrant, Authorizer, MessagePermits
from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.authorization.actions import Action, Requester
from gardenbus.apiserver.domain.field_validation import validation_of
from gardenbus.apiserver.domain.related_objects import RelatedQuery
from gardenbus.apiserver.domain.repeated_specs import RepeatedSpecs
from gardenbus.apiserver.domain.request_subjects import parse_request_subject
from gardenbus.apiserver.domain.senders import UserOf, as_stated, check_sender
from gardenbus.apiserver.domain.validation.manifest import key_of_applied
from gardenbus.apiserver.registry.batch_creator import BatchCreator, NewObject
from gardenbus.apiserver.registry.dry_run import reject_durable_dry_run
from gardenbus.apiserver.registry.loop_turn import LoopTurn
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import StaleVersion, UnmetDependency, WriteResult
from gardenbus.apiserver.registry.stored_kinds import stored_reference
from gardenbus.apiserver.registry.writer import PreparedShoot, Writer
from gardenbus.common.api.document import Document
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.api.restored_requests import is_restored, sent_as
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
    without_frames,
)
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Bus, QueueMessage, StreamMessage, WorkQueue
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import RequestOrigin, Store
from gardenbus.common.side_thread import LARGE_BYTES, beside_loop

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

READ_TOGETHER = 10
"""Messages read before other tasks run: most of the next batch's while the store works on the present one."""


class DocumentRequest(msgspec.Struct, frozen=True):
    """One document of one message: what is to happen to which object."""

    queued: QueueMessage
    verb: str
    requester: Requester
    key: ObjectKey
    document: Document
    origin: RequestOrigin
    validation: FieldValidation
    queries: Sequence[RelatedQuery] | None = None
    """Queries of admission; see `_admission_queries`."""
    prepared: PreparedShoot | None = None
    span: tracing.Span = tracing.NOT_TRACED
    permits: MessagePermits | None = None

    @property
    def user(self) -> str:
        """The user who sent it."""
        return self.requester.user


class RejectedDocument(msgspec.Struct, frozen=True):
    """A document (or a whole message, without request) that is rejected, for good or for now."""

    queued: QueueMessage
    error: GardenbusError
    request: DocumentRequest | None = None
    has_unmet_dependency: bool = False
    document: Document | None = None

    def __post_init__(self) -> None:
        """Hold no batch by its error."""
        without_frames(self.error)


class _ParsedDocument(NamedTuple):
    """A document and its number in the message."""

    number: int
    key: ObjectKey
    document: Document
    queries: Sequence[RelatedQuery] | None
    prepared: PreparedShoot | None


class _ParsedMessage(NamedTuple):
    """A message without the incarnation of its stream."""

    queued: QueueMessage
    message: StreamMessage
    """As it was sent, if it was put back from a backup."""
    sent_at: tuple[int, int] | None
    verb: str
    requester: Requester
    validation: FieldValidation
    documents: Sequence[_ParsedDocument]


class _Batch(NamedTuple):
    """A batch that was read."""

    queued_messages: Sequence[QueueMessage]
    requests: list[DocumentRequest]
    rejected: list[RejectedDocument]
    reads: ReadCache


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
        self._incarnation = StreamIncarnation(self.bus, self.store, self.subjects.stream("REQUESTS"))
        self._specs = RepeatedSpecs()
        self._is_located = False
        self._prepared: _Batch | None = None
        self._in_flight: frozenset[ObjectKey] | None = None
        self._handled = 0
        self._waits: dict[int, tuple[int, float]] = {}

    async def refresh(self) -> None:
        """Read which incarnation of REQUESTS this is: at the start and after every reconnect."""
        await self._incarnation.refresh()
        self._is_located = True
        self._prepared = None

    async def handle(self, queued_messages: Sequence[QueueMessage]) -> None:
        """Handle a batch and acknowledge it. Raises Unavailable; a second time has the same result."""
        self._handled += 1
        self._in_flight = frozenset()
        try:
            if not self._is_located:
                await self.refresh()
            await self._carry_out(await self._prepared_or_read(queued_messages))
        finally:
            self._in_flight = None

    async def _carry_out(self, batch: _Batch) -> None:
        rejected = batch.rejected
        self._in_flight = frozenset(request.key for request in batch.requests)
        try:
            permitted = await self._permitted(batch)
            for _, run in groupby(permitted, key=lambda request: request.key.kind):
                rejected += await self._process_run(list(run), batch.reads)
            unfinished = {id(rejection.queued) for rejection in rejected}
            await self.queue.ack_many([queued for queued in batch.queued_messages if id(queued) not in unfinished])
            await self._finish_rejected(rejected, batch.reads)
        finally:  # a span that is not ended is not exported
            for request in batch.requests:
                request.span.end(failed="interrupted")

    async def _permitted(self, batch: _Batch) -> Sequence[DocumentRequest]:
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

    # ------------------------------------------------------------------------------------------ reading

    async def prepare(self, queued_messages: Sequence[QueueMessage]) -> None:
        """Read the messages of the next batch, and its objects but for those that the present batch may change.

        Other objects, which admission needs, are read when it is handled, unless nothing is in flight by now.
        """
        if not self._is_located:
            return
        handled = self._handled
        batch = await self._read(queued_messages, is_ahead=True)
        if self._handled == handled:  # else what was in flight is tried again, and may change what was read
            self._prepared = batch

    async def _prepared_or_read(self, queued_messages: Sequence[QueueMessage]) -> _Batch:
        """The prepared batch, or the same read now."""
        prepared, self._prepared = self._prepared, None
        if prepared is not None and list(prepared.queued_messages) == list(queued_messages):
            return prepared
        return await self._read(queued_messages, is_ahead=False)

    async def _read(self, queued_messages: Sequence[QueueMessage], *, is_ahead: bool) -> _Batch:
        """Read a batch in one round trip: where its messages belong, and what they are about."""
        rejected: list[RejectedDocument] = []
        parsed: list[_ParsedMessage | None] = []
        turn = LoopTurn()
        for number, queued in enumerate(queued_messages, 1):
            if number % READ_TOGETHER == 0:
                await asyncio.sleep(0)
            await turn.let_others_in()
            parsed.append(await self._parsed(queued, rejected))
        reads = ReadCache(self.store, self.manifests)
        messages = [message for message in parsed if message is not None]
        related, keys = self._needs(messages, is_ahead=is_ahead)
        incarnations, *_ = await asyncio.gather(
            self._incarnation.of(queued_messages), reads.lists(related), reads.prefetch_objects(related, keys)
        )
        requests = [
            request
            for message, incarnation in zip(parsed, incarnations, strict=True)
            if message is not None
            for request in _requests_of(message, incarnation)
        ]
        return _Batch(queued_messages, requests, rejected, reads)

    def _needs(self, parsed: Sequence[_ParsedMessage], *, is_ahead: bool) -> tuple[list[RelatedQuery], list[ObjectKey]]:
        """The objects of a batch, but for those that the batch in flight, which it `is_ahead` of, may change.

        What belongs to an object only if nothing is in flight and all are of one kind: another may change it.
        """
        documents = [(message, document) for message in parsed for document in message.documents]
        keys = [document.key for _, document in documents]
        related: list[RelatedQuery] = []
        if is_ahead and self._in_flight is not None:
            keys = [key for key in keys if key not in self._in_flight]
        elif len({key.kind for key in keys}) == 1:
            for message, document in documents:
                related += self.authorizer.queries(message.requester, Action.on(message.verb, document.key))
            related += _queries_once(document.queries for _, document in documents)
        return related, keys

    async def _parsed(self, queued: QueueMessage, rejected: list[RejectedDocument]) -> _ParsedMessage | None:
        """A message and its documents, but for those that it adds to `rejected`."""
        try:
            message, sent_at = _as_sent(queued.message, self.subjects)
            sender = parse_request_subject(message.subject, self.subjects)
            verb = sender.tail
            check_sender(message.headers, sender.user, self.user_of)
            reject_durable_dry_run(message.headers)
            validation = validation_of(message.headers, FieldValidation.WARN)
            documents = await beside_loop(len(message.body), partial(self._specs.parse, message.body))
            requester = self.authorizer.requester(sender, message.headers, f"requests/{message.sequence}")
        except Terminal as error:
            rejected.append(RejectedDocument(queued, error))
            return None
        parsed: list[_ParsedDocument] = []
        turn = LoopTurn()
        for number, document in enumerate(documents):
            await turn.let_others_in()
            try:
                prepared = None
                if verb == "apply" and len(message.body) < LARGE_BYTES:
                    spec = self._specs.encoded(document)
                    prepared = self.writer.prepared_shoot(
                        document, user=requester.user, validation=validation, spec=spec
                    )
                key = prepared.checked_key if prepared is not None else None
                if key is None:
                    key = key_of_applied(document) if verb == "apply" else await stored_reference(self.store, document)
            except Terminal as error:
                rejected.append(RejectedDocument(queued, error, document=document))
            else:
                kept, queries = prepared.kept if prepared is not None else None, None
                if verb == "apply":
                    queries = kept.queries if kept else _admission_queries(self.writer.admission, document)
                parsed.append(_ParsedDocument(number, key, document, queries, prepared))
        return _ParsedMessage(queued, message, sent_at, verb, requester, validation, parsed)

    # ------------------------------------------------------------------------------------------ writing

    async def _process_run(self, requests: Sequence[DocumentRequest], reads: ReadCache) -> list[RejectedDocument]:
        """Handle requests for objects of one kind; returns those that are rejected."""
        of_access = (self.authorizer.queries(each.requester, Action.on(each.verb, each.key)) for each in requests)
        of_admission = _queries_once(request.queries for request in requests)
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
            message, _ = _as_sent(message, self.subjects)
        await self.dead_letter.reject(message, rejection.error, document=rejection.document, about=about, action=action)
        if rejection.request is not None:
            rejection.request.span.end(failed=rejection.error.message)


def _requests_of(parsed: _ParsedMessage, incarnation: int) -> Iterable[DocumentRequest]:
    """The requests of a message of this incarnation of its stream, unless it says where it was sent."""
    place = parsed.sent_at or (incarnation, parsed.message.sequence)
    parent = tracing.received(parsed.message.headers)
    is_traced = bool(parent) or tracing.is_on()
    for number, key, document, queries, prepared in parsed.documents:
        yield DocumentRequest(
            queued=parsed.queued,
            verb=parsed.verb,
            requester=parsed.requester,
            key=key,
            document=document,
            origin=RequestOrigin(*place, number),
            validation=parsed.validation,
            queries=queries,
            prepared=prepared,
            span=spans.durable_request(parsed.message, parsed.verb, key, parent) if is_traced else tracing.NOT_TRACED,
        )


def _as_sent(message: StreamMessage, subjects: Subjects) -> tuple[StreamMessage, tuple[int, int] | None]:
    """A message, and the place at which it was sent if it was put back from a backup. Raises BadRequest."""
    sent = sent_as(message.subject, message.headers, subjects)
    if sent.place is None:
        return message, None
    return msgspec.structs.replace(message, subject=sent.subject, headers=sent.headers), sent.place


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


def _queries_once(queries: Iterable[Sequence[RelatedQuery] | None]) -> Iterable[RelatedQuery]:
    """All queries, those that several objects share once."""
    return chain.from_iterable({id(each): each for each in queries if each}.values())


def _admission_queries(admission: Admission, document: Mapping[str, object]) -> Sequence[RelatedQuery] | None:
    """Queries of admission for a new object, as it was sent; None where they cannot be said before it is merged."""
    try:
        return admission.related_queries(dict(document), None)
    except (Terminal, AttributeError, TypeError, KeyError):
        return None  # it is not valid; validation reports it later


def _is_already_deleted(rejection: RejectedDocument) -> bool:
    """True when nothing is left to do: the object to be deleted is missing."""
    return (
        isinstance(rejection.error, NotFound) and rejection.request is not None and rejection.request.verb == "delete"
    )
