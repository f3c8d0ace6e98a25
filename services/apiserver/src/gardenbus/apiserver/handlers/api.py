"""API requests, which have a response: everything below `garden.api.` and `garden.as.<user>.api.`.

The requests, with bodies and results, are in `tools/docs` (`channels`, `messages`) and docs/reference/subjects.md.
Each request is authorized first (`domain/authorization`), where the landscape has identities.

A request that writes comes, in the order of the bus, after all durable requests that were stored before it. With the
header `Gardenbus-Condition: <kind>.<ns>.<name>=<resourceVersion>` it writes only while that object has that version;
with `Gardenbus-Dry-Run: true` it writes nothing, and responds with what it would have written; with `explain` an
`apply` does so and says what each admission plug-in did. `Gardenbus-Validate`
says what becomes of fields that the kind does not have: `strict` (the default) rejects them, `warn`, or `ignore`.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec
import structlog
from prometheus_client import Histogram

from gardenbus.apiserver import spans
from gardenbus.apiserver.domain.admission_trace import AdmissionTrace
from gardenbus.apiserver.domain.authorization.actions import BIND, UNLIMITED, Action, Requester
from gardenbus.apiserver.domain.fair_slots import lane_of
from gardenbus.apiserver.domain.field_validation import validation_of
from gardenbus.apiserver.domain.in_flight import BYTES, REQUESTS, InFlight
from gardenbus.apiserver.domain.request_subjects import RequestSubject, parse_request_subject, unknown_verb
from gardenbus.apiserver.domain.responses import RequestResponse, combined_response, error_response, success_response
from gardenbus.apiserver.domain.senders import UserOf, as_stated, check_sender
from gardenbus.apiserver.domain.validation.metadata import key_of, reference_of
from gardenbus.apiserver.handlers.access_reviews import AccessReviews
from gardenbus.apiserver.handlers.admin_kubeconfigs import AdminKubeconfigs
from gardenbus.apiserver.handlers.authorizer import AccessGrant, Authorizer, MessagePermits, NotPermitted
from gardenbus.apiserver.handlers.bootstrap_tokens import BootstrapTokens
from gardenbus.apiserver.handlers.queries import ObjectReader
from gardenbus.apiserver.handlers.recoveries import RecoveryRequests
from gardenbus.apiserver.handlers.request_actions import query_action
from gardenbus.apiserver.handlers.request_slots import RequestSlots
from gardenbus.apiserver.handlers.shoot_census import shoot_census
from gardenbus.apiserver.handlers.signing_requests import SigningRequests
from gardenbus.apiserver.handlers.stream_positions import stream_position
from gardenbus.apiserver.handlers.unknown_objects import UnknownObjects
from gardenbus.apiserver.handlers.unschedulable import UnschedulableShoots
from gardenbus.apiserver.handlers.watches import WATCHES, Watches, watch_query, watched_actions
from gardenbus.apiserver.metrics import OVER_BUDGET
from gardenbus.apiserver.registry.dry_run import EXPLAIN, DryRunStore, explains, is_dry_run
from gardenbus.apiserver.registry.loop_turn import LoopTurn
from gardenbus.apiserver.registry.preconditions import Precondition, precondition_of
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import UnmetDependency, WriteResult, cause_of
from gardenbus.apiserver.registry.scale import ScaleBody, read_scale, scale_of, write_scale
from gardenbus.apiserver.registry.seed_binder import BindBody, SeedBinder
from gardenbus.apiserver.registry.stored_kinds import stored_reference
from gardenbus.apiserver.registry.writer import REQUEST_REPLY, Writer
from gardenbus.common.api.budgets import OverBudget
from gardenbus.common.api.confirmation import CONFIRMING_PATCH
from gardenbus.common.api.document import Document
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.api.manifests.parser import parse, read_object
from gardenbus.common.api.watches import WatchResult
from gardenbus.common.controller.budget_settings import BudgetOf, default_budget
from gardenbus.common.controller.budget_use import BudgetUse
from gardenbus.common.controller.stream_incarnation import StreamIncarnation
from gardenbus.common.errors import BadRequest, Forbidden, GardenbusError, Terminal, Unavailable, Unsupported
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Bus, Headers, Request, StreamPosition
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import RequestOrigin, Store

_log = structlog.stdlib.get_logger()

REQUEST_SECONDS = Histogram(
    "gardenbus_apiserver_request_duration_seconds", "Time to respond to a request.", ["verb", "code"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)  # fmt: skip

_WRITES = (
    "apply",
    "patch",
    "delete",
    "bind",
    "scale",
    "retry",
    "adopt",
    "forget",
    "proceed",
    "csr",
    "token",
    "adminkubeconfig",
)
_QUERIES = (
    "get",
    "list",
    "names",
    "explain",
    "explain-seed",
    "kinds",
    "census",
    "usage",
    "waiting",
    "unknown",
    "lost",
    "recovery",
    "position",
)
_INSTEAD: dict[str, str] = dict.fromkeys(("bind", "retry"), ": `explain` shows which seeds would accept the shoot")
_ACCESS = ("whoami", "can-i", "readable")
WATCH = "watch"
VERBS = frozenset((*_WRITES, *_QUERIES, *_ACCESS, WATCH))
_AUTHORIZED_BY_OBJECT = frozenset({"apply", "patch", "delete", "bind", "scale", WATCH})
"""Verbs whose body says which objects they are about: each of these is authorized."""


class PatchBody(msgspec.Struct, frozen=True):
    """Body of a `patch` whose subject names no object."""

    kind: str
    name: str
    patch: dict[str, Any]
    namespace: str = ""


class RequestOptions(NamedTuple):
    """Requester, precondition (None: none), and dry run of a request."""

    requester: Requester
    condition: Precondition | None
    is_dry_run: bool = False
    validation: FieldValidation = FieldValidation.STRICT
    headers: Headers = {}

    @property
    def user(self) -> str:
        """The user who sent it."""
        return self.requester.user


class WriteSession(NamedTuple):
    """Writer, reads and origin for one request; that of a dry run has no place in the order of the bus."""

    writer: Writer
    reads: ReadCache
    origin: RequestOrigin | None
    trace: AdmissionTrace | None = None
    permits: MessagePermits | None = None
    """Decisions about the writes of the request."""


class LatestPosition:
    """Position of REQUESTS, queried once for all concurrent callers; never older than the call."""

    def __init__(self, query: Callable[[], Awaitable[StreamPosition]]) -> None:
        self._query = query
        self._running: asyncio.Task[StreamPosition] | None = None
        self._next: asyncio.Task[StreamPosition] | None = None

    async def get(self) -> StreamPosition:
        """The position, as of now or later. Raises Unavailable."""
        if self._next is None:
            self._next = asyncio.create_task(self._query_after(self._running))
        return await asyncio.shield(self._next)

    async def _query_after(self, running: "asyncio.Task[StreamPosition] | None") -> StreamPosition:
        if running is not None:
            await asyncio.wait({running})
        self._running, self._next = self._next, None
        return await self._query()


@dataclass(kw_only=True)
class ApiHandler:
    """Handles requests; any number at a time."""

    bus: Bus
    store: Store
    clock: Clock
    subjects: Subjects
    writer: Writer
    seed_binder: SeedBinder
    manifests: ManifestCache
    authorizer: Authorizer
    concurrency: int
    user_of: UserOf = as_stated
    budget_of: BudgetOf = default_budget

    def __post_init__(self) -> None:
        self._reader = ObjectReader(self.store, self.bus, self.subjects)
        self._access = AccessReviews(self.authorizer, self.store)
        self._unschedulable = UnschedulableShoots(self.store, self.bus, self.subjects)
        self._unknown = UnknownObjects(self.store)
        self._recoveries = RecoveryRequests(self.store)
        self._signing_requests = SigningRequests(self.store, self.clock)
        self._bootstrap_tokens = BootstrapTokens(self.clock)
        self._admin_kubeconfigs = AdminKubeconfigs(self.store, self.bus, self.subjects)
        self._position = LatestPosition(
            StreamIncarnation(self.bus, self.store, self.subjects.stream("REQUESTS")).position
        )
        self._watches = Watches(self.bus, self.subjects, self.budget_of)
        self._slots = RequestSlots(self.concurrency)
        self._in_flight = InFlight()
        self.use = BudgetUse(self.budget_of)
        """Use of the budgets that are counted here."""
        for limit in (BYTES, REQUESTS):
            self.use.count(limit, partial(self._in_flight.held, limit))
        self.use.count(WATCHES, lambda: self._watches.running)

    async def handle(self, request: Request) -> bytes:
        """Respond to one request, whatever it is; never raises."""
        try:
            sender = parse_request_subject(request.subject, self.subjects)
            check_sender(request.headers, sender.user, self.user_of)
        except Terminal as error:
            return error_response(error).encoded()
        verb, _, rest = sender.tail.removeprefix("api.").partition(".")
        began = asyncio.get_running_loop().time()
        span = spans.api_request(verb, request.headers)
        try:
            async with self._within_budget(verb, sender, request):
                requester = self.authorizer.requester(sender, request.headers, uuid4().hex)
                options = _options_of(requester, request.headers)
                if span is tracing.NOT_TRACED:
                    response = await self._respond(verb, rest, request.body, options)
                else:
                    with tracing.within(span.traceparent):
                        response = await self._respond(verb, rest, request.body, options)
        except OverBudget as error:
            OVER_BUDGET.labels(error.limit).inc()
            response = error_response(error)
        except (UnmetDependency, GardenbusError) as error:
            response = error_response(cause_of(error))
        except Exception as error:  # noqa: BLE001 - every requester gets a response, and the service goes on
            _log.exception("request.failed", verb=verb, subject=request.subject)
            response = error_response(
                Unavailable(f"an unexpected error: {type(error).__name__}; see the apiserver's log")
            )
        code = 200 if response.ok else response.error["code"]
        if span is not tracing.NOT_TRACED:
            span.end(failed="" if response.ok else response.error["message"], code=code)
            _log.info("request.handled", subject=request.subject, code=code, **tracing.fields(span.traceparent))
        if verb != WATCH:  # it takes as long as nothing changes
            REQUEST_SECONDS.labels(verb if verb in VERBS else "other", code).observe(
                asyncio.get_running_loop().time() - began
            )
        return response.encoded()

    @contextlib.asynccontextmanager
    async def _within_budget(self, verb: str, sender: RequestSubject, request: Request) -> AsyncGenerator[None]:
        """Count a request while it is in flight, and work on it in its turn. Raises OverBudget."""
        size, user = len(request.body), sender.user
        is_insider = self.authorizer.comes_from_services(sender, request.headers)
        lane = lane_of(user, is_insider=is_insider)
        is_watch = verb == WATCH  # it waits, and works little
        requests = 0 if is_watch or lane == "insiders" else 1
        with self._in_flight.counted(user, size, self.budget_of(user), requests=requests):
            if is_watch:
                yield
                return
            async with self._slots.held(lane, user, size):
                yield

    async def _respond(self, verb: str, rest: str, body: bytes, options: RequestOptions) -> RequestResponse:
        granted = await self._authorized(verb, rest, body, options)
        _check_dry_run(verb, options)
        match verb:
            case "apply":
                return await self._apply(body, options)
            case "patch":
                return await self._patch(rest, body, options)
            case "delete":
                return await self._delete(rest, body, options)
            case "bind":
                return await self._bind(body, options)
            case "scale":
                return await self._scale(body, options)
            case "adopt" | "forget" | "proceed":
                return await self._recover(verb, rest, body, options, granted)
            case "csr" | "token" | "adminkubeconfig":
                return await self._certify(verb, rest, body, options, granted)
            case "watch":
                return success_response(await self._watch(body, options))
            case "list":
                listed = await self._reader.list_objects(rest, body)
                return success_response(listed.result, listed.warnings)
            case _:
                return success_response(await self._read(verb, rest, body, options))

    async def _recover(
        self, verb: str, rest: str, body: bytes, options: RequestOptions, granted: AccessGrant
    ) -> RequestResponse:
        """Carry out `adopt`, `forget` or `proceed`."""
        if verb == "proceed":
            result = await self._recoveries.proceed(body, options.user)
            granted.written("done", is_dry_run=False)
            return success_response(result)
        carry_out = self._unknown.adopt if verb == "adopt" else self._unknown.forget
        result = await carry_out(rest, body, is_dry_run=options.is_dry_run)
        granted.written("done", is_dry_run=options.is_dry_run)
        return success_response(result)

    async def _certify(
        self, verb: str, rest: str, body: bytes, options: RequestOptions, granted: AccessGrant
    ) -> RequestResponse:
        """Carry out a request about certificates, bootstrap tokens or kubeconfigs."""
        is_enforced = self.authorizer.is_enforced
        is_operator = granted.is_operators if is_enforced else options.requester.is_insider
        if verb == "adminkubeconfig":
            result = await self._admin_kubeconfigs.respond(rest, body, user=options.user, is_operator=is_operator)
        else:
            handler = self._signing_requests if verb == "csr" else self._bootstrap_tokens
            result = await handler.respond(
                rest, body, user=options.user, is_operator=is_operator, writer=self.writer, reads=self._reads()
            )
        granted.written("done")
        return success_response(result)

    async def _read(self, verb: str, rest: str, body: bytes, options: RequestOptions) -> Any:
        match verb:
            case "whoami" | "can-i" | "readable":
                return await self._access.respond(verb, body, options.requester, self._reads())
            case "get":
                return await self._reader.get(rest)
            case "names":
                return await self._reader.names(rest, body)
            case "explain" | "explain-seed":
                explain = self._reader.explain if verb == "explain" else self._reader.explain_seed
                return await explain(rest)
            case "kinds" | "census" | "usage":
                return await self._count(f"{verb}.{rest}" if rest and verb == "census" else verb)
            case "waiting":
                return await self._unschedulable.listed(rest, body)
            case "unknown" | "lost" | "recovery":
                reads = {"unknown": self._unknown.listed, "lost": self._reader.lost, "recovery": self._recoveries.read}
                return await reads[verb]()
            case "retry":
                return await self._unschedulable.retry(rest)
            case "position":
                return await stream_position(self.bus, self.subjects, rest)
            case _:
                raise unknown_verb(verb)

    async def _watch(self, body: bytes, options: RequestOptions) -> WatchResult:
        query = watch_query(body)
        for action in watched_actions(query):
            await self.authorizer.permit(options.requester, action, self._reads())
        return await self._watches.respond(query, options.user)

    async def _count(self, what: str) -> Any:
        """The response about the landscape as a whole."""
        match what:
            case "kinds":
                return await self._reader.kinds()
            case "census":
                return await self._reader.census()
            case "usage":
                return await self._reader.usage()
            case "census.shoot":
                return await shoot_census(self.store)
            case _:
                raise Unsupported(f"{what}: there are census and census.shoot")

    async def _authorized(self, verb: str, rest: str, body: bytes, options: RequestOptions) -> AccessGrant:
        """Authorize a request, unless that is done object by object. Raises Forbidden, and what reading it raises."""
        requester = options.requester
        if not self.authorizer.decides_on(requester):
            is_audited = verb in ("adopt", "forget", "proceed", "csr", "token")
            action = await query_action(verb, rest, body, self._reader) if is_audited else Action(verb)
            return await self.authorizer.grant(requester, action, self._reads())
        if verb not in VERBS:
            raise unknown_verb(verb)
        reads = self._reads()
        if options.condition is not None:
            await self.authorizer.permit(requester, Action.on("get", options.condition.key), reads)
        if verb in _AUTHORIZED_BY_OBJECT:
            return AccessGrant(requester, Action(verb), UNLIMITED, None)
        return await self.authorizer.grant(requester, await query_action(verb, rest, body, self._reader), reads)

    async def _apply(self, body: bytes, options: RequestOptions) -> RequestResponse:
        turn = LoopTurn()
        documents = parse(body)
        await turn.let_others_in()
        session = await self._write_session(options)
        return await _written_together(
            (self._applied(document, session, options) for document in documents), session.trace
        )

    async def _applied(self, document: Document, session: WriteSession, options: RequestOptions) -> WriteResult:
        turn = LoopTurn()
        key = key_of(document)
        await turn.let_others_in()
        granted = await self.authorizer.grant_write(
            options.requester, "apply", key, session.reads, document, permits=session.permits
        )
        written = await session.writer.apply(
            document,
            session.reads,
            user=options.user,
            origin=session.origin,
            key=key,
            condition=options.condition,
            checks=granted.checks,
            validation=options.validation,
        )
        granted.written(written.outcome, is_dry_run=options.is_dry_run)
        return written

    async def _patch(self, tail: str, body: bytes, options: RequestOptions) -> RequestResponse:
        if tail:
            key, patch = await self._reader.key(tail), _mapping(body, "a JSON merge patch")
        else:
            api_request = _read(body, PatchBody)
            key = reference_of({"kind": api_request.kind, "namespace": api_request.namespace, "name": api_request.name})
            patch = api_request.patch
        session = await self._write_session(options)
        granted = await self.authorizer.grant_write(options.requester, "patch", key, session.reads, patch)
        written = await session.writer.patch(
            key,
            patch,
            session.reads,
            user=options.user,
            origin=session.origin,
            condition=options.condition,
            checks=granted.checks,
            validation=options.validation,
        )
        granted.written(written.outcome, is_dry_run=options.is_dry_run)
        return _write_response(written)

    async def _delete(self, tail: str, body: bytes, options: RequestOptions) -> RequestResponse:
        deletions = [(await self._reader.key(tail), False)] if tail else []
        for document in () if tail else parse(body):
            confirms = _confirms(document)
            deletions.append((await stored_reference(self.store, document), confirms))
        session = await self._write_session(options)
        return await _written_together(
            self._deleted(session, key, options, confirms=confirms) for key, confirms in deletions
        )

    async def _deleted(
        self, session: WriteSession, key: ObjectKey, options: RequestOptions, *, confirms: bool
    ) -> WriteResult:
        """Delete an object; with `confirms` after it was annotated so, which then is what the precondition is about."""
        granted = await self.authorizer.grant_write(
            options.requester, "delete", key, session.reads, permits=session.permits
        )
        condition = options.condition
        if confirms:
            await session.writer.patch(
                key, CONFIRMING_PATCH, session.reads, user=options.user, origin=session.origin, condition=condition
            )
            condition = condition if condition is None or condition.key != key else None
        user = None if options.requester.is_controller else options.user
        written = await session.writer.delete(key, session.reads, user=user, origin=session.origin, condition=condition)
        granted.written(written.outcome, is_dry_run=options.is_dry_run)
        return written

    async def _bind(self, body: bytes, options: RequestOptions) -> RequestResponse:
        api_request: BindBody = _read(body, BindBody)
        reads = self._reads()
        action = Action.on(BIND, api_request.shoot)
        granted = await self.authorizer.grant(options.requester, action, reads)
        written = await self.seed_binder.bind(api_request, reads, user=options.user, condition=options.condition)
        granted.written(f"bound to {api_request.seed}")
        return _write_response(written)

    async def _scale(self, body: bytes, options: RequestOptions) -> RequestResponse:
        api_request: ScaleBody = _read(body, ScaleBody)
        if api_request.replicas is None:
            reads = self._reads()
            await self.authorizer.permit(options.requester, Action.on("get", api_request.key), reads)
            return success_response(await read_scale(api_request, reads))
        session = await self._write_session(options)
        await self.authorizer.permit(options.requester, Action.on("scale", api_request.key), session.reads)
        written = await write_scale(
            api_request,
            api_request.replicas,
            session.writer,
            session.reads,
            user=options.user,
            origin=session.origin,
            condition=options.condition,
        )
        scale = scale_of(written.stored) if written.stored is not None else None
        return success_response(scale, written.warnings, outcome=written.outcome)

    def _reads(self) -> ReadCache:
        return ReadCache(self.store, self.manifests)

    async def _write_session(self, options: RequestOptions) -> WriteSession:
        """Session for a request that writes; a dry run shares nothing that it could leave a trace in."""
        permits = MessagePermits(options.requester)
        if options.is_dry_run:
            dry_run_store = DryRunStore(self.store, self.clock)
            trace = AdmissionTrace(self.writer.admission) if explains(options.headers) else None
            return WriteSession(
                Writer(dry_run_store, self.clock, trace.admission if trace else self.writer.admission),
                ReadCache(dry_run_store, ManifestCache(dry_run_store)),
                None,
                trace,
                permits,
            )
        position = await self._position.get()
        return WriteSession(
            self.writer,
            self._reads(),
            RequestOrigin(position.created, position.sequence, REQUEST_REPLY),
            permits=permits,
        )


def _check_dry_run(verb: str, options: RequestOptions) -> None:
    """Raise BadRequest for a dry run of what has none, or none that explains."""
    if options.is_dry_run and verb in ("bind", "retry", "csr", "token"):
        raise BadRequest(f"{Header.DRY_RUN}: {verb} has none" + _INSTEAD.get(verb, ""))
    if verb != "apply" and explains(options.headers):
        raise BadRequest(f"{Header.DRY_RUN}: {EXPLAIN} is for apply, not for {verb}")


def _confirms(document: Document) -> bool:
    """True when `confirm` confirms a deletion in the same request. Raises BadRequest."""
    confirms = document.get("confirm", False)
    if not isinstance(confirms, bool):
        raise BadRequest("confirm: must be true or false")
    return confirms


def _options_of(requester: Requester, headers: Headers) -> RequestOptions:
    validation = validation_of(headers, FieldValidation.STRICT)
    return RequestOptions(requester, precondition_of(headers), is_dry_run(headers), validation, headers)


async def _written_together(
    writes: Iterable[Coroutine[Any, Any, WriteResult]], trace: AdmissionTrace | None = None
) -> RequestResponse:
    """Carries writes out, one after another; one that is rejected keeps none of the others from it.

    But nothing behind one that its requester may not make is tried.
    """
    responses: list[RequestResponse] = []
    not_tried: RequestResponse | None = None
    turn = LoopTurn()
    for number, write in enumerate(writes, 1):
        await turn.let_others_in()
        if not_tried is not None:
            write.close()
            responses.append(not_tried)
            continue
        try:
            responses.append(_write_response(await write))
        except NotPermitted as error:
            responses.append(error_response(error))
            not_tried = error_response(Forbidden(f"not carried out, as document {number} is not permitted"))
        except (UnmetDependency, GardenbusError) as error:
            responses.append(error_response(cause_of(error)))
        if trace is not None:
            responses[-1] = msgspec.structs.replace(responses[-1], admission=trace.taken())
    return combined_response(responses)


def _write_response(written: WriteResult) -> RequestResponse:
    """The response to a write; each warning names its object."""
    key = written.key
    warnings = [f"{key}: {warning}" for warning in written.warnings]
    if written.stored is not None:
        return success_response(msgspec.Raw(written.stored.encoded()), warnings, outcome=written.outcome)
    left: dict[str, Any] = {"kind": key.kind, "namespace": key.namespace, "name": key.name, "deleted": True}
    return success_response(left, warnings, outcome=written.outcome)


def _mapping(body: bytes, what: str) -> Document:
    return read_object(body, f"send {what}: one JSON object")


def _read(body: bytes, wanted: type[Any]) -> Any:
    fields = ", ".join(field.encode_name for field in msgspec.structs.fields(wanted))
    document = _mapping(body, f"an object with {fields}")
    try:
        return msgspec.convert(document, wanted)
    except msgspec.ValidationError as error:
        raise BadRequest(f"send an object with {fields}: {error}") from error
