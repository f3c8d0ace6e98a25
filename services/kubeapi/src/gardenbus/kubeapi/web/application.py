"""Routes requests: who sent them, what they are about, and within which limits they are handled."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

import structlog
from aiohttp import web

from gardenbus.common.api.document import Document
from gardenbus.common.errors import GardenbusError, NotFound
from gardenbus.common.runtime.health import HealthReport
from gardenbus.kubeapi import metrics
from gardenbus.kubeapi.access.impersonation import impersonated
from gardenbus.kubeapi.access.logins import Logins, Unauthenticated, User
from gardenbus.kubeapi.api_client import ImpersonatingClient
from gardenbus.kubeapi.domain import discovery, openapi
from gardenbus.kubeapi.domain.health_pages import OK, check_page, health_page
from gardenbus.kubeapi.domain.manifests import presented
from gardenbus.kubeapi.domain.negotiation import DISCOVERY, JSON, METADATA, TABLE, Accepted, accepted
from gardenbus.kubeapi.domain.request_info import RequestInfo, request_info
from gardenbus.kubeapi.domain.resources import REVIEWS
from gardenbus.kubeapi.domain.statuses import Rejected, status_of
from gardenbus.kubeapi.requests.client_events import ClientEvents
from gardenbus.kubeapi.requests.reads import Reads
from gardenbus.kubeapi.requests.responses import ApiRequest, ObjectResponse, object_response
from gardenbus.kubeapi.requests.reviews import Reviews
from gardenbus.kubeapi.requests.seed_leases import SeedLeases
from gardenbus.kubeapi.requests.subresources import Subresources
from gardenbus.kubeapi.requests.watches import WatchServer
from gardenbus.kubeapi.requests.writes import Writes
from gardenbus.kubeapi.watch.caches import Caches
from gardenbus.kubeapi.web.responses import encoded, rejection
from gardenbus.kubeapi.web.streaming import stream

MOST_BODY_BYTES = 3 * 1024 * 1024
BODY_SECONDS = 30.0

_HEALTH = frozenset({"healthz", "livez", "readyz"})
_ALIVE: Mapping[str, str] = {"ping": OK}
"""Checks of every page: there is a response."""
_log = structlog.stdlib.get_logger()

Readiness = Callable[[], Awaitable[HealthReport]]
"""Results of the checks of the process: it can do its work now, or why not."""


class Handlers(NamedTuple):
    """Handlers of requests about resources."""

    reads: Reads
    watches: WatchServer
    reviews: Reviews
    writes: Writes
    events: ClientEvents
    subresources: Subresources
    logins: Logins
    api: ImpersonatingClient
    seed_leases: SeedLeases


class KubeApplication:
    """One HTTP application; `handle` takes every request."""

    def __init__(
        self,
        handlers: Handlers,
        caches: Caches,
        visit: Callable[[], None],
        version: Document,
        *,
        most_requests: int,
        readiness: Readiness,
    ) -> None:
        self._handlers = handlers
        self._caches = caches
        self._visit = visit
        """To be called with the first request of a user: from then on the announcements are followed."""
        self._version = version
        self._most_requests = most_requests
        self._readiness = readiness
        self._in_flight = 0

    def application(self) -> web.Application:
        """As aiohttp serves it."""
        application = web.Application(client_max_size=MOST_BODY_BYTES)
        application.router.add_route("*", "/{path:.*}", self.handle)
        return application

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Respond to one request, whatever it is."""
        began = perf_counter()
        info: RequestInfo | None = None
        try:
            if (public := await self._public(request)) is not None:
                return public
            user = await self._user(request)
            if (found := _openapi(request) or self._documents(request)) is not None:
                return found if isinstance(found, web.Response) else await encoded(request, *found)
            info = request_info(request.method, request.path, request.query)
            response = await self._respond(request, info, user)
        except GardenbusError as error:
            response = self._rejected(error, info)
        except web.HTTPRequestEntityTooLarge:
            error = Rejected(413, "RequestEntityTooLarge", f"the body has more than {MOST_BODY_BYTES:,} bytes")
            response = self._rejected(error, info)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001 - every request gets a response, and the service goes on
            _log.exception("request.failed", path=request.path[:200])
            response = self._rejected(Rejected(500, "InternalError", f"an unexpected {type(error).__name__}"), info)
        if info is None or info.verb != "watch":
            verb = info.verb if info is not None else "other"
            metrics.REQUEST_SECONDS.labels(verb, response.status).observe(perf_counter() - began)
        return response

    async def _public(self, request: web.Request) -> web.Response | None:
        """Health and version, which are for everybody."""
        path = request.path.rstrip("/")
        endpoint, _, check = path[1:].partition("/")
        if endpoint in _HEALTH:
            return await self._health(request, endpoint, check)
        if path == "/version":
            return await encoded(request, object_response(self._version), Accepted())
        return None

    async def _health(self, request: web.Request, endpoint: str, check: str) -> web.Response:
        """A page of health. Without the bus a process is not ready, but alive: a start would not bring it back."""
        checks = _ALIVE if endpoint == "livez" else {**_ALIVE, **(await self._readiness()).checks}
        if check and check not in checks:
            raise NotFound("the server could not find the requested resource")
        query = {name: request.query.getall(name) for name in request.query}
        status, text = check_page(checks[check]) if check else health_page(endpoint, checks, query)
        return web.Response(status=status, text=text, headers={"X-Content-Type-Options": "nosniff"})

    async def _user(self, request: web.Request) -> User:
        transport = request.transport
        certificate: Mapping[str, Any] | None = transport.get_extra_info("peercert") if transport else None
        authorization = request.headers.get("Authorization", "")
        if self._handlers.logins.needs_revocations(authorization, certificate):
            await self._wait_for_revocations()
        user = await self._handlers.logins.user_of(authorization, certificate)
        if user is None:
            raise Unauthenticated("Unauthorized")
        self._visit()
        return await impersonated(user, [*request.headers.items()], self._handlers.api)

    async def _wait_for_revocations(self) -> None:
        """Wait until the revocations of certificates have been read. Raises Unavailable."""
        if not self._caches.objects.synced:
            self._visit()
            await self._caches.until_read(self._caches.objects)

    def _documents(self, request: web.Request) -> tuple[ObjectResponse, Accepted] | None:
        """Discovery, None where the path is about a resource."""
        parts = request.path.strip("/").split("/")
        form = accepted(request.headers.get("Accept", ""), DISCOVERY, TABLE, METADATA)
        plain = form if not form.form else Accepted(form.media_type)
        match parts:
            case ["api"] | ["apis"] if form.form == DISCOVERY:
                return object_response(discovery.aggregated(form.version, core=parts == ["api"])), form
            case ["api"]:
                found: Document | None = discovery.api_versions(request.host)
            case ["apis"]:
                found = discovery.group_list()
            case ["api", version]:
                found = discovery.resource_list("", version)
            case ["apis", group]:
                found = discovery.group(group)
            case ["apis", group, version]:
                found = discovery.resource_list(group, version)
            case _:
                return None
        if found is None:
            raise NotFound("the server could not find the requested resource")
        return object_response(found), plain

    async def _respond(self, request: web.Request, info: RequestInfo, user: User) -> web.StreamResponse:
        form = accepted(request.headers.get("Accept", ""), TABLE, METADATA)
        if info.verb == "watch":
            api_request = ApiRequest(info, user, form)
            return await stream(request, self._handlers.watches, api_request)
        if self._in_flight >= self._most_requests:
            metrics.REJECTED.inc()
            raise Rejected(429, "TooManyRequests", "there are too many requests at the same time: try again")
        self._in_flight += 1
        try:
            api_request = ApiRequest(info, user, form, await _body(request), request.headers.get("Content-Type", ""))
            found = await self._handled(api_request)
            found = found._replace(body=presented(found.body))
            return await encoded(request, found, form if form.form == "" else Accepted())
        finally:
            self._in_flight -= 1

    async def _handled(self, request: ApiRequest) -> ObjectResponse:
        info, handlers = request.info, self._handlers
        if info.resource.plural in REVIEWS and info.resource is REVIEWS[info.resource.plural]:
            return await handlers.reviews.create(request)
        if info.subresource is not None and (found := await handlers.subresources.handle(request)) is not None:
            return found
        if info.resource.singular == "event" and info.verb in ("create", "update", "patch"):
            return await handlers.events.record(request)
        if handlers.seed_leases.concern(request):
            return await handlers.seed_leases.write(request)
        by_verb: Mapping[str, Callable[[ApiRequest], Awaitable[ObjectResponse]]] = {
            "get": handlers.reads.get,
            "list": handlers.reads.list,
            "create": handlers.writes.create,
            "update": handlers.writes.update,
            "patch": handlers.writes.patch,
            "delete": handlers.writes.delete,
            "deletecollection": handlers.writes.delete_collection,
        }
        return await by_verb[info.verb](request)

    @staticmethod
    def _rejected(error: GardenbusError, info: RequestInfo | None) -> web.Response:
        status = status_of(error, info.resource, info.name) if info is not None else status_of(error)
        return rejection(error, status)


async def _body(request: web.Request) -> bytes:
    if not request.body_exists:
        return b""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except TimeoutError as error:
        raise Rejected(408, "Timeout", f"the body did not come within {BODY_SECONDS:g} s") from error


def _openapi(request: web.Request) -> web.Response | tuple[ObjectResponse, Accepted] | None:
    path = request.path.rstrip("/")
    if path == "/openapi/v3":
        return object_response(openapi.index()), Accepted()
    if path == "/openapi/v2":
        if openapi.SECOND not in request.headers.get("Accept", ""):
            raise Rejected(406, "NotAcceptable", f"only {openapi.SECOND} is served here; schemas are in /openapi/v3")
        return web.Response(body=openapi.second(), headers={"Content-Type": openapi.SECOND.replace("@", ".")})
    if not path.startswith("/openapi/v3/"):
        return None
    try:
        body = openapi.document(path.removeprefix("/openapi/v3/"))
    except KeyError:
        return None
    headers = {"Content-Type": JSON}
    if "hash" in request.query:
        headers["Cache-Control"] = "public, immutable, max-age=31536000"
    return web.Response(body=body, headers=headers)
