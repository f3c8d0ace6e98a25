"""A Kubernetes API over a landscape in memory: apiserver and relay on one bus, and requests over HTTP."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from aiohttp.test_utils import TestClient, TestServer

from gardenbus.apiserver.access.audit_log import AuditLog
from gardenbus.apiserver.access.authorizer import Authorizer
from gardenbus.apiserver.domain.request_subjects import api_filters
from gardenbus.apiserver.registry.read_cache import ManifestCache
from gardenbus.apiserver.registry.seed_binder import SeedBinder
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.apiserver.requests.api import ApiHandler
from gardenbus.common.adapters.nats.credentials import Login
from gardenbus.common.api.identity.revocations import Revocations
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import CredentialsRejected
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.health import Health
from gardenbus.kubeapi.access.authorizer import DelegatingAuthorizer
from gardenbus.kubeapi.access.logins import IdTokenAuthenticator, Logins
from gardenbus.kubeapi.api_client import ImpersonatingClient
from gardenbus.kubeapi.requests.client_events import ClientEvents
from gardenbus.kubeapi.requests.reads import Reads
from gardenbus.kubeapi.requests.reviews import Reviews
from gardenbus.kubeapi.requests.seed_leases import SeedLeases
from gardenbus.kubeapi.requests.subresources import Subresources
from gardenbus.kubeapi.requests.watches import WatchServer
from gardenbus.kubeapi.requests.writes import Writes
from gardenbus.kubeapi.watch.barrier import Barrier
from gardenbus.kubeapi.watch.cacher import Cacher
from gardenbus.kubeapi.watch.caches import Caches
from gardenbus.kubeapi.watch.seed_leases import SeedLeaseCaches
from gardenbus.kubeapi.watch.updater import EventsUpdater, ObjectsUpdater
from gardenbus.kubeapi.web.application import Handlers, KubeApplication
from gardenbus.relay.relay import Relay, RelaySettings
from gardenbus.relay.settled import SettledRequests
from tests.support.memory.bus import MemoryBus, MemoryServer
from tests.support.memory.outbox import MemoryOutbox
from tests.support.memory.store import MemoryStore

SUBJECTS = Subjects()
PASSWORD = "right"


class KubeApi:
    """Requests of users over HTTP."""

    def __init__(
        self,
        client: "TestClient[Any, Any]",
        store: MemoryStore,
        watches: WatchServer,
        revoked: set[str],
        logins: Logins,
        bus: MemoryBus,
        *,
        relaying: "asyncio.Task[None]",
    ) -> None:
        self._relaying = relaying
        self.client = client
        self.bus = bus
        """The connection of the service and of the apiserver."""
        self.server = bus.server
        self.store = store
        self.watches = watches
        self.logins = logins
        self.revoked = revoked
        """Users whose passwords are not valid any more."""

    async def stop_relay(self) -> None:
        """End the relay, which would open a store that is closed."""
        self._relaying.cancel()
        await asyncio.gather(self._relaying, return_exceptions=True)

    def request(self, method: str, path: str, *, user: str = "operator", **options: Any) -> Any:
        """Send a request as a user ("" is nobody)."""
        token = {"Authorization": f'Bearer {{"user":"{user}","password":"{PASSWORD}"}}'} if user else {}
        return self.client.request(method, path, headers={**token, **options.pop("headers", {})}, **options)


@contextlib.asynccontextmanager
async def a_kube_api(
    *, most_requests: int = 10, most_watches: int = 10, named_by: IdTokenAuthenticator | None = None
) -> AsyncGenerator[KubeApi]:
    """A Kubernetes API; everybody's password is PASSWORD."""
    clock = SystemClock()
    server = MemoryServer(clock)
    store = MemoryStore(clock, is_open=True)
    bus = MemoryBus(clock, server=server)
    await bus.ensure_streams()
    handler = ApiHandler(
        bus=bus,
        store=store,
        clock=clock,
        subjects=SUBJECTS,
        writer=Writer(store, clock, None),
        seed_binder=SeedBinder(store, clock),
        manifests=ManifestCache(store),
        authorizer=Authorizer(store, AuditLog(clock), is_enforced=True),
        concurrency=8,
    )
    await bus.serve("apiserver", "1.0.0", dict.fromkeys(api_filters(SUBJECTS), handler.handle))
    outbox = MemoryOutbox(store)

    async def times() -> tuple[int, int | None]:
        page = await outbox.head(1)
        return 0, 0 if page.entries else None

    settled = SettledRequests(times, lambda: bus.position("OBJECTS"), clock)
    await bus.serve("relay", "1.0.0", {SUBJECTS.settled: settled.handle})
    relay = Relay(outbox, MemoryBus(clock, server=server), SUBJECTS, clock, RelaySettings(idle_seconds=0.01))
    caches = Caches(Cacher(clock.now), Cacher(clock.now))
    api = ImpersonatingClient(bus, SUBJECTS)

    async def fetched(_key: object) -> bytes | None:
        return None

    revoked: set[str] = set()

    async def check(login: Login) -> None:
        if login.password != PASSWORD or login.user in revoked:
            raise CredentialsRejected("user or password is wrong")

    objects = ObjectsUpdater(bus, SUBJECTS, caches.objects, fetched, caches.note_moved)
    logins = Logins(check, Revocations, clock, named_by)
    authorizer = DelegatingAuthorizer(api, clock)
    seed_leases = SeedLeaseCaches(bus, SUBJECTS, caches, clock.now)
    watches = WatchServer(authorizer, logins, caches, seed_leases, clock.now, most=most_watches)
    reads = Reads(api, authorizer, caches, clock.now, Barrier(bus, SUBJECTS, caches, objects))
    handlers = Handlers(
        reads,
        watches,
        Reviews(api, logins),
        Writes(api, reads, clock.now),
        ClientEvents(api, caches),
        Subresources(api),
        logins,
        api,
        SeedLeases(bus, SUBJECTS, clock.now),
    )
    health = Health()
    health.add_readiness("nats", lambda: None if bus.connected else "not connected")
    application = KubeApplication(
        handlers,
        caches,
        lambda: None,
        {"gitVersion": "v1.34.4"},
        most_requests=most_requests,
        readiness=health.readyz,
    )
    tasks = [
        asyncio.create_task(each)
        for each in (relay.run(), objects.run(), EventsUpdater(bus, SUBJECTS, caches.events).run(), watches.run())
    ]
    try:
        async with TestClient(TestServer(application.application())) as client:
            yield KubeApi(client, store, watches, revoked, logins, bus, relaying=tasks[0])
            await watches.stop()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
