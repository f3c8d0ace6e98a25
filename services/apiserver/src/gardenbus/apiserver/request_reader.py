"""Reads batches of durable requests: their documents, and in one round trip the objects that all of these need."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import NamedTuple

import msgspec

from gardenbus.apiserver import spans
from gardenbus.apiserver.access.authorizer import Authorizer, MessagePermits
from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.authorization.actions import Action, Requester
from gardenbus.apiserver.domain.field_validation import validation_of
from gardenbus.apiserver.domain.related_objects import RelatedQuery
from gardenbus.apiserver.domain.repeated_specs import RepeatedSpecs
from gardenbus.apiserver.domain.request_subjects import parse_request_subject
from gardenbus.apiserver.domain.senders import UserOf, check_sender
from gardenbus.apiserver.domain.validation.manifest import key_of_applied
from gardenbus.apiserver.registry.dry_run import reject_durable_dry_run
from gardenbus.apiserver.registry.loop_turn import LoopTurn
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.stored_kinds import stored_reference
from gardenbus.apiserver.registry.writer import PreparedShoot, Writer
from gardenbus.common.api.document import Document
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.api.restored_requests import sent_as
from gardenbus.common.controller.stream_incarnation import StreamIncarnation
from gardenbus.common.errors import (
    GardenbusError,
    Terminal,
    without_frames,
)
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import QueueMessage, StreamMessage
from gardenbus.common.ports.store import RequestOrigin, Store
from gardenbus.common.side_thread import LARGE_BYTES, beside_loop

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


class RequestBatch(NamedTuple):
    """A batch that was read."""

    queued_messages: Sequence[QueueMessage]
    requests: list[DocumentRequest]
    rejected: list[RejectedDocument]
    reads: ReadCache


@dataclass(kw_only=True, eq=False)
class RequestReader:
    """Reads batches; `refresh` is due at the start and after every reconnect."""

    store: Store
    subjects: Subjects
    writer: Writer
    manifests: ManifestCache
    authorizer: Authorizer
    incarnation: StreamIncarnation
    user_of: UserOf

    def __post_init__(self) -> None:
        self._specs = RepeatedSpecs()
        self._is_located = False

    async def refresh(self) -> None:
        """Read which incarnation of REQUESTS this is. Raises Unavailable."""
        await self.incarnation.refresh()
        self._is_located = True

    async def read(self, queued_messages: Sequence[QueueMessage]) -> RequestBatch:
        """Read a batch in one round trip: where its messages belong, and what they are about. Raises Unavailable."""
        if not self._is_located:
            await self.refresh()
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
        related, keys = self._needs(messages)
        incarnations, *_ = await asyncio.gather(
            self.incarnation.of(queued_messages), reads.lists(related), reads.prefetch_objects(related, keys)
        )
        requests = [
            request
            for message, incarnation in zip(parsed, incarnations, strict=True)
            if message is not None
            for request in _requests_of(message, incarnation)
        ]
        return RequestBatch(queued_messages, requests, rejected, reads)

    def _needs(self, parsed: Sequence[_ParsedMessage]) -> tuple[list[RelatedQuery], list[ObjectKey]]:
        """The objects of a batch, and if all are of one kind what belongs to them: another kind's may change it."""
        documents = [(message, document) for message in parsed for document in message.documents]
        keys = [document.key for _, document in documents]
        related: list[RelatedQuery] = []
        if len({key.kind for key in keys}) == 1:
            for message, document in documents:
                related += self.authorizer.queries(message.requester, Action.on(message.verb, document.key))
            related += queries_once(document.queries for _, document in documents)
        return related, keys

    async def _parsed(self, queued: QueueMessage, rejected: list[RejectedDocument]) -> _ParsedMessage | None:
        """A message and its documents, but for those that it adds to `rejected`."""
        try:
            message, sent_at = as_sent(queued.message, self.subjects)
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


def as_sent(message: StreamMessage, subjects: Subjects) -> tuple[StreamMessage, tuple[int, int] | None]:
    """A message, and the place at which it was sent if it was put back from a backup. Raises BadRequest."""
    sent = sent_as(message.subject, message.headers, subjects)
    if sent.place is None:
        return message, None
    return msgspec.structs.replace(message, subject=sent.subject, headers=sent.headers), sent.place


def queries_once(queries: Iterable[Sequence[RelatedQuery] | None]) -> Iterable[RelatedQuery]:
    """All queries, those that several objects share once."""
    return chain.from_iterable({id(each): each for each in queries if each}.values())


def _admission_queries(admission: Admission, document: Mapping[str, object]) -> Sequence[RelatedQuery] | None:
    """Queries of admission for a new object, as it was sent; None where they cannot be said before it is merged."""
    try:
        return admission.related_queries(dict(document), None)
    except (Terminal, AttributeError, TypeError, KeyError):
        return None  # it is not valid; validation reports it later
