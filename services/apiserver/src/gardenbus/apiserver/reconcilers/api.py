"""Answered requests: everything below `garden.api.` and `garden.as.<user>.api.`.

| subject behind `api.` | body | result |
|---|---|---|
| `apply` | manifests | the object; several: a list, ok only if all are |
| `patch.<kind>.<ns>.<name>`, `patch` | a JSON merge patch; `{"kind", "namespace", "name", "patch"}` | the object |
| `delete.<kind>.<ns>.<name>`, `delete` | nothing; manifests or `{"kind", "namespace", "name"}` | what is left of it |
| `get.<kind>.<ns>.<name>` | | the object |
| `list.<kind>[.<ns>]` | `{"limit", "continue", "labelSelector", "fieldSelector"}` | items and where to go on |
| `bind` | `{"namespace", "name", "seed", "resourceVersion"?, "force"?}`; a placed shoot is moved | the shoot |
| `scale` | `{"namespace"?, "name", "replicas"?, "resourceVersion"?}` of a ManagedSeedSet | its scale |
| `explain[.shoot].<ns>.<name>` | | where it stands and why it waits |
| `explain-seed.<name>` | | whether it takes shoots, rule by rule, and which of those that wait |
| `waiting[.<schedulerName>]` | `{"limit", "namespace", "name", "classes"}` | shoots that wait, and when each is tried |
| `retry.shoot.<ns>.<name>` | | a shoot without a seed is looked at now |
| `kinds`, `census` | | |

A request that writes stands, in the order of the bus, behind all durable requests that were stored before it came.
With the header `Gardenbus-Condition: <kind>.<ns>.<name>=<resourceVersion>` it writes only while that object has that
version; with `Gardenbus-Dry-Run: true` it writes nothing, and answers what it would have written.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import msgspec
import structlog
from prometheus_client import Histogram

from gardenbus.apiserver.answers import Answer, answered, answered_together, refused
from gardenbus.apiserver.decide.manifests import parse, read_values
from gardenbus.apiserver.decide.metadata import reference_of
from gardenbus.apiserver.reconcilers import spans
from gardenbus.apiserver.reconcilers.attempts import Contingent, Written
from gardenbus.apiserver.reconcilers.placing import BindBody, Placer
from gardenbus.apiserver.reconcilers.preconditions import Condition, condition_in
from gardenbus.apiserver.reconcilers.reading import Reader
from gardenbus.apiserver.reconcilers.reads import Library, Reads
from gardenbus.apiserver.reconcilers.rehearsing import RehearsalStore, is_dry_run
from gardenbus.apiserver.reconcilers.scaling import ScaleBody, read_scale, scale_of, write_scale
from gardenbus.apiserver.reconcilers.speaking import no_such_verb, spoken
from gardenbus.apiserver.reconcilers.waiting import WaitingShoots
from gardenbus.apiserver.reconcilers.writing import ANSWERED, Writer
from gardenbus.common.errors import BadRequest, GardenbusError, Unavailable
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Bus, Request, StreamPosition
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import RequestOrigin, Store
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import Header, ObjectKey, Subjects

_log = structlog.stdlib.get_logger()

ANSWER_SECONDS = Histogram(
    "gardenbus_apiserver_request_duration_seconds", "Time to answer a request.", ["verb", "code"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)  # fmt: skip

VERBS = frozenset(
    {
        "apply",
        "patch",
        "delete",
        "get",
        "list",
        "bind",
        "scale",
        "explain",
        "explain-seed",
        "kinds",
        "census",
        "waiting",
        "retry",
    }
)


class PatchBody(msgspec.Struct, frozen=True):
    """What `patch` is sent when its subject names no object."""

    kind: str
    name: str
    patch: dict[str, Any]
    namespace: str = ""


class Speaker(NamedTuple):
    """Who asks, on which condition (None: on none), and whether only to see what would come of it."""

    user: str
    condition: Condition | None
    is_dry_run: bool = False


class Desk(NamedTuple):
    """What one request is carried out with; a dry run's has no place in the order of the bus."""

    writer: Writer
    reads: Reads
    origin: RequestOrigin | None


class LatestPosition:
    """Where REQUESTS stands, asked for once for all who ask meanwhile; never older than the question."""

    def __init__(self, bus: Bus, stream: str) -> None:
        self._bus = bus
        self._stream = stream
        self._running: asyncio.Task[StreamPosition] | None = None
        self._next: asyncio.Task[StreamPosition] | None = None

    async def get(self) -> StreamPosition:
        """The position, as of now or later. Raises Unavailable."""
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._running))
        return await asyncio.shield(self._next)

    async def _after(self, running: "asyncio.Task[StreamPosition] | None") -> StreamPosition:
        if running is not None:
            await asyncio.wait({running})
        self._running, self._next = self._next, None
        return await self._bus.position(self._stream)


class Api:
    """Answers requests; any number at a time."""

    def __init__(  # noqa: PLR0913
        self,
        *,
        bus: Bus,
        store: Store,
        clock: Clock,
        subjects: Subjects,
        writer: Writer,
        placer: Placer,
        library: Library,
        concurrency: int,
    ) -> None:
        self._placer = placer
        self._store = store
        self._clock = clock
        self._subjects = subjects
        self._writer = writer
        self._library = library
        self._reader = Reader(store, bus, subjects)
        self._waiting = WaitingShoots(store, bus, subjects)
        self._position = LatestPosition(bus, subjects.stream("REQUESTS"))
        self._slots = asyncio.Semaphore(concurrency)

    async def handle(self, request: Request) -> bytes:
        """Answer one request, whatever it is; never raises."""
        user, tail = spoken(request.subject, self._subjects)
        verb, _, rest = tail.removeprefix("api.").partition(".")
        began = asyncio.get_running_loop().time()
        span = spans.asked(verb, request.headers)
        try:
            async with self._slots:
                speaker = Speaker(user, condition_in(request.headers), is_dry_run(request.headers))
                if span is tracing.NOT_TRACED:
                    answer = await self._answer(verb, rest, request.body, speaker)
                else:
                    with tracing.within(span.traceparent):
                        answer = await self._answer(verb, rest, request.body, speaker)
        except Contingent as contingent:
            answer = refused(contingent.error)
        except GardenbusError as error:
            answer = refused(error)
        except Exception as error:  # noqa: BLE001 - who asks must be answered, and the service goes on
            _log.exception("request.failed", verb=verb, subject=request.subject)
            answer = refused(Unavailable(f"an unexpected error: {type(error).__name__}; see the apiserver's log"))
        code = 200 if answer.ok else answer.error["code"]
        if span is not tracing.NOT_TRACED:
            span.end(failed="" if answer.ok else answer.error["message"], code=code)
            _log.info("request.answered", subject=request.subject, code=code, **tracing.fields(span.traceparent))
        ANSWER_SECONDS.labels(verb if verb in VERBS else "other", code).observe(
            asyncio.get_running_loop().time() - began
        )
        return answer.encoded()

    async def _answer(self, verb: str, rest: str, body: bytes, speaker: Speaker) -> Answer:
        match verb:
            case "bind" | "retry" if speaker.is_dry_run:
                raise BadRequest(f"{Header.DRY_RUN}: {verb} has none: ask explain which seeds would take the shoot")
            case "apply":
                return await self._apply(body, speaker)
            case "patch":
                return await self._patch(rest, body, speaker)
            case "delete":
                return await self._delete(rest, body, speaker)
            case "bind":
                return await self._bind(body, speaker)
            case "scale":
                return await self._scale(body, speaker)
            case _:
                return answered(await self._read(verb, rest, body))

    async def _read(self, verb: str, rest: str, body: bytes) -> Any:
        match verb:
            case "get":
                return await self._reader.get(rest)
            case "list":
                return await self._reader.list_objects(rest, body)
            case "explain":
                return await self._reader.explain(rest)
            case "explain-seed":
                return await self._reader.explain_seed(rest)
            case "kinds":
                return self._reader.kinds()
            case "census":
                return await self._reader.census()
            case "waiting":
                return await self._waiting.listed(rest, body)
            case "retry":
                return await self._waiting.retry(rest)
            case _:
                raise no_such_verb(verb)

    async def _apply(self, body: bytes, speaker: Speaker) -> Answer:
        documents = parse(body)
        desk = await self._desk(speaker)
        answers = [await self._apply_one(document, desk, speaker) for document in documents]
        return answered_together(answers)

    async def _apply_one(self, document: Document, desk: Desk, speaker: Speaker) -> Answer:
        try:
            return _written(
                await desk.writer.apply(
                    document, desk.reads, user=speaker.user, origin=desk.origin, condition=speaker.condition
                )
            )
        except Contingent as contingent:
            return refused(contingent.error)
        except GardenbusError as error:
            return refused(error)

    async def _patch(self, tail: str, body: bytes, speaker: Speaker) -> Answer:
        if tail:
            key, patch = await self._reader.key(tail), _mapping(body, "a JSON merge patch")
        else:
            asked = _read(body, PatchBody)
            key = reference_of({"kind": asked.kind, "namespace": asked.namespace, "name": asked.name})
            patch = asked.patch
        desk = await self._desk(speaker)
        return _written(
            await desk.writer.patch(
                key, patch, desk.reads, user=speaker.user, origin=desk.origin, condition=speaker.condition
            )
        )

    async def _delete(self, tail: str, body: bytes, speaker: Speaker) -> Answer:
        keys = [await self._reader.key(tail)] if tail else [reference_of(document) for document in parse(body)]
        desk = await self._desk(speaker)
        return answered_together([await self._delete_one(key, desk, speaker) for key in keys])

    async def _delete_one(self, key: ObjectKey, desk: Desk, speaker: Speaker) -> Answer:
        try:
            return _written(await desk.writer.delete(key, desk.reads, origin=desk.origin, condition=speaker.condition))
        except Contingent as contingent:
            return refused(contingent.error)
        except GardenbusError as error:
            return refused(error)

    async def _bind(self, body: bytes, speaker: Speaker) -> Answer:
        asked: BindBody = _read(body, BindBody)
        return _written(await self._placer.bind(asked, self._reads(), user=speaker.user, condition=speaker.condition))

    async def _scale(self, body: bytes, speaker: Speaker) -> Answer:
        asked: ScaleBody = _read(body, ScaleBody)
        if asked.replicas is None:
            return answered(await read_scale(asked, self._reads()))
        desk = await self._desk(speaker)
        written = await write_scale(
            asked,
            asked.replicas,
            desk.writer,
            desk.reads,
            user=speaker.user,
            origin=desk.origin,
            condition=speaker.condition,
        )
        scale = scale_of(written.stored) if written.stored is not None else None
        return answered(scale, written.warnings, outcome=written.outcome)

    def _reads(self) -> Reads:
        return Reads(self._store, self._library)

    async def _desk(self, speaker: Speaker) -> Desk:
        """What a request that writes is carried out with; a dry run shares nothing that it could leave a trace in."""
        if speaker.is_dry_run:
            stage = RehearsalStore(self._store, self._clock)
            return Desk(Writer(stage, self._clock), Reads(stage, Library(stage)), None)
        position = await self._position.get()
        return Desk(self._writer, self._reads(), RequestOrigin(position.created, position.sequence, ANSWERED))


def _written(written: Written) -> Answer:
    if written.stored is not None:
        return answered(msgspec.Raw(written.stored.encoded()), written.warnings, outcome=written.outcome)
    key = written.key
    left: dict[str, Any] = {"kind": key.kind, "namespace": key.namespace, "name": key.name, "deleted": True}
    return answered(left, written.warnings, outcome=written.outcome)


def _mapping(body: bytes, what: str) -> Document:
    values: Sequence[Any] = read_values(body)
    if len(values) != 1 or not isinstance(values[0], dict):
        raise BadRequest(f"send {what}: one JSON object")
    return cast("Document", values[0])


def _read(body: bytes, wanted: type[Any]) -> Any:
    fields = ", ".join(field.encode_name for field in msgspec.structs.fields(wanted))
    document = _mapping(body, f"an object with {fields}")
    try:
        return msgspec.convert(document, wanted)
    except msgspec.ValidationError as error:
        raise BadRequest(f"send an object with {fields}: {error}") from error
