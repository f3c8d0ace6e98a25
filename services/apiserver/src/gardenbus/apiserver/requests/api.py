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
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import structlog

from gardenbus.apiserver import spans
from gardenbus.apiserver.access.authorizer import AccessGrant, Authorizer
from gardenbus.apiserver.access.rejection_log import RejectionLog
from gardenbus.apiserver.access.request_actions import action_of
from gardenbus.apiserver.access.request_slots import RequestSlots
from gardenbus.apiserver.call import Call, RequestOptions
from gardenbus.apiserver.domain.authorization.actions import UNLIMITED, Action, Requester
from gardenbus.apiserver.domain.fair_slots import lane_of
from gardenbus.apiserver.domain.field_validation import validation_of
from gardenbus.apiserver.domain.in_flight import BYTES, REQUESTS, InFlight
from gardenbus.apiserver.domain.request_subjects import RequestSubject, parse_request_subject, unknown_verb
from gardenbus.apiserver.domain.responses import RequestResponse, error_response, success_response
from gardenbus.apiserver.domain.senders import UserOf, as_stated, check_sender
from gardenbus.apiserver.metrics import OVER_BUDGET, REQUEST_SECONDS
from gardenbus.apiserver.registry.dry_run import EXPLAIN, explains, is_dry_run
from gardenbus.apiserver.registry.preconditions import precondition_of
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import UnmetDependency, cause_of
from gardenbus.apiserver.registry.seed_binder import SeedBinder
from gardenbus.apiserver.registry.stored_names import StoredNames
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.apiserver.requests.access_reviews import AccessReviews
from gardenbus.apiserver.requests.admin_kubeconfigs import AdminKubeconfigs
from gardenbus.apiserver.requests.bootstrap_tokens import BootstrapTokens
from gardenbus.apiserver.requests.events import EventRequests
from gardenbus.apiserver.requests.queries import ObjectReader
from gardenbus.apiserver.requests.recoveries import RecoveryRequests
from gardenbus.apiserver.requests.signing_requests import SigningRequests
from gardenbus.apiserver.requests.statuses import StatusRequests
from gardenbus.apiserver.requests.stored_rules import StoredRules
from gardenbus.apiserver.requests.stream_positions import StreamPositions
from gardenbus.apiserver.requests.unknown_objects import UnknownObjects
from gardenbus.apiserver.requests.unschedulable import UnschedulableShoots
from gardenbus.apiserver.requests.watches import WATCHES, Watches
from gardenbus.apiserver.requests.writes import WriteRequests
from gardenbus.common.api.budgets import OverBudget
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.keys import Header, Subjects
from gardenbus.common.api.verbs import VERBS, Verb, verb_of
from gardenbus.common.controller.budget_settings import BudgetOf, default_budget
from gardenbus.common.controller.budget_use import BudgetUse
from gardenbus.common.controller.reconcile_ids import current_reconcile_id
from gardenbus.common.controller.shared_query import SharedQuery
from gardenbus.common.controller.stream_incarnation import StreamIncarnation
from gardenbus.common.errors import BadRequest, GardenbusError, NotFound, Terminal, Unavailable
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Bus, Headers, Request, StreamPosition
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store

_log = structlog.stdlib.get_logger()

_WATCH = "watch"
_FIRST_WORDS = frozenset(name.partition(".")[0] for name in VERBS)
_INSTEAD: dict[str, str] = dict.fromkeys(("bind", "retry"), ": `explain` shows which seeds would accept the shoot")

CallHandler = Callable[[Call], Awaitable[Any]]


def handlers_of(*owners: object) -> Mapping[str, CallHandler]:
    """The handler of each verb: the only method `on_<verb>` of the owners. Raises ValueError where there is none."""
    found: dict[str, CallHandler] = {}
    for name in VERBS:
        method = f"on_{name.replace('-', '_').replace('.', '_')}"
        (found[name],) = (getattr(owner, method) for owner in owners if hasattr(owner, method))
    return found


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
        self._names = StoredNames(self.store)
        watches = Watches(self.bus, self.subjects, self.authorizer, self.budget_of)
        incarnation = StreamIncarnation(self.bus, self.store, self.subjects.stream("REQUESTS"))
        self._handlers = handlers_of(
            WriteRequests(
                store=self.store,
                clock=self.clock,
                writer=self.writer,
                seed_binder=self.seed_binder,
                manifests=self.manifests,
                authorizer=self.authorizer,
                position=SharedQuery(partial(_position_of_requests, incarnation)),
            ),
            StatusRequests(self.store, self.clock, self.authorizer),
            EventRequests(self.store, self.authorizer),
            ObjectReader(self.store, self.bus, self.subjects),
            AccessReviews(self.authorizer, self.store),
            UnschedulableShoots(self.store, self.bus, self.subjects),
            UnknownObjects(self.store),
            StoredRules(self.store),
            RecoveryRequests(self.store),
            StreamPositions(self.bus, self.subjects),
            SigningRequests(self.store, self.clock, self.writer),
            BootstrapTokens(self.clock, self.writer),
            AdminKubeconfigs(self.store, self.bus, self.subjects),
            watches,
        )
        self._slots = RequestSlots(self.concurrency)
        self._in_flight = InFlight()
        self.use = BudgetUse(self.budget_of)
        """Use of the budgets that are counted here."""
        self._rejections = RejectionLog(self.clock.monotonic)
        for limit in (BYTES, REQUESTS):
            self.use.count(limit, partial(self._in_flight.held, limit))
        self.use.count(WATCHES, lambda: watches.running)

    async def handle(self, request: Request) -> bytes:
        """Respond to one request, whatever it is; never raises."""
        try:
            sender = parse_request_subject(request.subject, self.subjects)
            check_sender(request.headers, sender.user, self.user_of)
        except Terminal as error:
            return error_response(error).encoded()
        tail = sender.tail.removeprefix("api.")
        verb = tail.partition(".")[0]
        began = asyncio.get_running_loop().time()
        span = spans.api_request(verb, request.headers)
        try:
            async with self._within_budget(verb, sender, request):
                requester = self.authorizer.requester(sender, request.headers, uuid4().hex)
                options = _options_of(requester, request.headers)
                if span is tracing.NOT_TRACED:
                    response = await self._respond(tail, request.body, options)
                else:
                    with tracing.within(span.traceparent):
                        response = await self._respond(tail, request.body, options)
        except OverBudget as error:
            OVER_BUDGET.labels(error.limit).inc()
            response = error_response(error)
        except (UnmetDependency, GardenbusError) as error:
            response = error_response(cause_of(error))
        except Exception as error:  # noqa: BLE001 - every requester gets a response, and the service goes on
            _log.exception("request.failed", verb=verb, subject=request.subject)
            where = f"gardenbus logs --grep {current_reconcile_id()}"
            response = error_response(Unavailable(f"an unexpected error: {type(error).__name__}; its log: {where}"))
        code = 200 if response.ok else response.error["code"]
        if not response.ok:
            self._rejections.record(response, tail=tail, user=sender.user)
        if span is not tracing.NOT_TRACED:
            span.end(failed="" if response.ok else response.error["message"], code=code)
            _log.info("request.handled", subject=request.subject, code=code, **tracing.fields(span.traceparent))
        if verb != _WATCH:  # it takes as long as nothing changes
            REQUEST_SECONDS.labels(verb if verb in _FIRST_WORDS else "other", code).observe(
                asyncio.get_running_loop().time() - began
            )
        return response.encoded()

    @contextlib.asynccontextmanager
    async def _within_budget(self, verb: str, sender: RequestSubject, request: Request) -> AsyncGenerator[None]:
        """Count a request while it is in flight, and work on it in its turn. Raises OverBudget."""
        size, user = len(request.body), sender.user
        is_insider = self.authorizer.comes_from_services(sender, request.headers)
        lane = lane_of(user, is_insider=is_insider)
        is_watch = verb == _WATCH  # it waits, and works little
        requests = 0 if is_watch or lane == "insiders" else 1
        with self._in_flight.counted(user, size, self.budget_of(user), requests=requests):
            if is_watch:
                yield
                return
            async with self._slots.held(lane, user, size):
                yield

    async def _respond(self, tail: str, body: bytes, options: RequestOptions) -> RequestResponse:
        verb, rest = verb_of(tail)
        if verb is None:
            raise unknown_verb(tail.partition(".")[0])
        granted = await self._authorized(verb, rest, body, options)
        _check_dry_run(verb, options)
        is_operator = granted.is_operators if self.authorizer.is_enforced else options.requester.is_insider
        call = Call(verb, rest, body, options, granted, self._reads(), is_operator)
        result = await self._handlers[verb.name](call)
        return result if isinstance(result, RequestResponse) else success_response(result)

    async def _authorized(self, verb: Verb, tail: str, body: bytes, options: RequestOptions) -> AccessGrant:
        """Authorize a request, unless that is done object by object. Raises Forbidden, and what reading it raises."""
        requester, reads = options.requester, self._reads()
        is_decided = self.authorizer.decides_on(requester)
        if is_decided and options.condition is not None:
            await self.authorizer.permit(requester, Action.on("get", options.condition.key), reads)
        action = await action_of(verb, tail, body, self._names) if is_decided or verb.privileged else Action(verb.name)
        if action is None:
            return AccessGrant(requester, Action(verb.name), UNLIMITED, None)
        return await self.authorizer.grant(requester, action, reads)

    def _reads(self) -> ReadCache:
        return ReadCache(self.store, self.manifests)


def _check_dry_run(verb: Verb, options: RequestOptions) -> None:
    """Raise BadRequest for a dry run of what has none, or none that explains."""
    if options.is_dry_run and not verb.has_dry_run:
        raise BadRequest(f"{Header.DRY_RUN}: {verb.name} has none" + _INSTEAD.get(verb.name, ""))
    if verb.name != "apply" and explains(options.headers):
        raise BadRequest(f"{Header.DRY_RUN}: {EXPLAIN} is for apply, not for {verb.name}")


def _options_of(requester: Requester, headers: Headers) -> RequestOptions:
    validation = validation_of(headers, FieldValidation.STRICT)
    return RequestOptions(requester, precondition_of(headers), is_dry_run(headers), validation, headers)


async def _position_of_requests(incarnation: StreamIncarnation) -> StreamPosition:
    """Position of the stream of durable requests. Raises Unavailable, too, while it is gone: it is created anew."""
    try:
        return await incarnation.position()
    except NotFound as error:
        raise Unavailable(f"the stream of requests is not there: {error.message}") from error
