"""A dashboard over a bus in memory, requested without sockets."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.ports.bus import Message as BusMessage
from gardenbus.common.ports.clock import Clock
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.settings import DashboardSettings
from gardenbus.dashboard.watch.history import HistoryCache
from gardenbus.dashboard.watch.landscape import DashboardCache
from gardenbus.dashboard.watch.operations import AdminConnection, OperationsApi, OperationsCache
from gardenbus.dashboard.watch.session_registry import SessionRegistry
from gardenbus.dashboard.watch.updater import CacheUpdater
from gardenbus.dashboard.web.application import application, landscape_views
from gardenbus.dashboard.web.change_feed import ChangeFeed
from gardenbus.dashboard.web.oidc import OpenIdConnect, Provider
from gardenbus.dashboard.web.sessions import Sessions
from tests.support.memory.bus import MemoryBus, MemoryServer

TOKEN = "the-token"


class HttpResponse(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Dashboard:
    """Its parts, on a bus in memory that responds to `garden.api.` from `replies` (by tail); `requests` records."""

    def __init__(
        self,
        settings: DashboardSettings | None = None,
        *,
        key: bytes | None = None,
        provider: Provider | None = None,
        clock: Clock | None = None,
        server: MemoryServer | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.subjects = Subjects()
        self.bus = MemoryBus(self.clock, server=server or MemoryServer(self.clock))
        self.cache = DashboardCache()
        self.api = GardenApiClient(self.bus, self.subjects)
        self.registry = SessionRegistry(self.bus, self.subjects, self.api, self.clock)
        sessions = None if key is None else Sessions(key, self.clock, self.registry)
        self.changes = ChangeFeed(self.cache, self.clock, "epoch")
        self.updater = CacheUpdater(self.bus, self.subjects, self.cache, self.api)
        self.admin = AdminConnection()
        self.history = HistoryCache(self.bus, self.subjects, self.clock)
        self.views = landscape_views(
            settings or DashboardSettings(),
            cache=self.cache,
            api=self.api,
            changes=self.changes,
            operations=OperationsCache(OperationsApi(self.api, self.cache), self.admin, self.clock),
            history=self.history,
            clock=self.clock,
            sessions=sessions,
        )
        self.app = application(
            settings or DashboardSettings(),
            api=self.api,
            views=self.views,
            clock=self.clock,
            token=TOKEN,
            sessions=sessions,
            sign_on=None if provider is None or sessions is None else OpenIdConnect(provider, sessions, self.clock),
        )
        self.replies: dict[str, Any] = {}
        self.requests: list[tuple[str, Any]] = []

    async def serve_api(self) -> None:
        """Serve the API on the bus."""

        async def handle(request: Any) -> bytes:
            tail = request.subject.partition("api.")[2]
            self.requests.append((request.subject, json.loads(request.body) if request.body else None))
            if tail not in self.replies:
                error = {"code": 404, "reason": "NotFound", "message": f"{tail} not found"}
                return json.dumps({"ok": False, "error": error}).encode()
            return json.dumps({"ok": True, "result": self.replies[tail]}).encode()

        await self.bus.serve("api", "1.0.0", {"garden.api.>": handle, "garden.as.*.api.>": handle})

    async def follow_sessions(self) -> None:
        """Have the registry of sessions follow the bus, for the rest of the test."""
        self._following = asyncio.create_task(self.registry.run())
        await self.registry.until_current()

    def put(self, *documents: Document) -> None:
        """Put objects into the cache."""
        for document in documents:
            self.cache.put(key_of(document), document, self.clock.now())

    async def announce(self, document: Document, *, version: int = 1, verb: str = "added") -> None:
        """Announce a change as the relay does."""
        headers = {Header.VERSION: str(version), Header.UID: "u", Header.VERB: verb}
        body = b"" if verb == "deleted" else json.dumps(document).encode()
        await self.bus.publish(BusMessage(self.subjects.changed(key_of(document)), body, headers))

    async def get(self, path: str, **headers: str) -> HttpResponse:
        return await send_request(self.app, path, headers=headers)

    async def send(self, method: str, path: str, body: object = None, **headers: str) -> HttpResponse:
        payload = b"" if body is None else json.dumps(body).encode()
        return await send_request(self.app, path, method=method, body=payload, headers=headers)


def key_of(document: Document) -> ObjectKey:
    metadata = document["metadata"]
    return ObjectKey(document["kind"].lower(), metadata.get("namespace") or "", metadata["name"])


def scope_of(path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    parts = urlsplit(path)
    given = {"host": "127.0.0.1:8080"} | {name.replace("_", "-"): value for name, value in (headers or {}).items()}
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": parts.path,
        "raw_path": parts.path.encode(),
        "root_path": "",
        "query_string": parts.query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
        "server": ("127.0.0.1", 8080),
        "client": ("127.0.0.1", 40000),
        "state": {},
    }


async def send_request(
    app: ASGIApp, path: str, *, method: str = "GET", body: bytes = b"", headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """Send one request and return the whole response."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope_of(path, method=method, headers=headers), receive, send)
    start = sent[0]
    shown = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return HttpResponse(start["status"], shown, b"".join(each.get("body", b"") for each in sent[1:]))
