"""Durable requests: `garden.apply` and `garden.delete`, carried out in the order of the bus.

Documents of one object are taken in order; different objects of one kind at the same time; a change of kind waits for
what came before, so that a shoot finds the profile that was sent ahead of it. What is refused because of other objects
is tried once more when all earlier requests are through, wherever they are taken. Refused documents go to
`garden.rejected` one by one; the others of their message are taken.
"""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec
import structlog

from gardenbus.apiserver.decide import admission
from gardenbus.apiserver.decide.manifests import parse
from gardenbus.apiserver.decide.metadata import key_of, reference_of
from gardenbus.apiserver.reconcilers import spans
from gardenbus.apiserver.reconcilers.attempts import Contingent, StaleVersion
from gardenbus.apiserver.reconcilers.creating import Creator, Wanted
from gardenbus.apiserver.reconcilers.reads import Library, Reads
from gardenbus.apiserver.reconcilers.rehearsing import check_not_rehearsed
from gardenbus.apiserver.reconcilers.rejecting import Rejections
from gardenbus.apiserver.reconcilers.speaking import spoken
from gardenbus.apiserver.reconcilers.writing import Writer
from gardenbus.common.errors import Conflict, GardenbusError, NotFound, Terminal, Transient, Unavailable
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Bus, Delivered, Work, WorkQueue
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import RequestOrigin, Store
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey, Subjects

_log = structlog.stdlib.get_logger()

EARLIER_SECONDS = 12.0
"""How long a refused request waits for the earlier ones that other replicas have in hand: a little longer than the
requests of a replica that has died take to be delivered to another one (10 s)."""

EARLIER_POLL_SECONDS = 0.02

STARTED_TOGETHER = 50
"""Objects worked out before the store is told of them: as many as it takes in one call. It works on these while the
next are worked out."""

READ_TOGETHER = 10
"""Messages read before others have a turn: most of the next batch's while the store has what is in hand."""


class Wish(msgspec.Struct, frozen=True):
    """One document of one message: what is to happen to which object."""

    work: Work
    verb: str
    user: str
    key: ObjectKey
    document: Document
    origin: RequestOrigin
    span: tracing.Span = tracing.NOT_TRACED


class Refused(msgspec.Struct, frozen=True):
    """A document that cannot be taken; `contingent` on other objects, or for good. Without a wish it is the message."""

    work: Work
    error: GardenbusError
    wish: Wish | None = None
    contingent: bool = False
    document: Document | None = None


class _Prepared(NamedTuple):
    """A batch that was read while another one was carried out."""

    works: Sequence[Work]
    wishes: list[Wish]
    refused: list[Refused]
    reads: Reads


class Requests:
    """Carries out batches of durable requests."""

    def __init__(  # noqa: PLR0913
        self,
        *,
        bus: Bus,
        store: Store,
        clock: Clock,
        subjects: Subjects,
        queue: WorkQueue,
        writer: Writer,
        library: Library,
        rejections: Rejections,
        consumer: str,
        concurrency: int,
    ) -> None:
        self._bus = bus
        self._store = store
        self._clock = clock
        self._subjects = subjects
        self._queue = queue
        self._writer = writer
        self._creator = Creator(store, writer)
        self._library = library
        self._rejections = rejections
        self._consumer = consumer
        self._slots = asyncio.Semaphore(concurrency)
        self._created = 0
        self._prepared: _Prepared | None = None
        self._in_hand: frozenset[ObjectKey] = frozenset()

    async def refresh(self) -> None:
        """Read which incarnation of REQUESTS this is: at the start and after every reconnect."""
        self._created = (await self._bus.position(self._subjects.stream("REQUESTS"))).created
        self._prepared = None

    async def handle(self, works: Sequence[Work]) -> None:
        """Carry out a batch and acknowledge it. Raises Unavailable; taken again it ends the same."""
        if not self._created:
            await self.refresh()
        wishes, refused, reads = await self._taken_up(works)
        self._in_hand = frozenset(wish.key for wish in wishes)
        try:
            for _, run in groupby(wishes, key=lambda wish: wish.key.kind):
                refused += await self._carry_out(list(run), reads)
            unfinished = {id(refusal.work) for refusal in refused}
            await self._queue.ack_many([work for work in works if id(work) not in unfinished])
            await self._settle(refused, reads)
        finally:  # whatever it was that ended it: a span that is not ended is not told
            for wish in wishes:
                if wish.span is not tracing.NOT_TRACED:
                    wish.span.end(failed="interrupted")

    # ------------------------------------------------------------------------------------------ reading

    async def prepare(self, works: Sequence[Work]) -> None:
        """Read the messages of the next batch, and its objects but for those that the batch in hand may change.

        Other objects, which admission asks for, are read when its turn comes.
        """
        if not self._created:
            return
        wishes, refused = await self._read(works)
        reads = Reads(self._store, self._library)
        await reads.fetch(wish.key for wish in wishes if wish.key not in self._in_hand)
        self._prepared = _Prepared(works, wishes, refused, reads)

    async def _taken_up(self, works: Sequence[Work]) -> tuple[list[Wish], list[Refused], Reads]:
        """What was prepared of this batch, or would have been."""
        prepared, self._prepared = self._prepared, None
        if prepared is not None and list(prepared.works) == list(works):
            return prepared.wishes, prepared.refused, prepared.reads
        return *await self._read(works), Reads(self._store, self._library)

    async def _read(self, works: Sequence[Work]) -> tuple[list[Wish], list[Refused]]:
        wishes: list[Wish] = []
        refused: list[Refused] = []
        for number, work in enumerate(works, 1):
            if number % READ_TOGETHER == 0:
                await asyncio.sleep(0)
            message = work.message
            user, verb = spoken(message.subject, self._subjects)
            try:
                check_not_rehearsed(message.headers)
                documents = parse(message.body)
            except Terminal as error:
                refused.append(Refused(work, error))
                continue
            parent = tracing.received(message.headers)
            is_traced = bool(parent) or tracing.is_on()
            for index, document in enumerate(documents):
                origin = RequestOrigin(self._created, work.message.sequence, index)
                try:
                    key = key_of(document) if verb == "apply" else reference_of(document)
                except Terminal as error:
                    refused.append(Refused(work, error, document=document))
                else:
                    span = spans.requested(message, verb, key, parent) if is_traced else tracing.NOT_TRACED
                    wishes.append(Wish(work, verb, user, key, document, origin, span))
        return wishes, refused

    # ------------------------------------------------------------------------------------------ writing

    async def _carry_out(self, wishes: Sequence[Wish], reads: Reads) -> list[Refused]:
        """Carry out what concerns objects of one kind; answer what was refused."""
        await reads.fetch(wish.key for wish in wishes)
        await self._read_ahead(wishes, reads)
        by_key: dict[ObjectKey, list[Wish]] = {}
        for wish in wishes:
            by_key.setdefault(wish.key, []).append(wish)
        new = [
            Wanted(key, wish.document, wish.user, wish.origin, wish.span.traceparent)
            for key, (wish, *others) in by_key.items()
            if wish.verb == "apply" and not others and reads.is_absent(key)
        ]
        for key in await self._creator.create(new, reads):
            (wish,) = by_key.pop(key)
            if wish.span is tracing.NOT_TRACED:
                _log.debug("request.taken", object=str(key), verb="apply", outcome="created")
            else:
                _tell_traced(wish, "created")
        tasks: list[asyncio.Task[list[Refused] | Transient]] = []
        async with asyncio.TaskGroup() as group:
            for number, of_one in enumerate(by_key.values(), 1):
                tasks.append(group.create_task(self._in_order(of_one, reads)))
                if number % STARTED_TOGETHER == 0:
                    await asyncio.sleep(0)
        results = [task.result() for task in tasks]
        for result in results:
            if isinstance(result, Transient):
                raise result
        return [refusal for result in results if not isinstance(result, Transient) for refusal in result]

    async def _read_ahead(self, wishes: Sequence[Wish], reads: Reads) -> None:
        """Read what admission will ask for, as far as it can be told before merging."""
        await reads.fetch_facts(
            [query for wish in wishes if wish.verb == "apply" for query in _queries_of(wish.document)]
        )

    async def _in_order(self, wishes: Sequence[Wish], reads: Reads) -> list[Refused] | Transient:
        async with self._slots:
            refused: list[Refused] = []
            for wish in wishes:
                try:
                    refusal = await self._fulfil_traced(wish, reads)
                except Transient as error:
                    return error
                if refusal is not None:
                    refused.append(refusal)
            return refused

    async def _fulfil_traced(self, wish: Wish, reads: Reads) -> Refused | None:
        if wish.span is tracing.NOT_TRACED:
            return await self._fulfil(wish, reads)
        with tracing.within(wish.span.traceparent):
            refusal = await self._fulfil(wish, reads)
        if refusal is None:
            wish.span.end(outcome="superseded")  # unless it has told another outcome
        return refusal

    async def _fulfil(self, wish: Wish, reads: Reads) -> Refused | None:
        try:
            if wish.verb == "apply":
                written = await self._writer.apply(
                    wish.document, reads, user=wish.user, origin=wish.origin, key=wish.key
                )
            else:
                written = await self._writer.delete(wish.key, reads, origin=wish.origin)
        except Contingent as contingent:
            return await self._refusal(wish, contingent.error, reads, contingent=True)
        except NotFound as error:  # a deletion; an earlier request may still be about to create the object
            return Refused(wish.work, error, wish, contingent=True, document=wish.document)
        except (Terminal, StaleVersion) as error:
            return await self._refusal(wish, error, reads)
        except Conflict as error:
            raise Unavailable(error.message) from error
        if wish.span is not tracing.NOT_TRACED:
            _tell_traced(wish, written.outcome)
            return None
        _log.debug(
            "request.taken",
            object=str(wish.key),
            verb=wish.verb,
            outcome=written.outcome,
            queued_ms=round(wish.work.queued_ms, 1),
        )
        return None

    async def _refusal(
        self, wish: Wish, error: GardenbusError, reads: Reads, *, contingent: bool = False
    ) -> Refused | None:
        """A refusal, unless the request was carried out already (and now comes again) or a newer one was."""
        if await self._writer.is_superseded(wish.key, wish.origin, reads):
            return None
        return Refused(wish.work, error, wish, contingent=contingent, document=wish.document)

    # ------------------------------------------------------------------------------------------ refusing

    async def _settle(self, refused: Sequence[Refused], reads: Reads) -> None:
        """Reject what was refused, in order, and acknowledge; try first again what depends on earlier requests."""
        deadline = self._clock.monotonic() + EARLIER_SECONDS
        in_order = sorted(refused, key=lambda refusal: refusal.work.message.sequence)
        for _, of_work in groupby(in_order, key=lambda refusal: refusal.work.message.sequence):
            refusals = list(of_work)
            for refusal in refusals:
                final = refusal
                if refusal.contingent and refusal.wish is not None:
                    await self._wait_for_earlier(refusal.work.message, deadline)
                    reads.forget_all()
                    final = await self._fulfil_traced(refusal.wish, reads)
                if final is not None and not _is_done(final):
                    await self._reject(final, reads)
                elif final is not None and final.wish is not None:
                    final.wish.span.end(outcome="deleted")
            await refusals[0].work.ack()

    async def _wait_for_earlier(self, message: Delivered, deadline: float) -> None:
        stream = self._subjects.stream("REQUESTS")
        while self._clock.monotonic() < deadline:
            floor = await self._bus.acknowledged_floor(stream, self._consumer)
            if floor.sequence >= message.sequence - 1:
                return
            await self._clock.sleep(EARLIER_POLL_SECONDS)

    async def _reject(self, refusal: Refused, reads: Reads) -> None:
        about = await reads.get(refusal.wish.key) if refusal.wish is not None else None
        action = refusal.wish.verb.capitalize() if refusal.wish is not None else ""
        await self._rejections.reject(
            refusal.work.message, refusal.error, document=refusal.document, about=about, action=action
        )
        if refusal.wish is not None:
            refusal.wish.span.end(failed=refusal.error.message)


def _tell_traced(wish: Wish, outcome: str) -> None:
    """One that is followed is worth a line, and its span ends with it."""
    wish.span.end(outcome=outcome)
    _log.info(
        "request.taken",
        object=str(wish.key),
        verb=wish.verb,
        outcome=outcome,
        queued_ms=round(wish.work.queued_ms, 1),
        **tracing.fields(wish.span.traceparent),
    )


def _queries_of(document: Mapping[str, object]) -> Sequence[admission.FactQuery]:
    try:
        return admission.facts_needed(dict(document), None)
    except (Terminal, AttributeError, TypeError, KeyError):
        return ()  # it is not valid; validation says so when its turn comes


def _is_done(refusal: Refused) -> bool:
    """Whether there is nothing left to do: what shall be deleted is not there."""
    return isinstance(refusal.error, NotFound) and refusal.wish is not None and refusal.wish.verb == "delete"
