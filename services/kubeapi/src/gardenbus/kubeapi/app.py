"""Wires the Kubernetes API: caches and what feeds them, logins and authorizer, handlers, and the HTTPS server.

Until the first request of somebody who is logged in it only listens: then the announcements are read, and followed.
"""

import asyncio
import socket
from collections.abc import Awaitable
from pathlib import Path

import aiohttp
import structlog

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.identity.revocations import REVOCATIONS, Revocations, read_revocations
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.errors import GardenbusError, SettingsInvalid, Unavailable
from gardenbus.common.ports.bus import Bus
from gardenbus.common.runtime.bus_connection import connect_bus, identity_of
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.kubeapi import metrics
from gardenbus.kubeapi.access.authorizer import DelegatingAuthorizer
from gardenbus.kubeapi.access.logins import IdTokenAuthenticator, Logins, nats_check
from gardenbus.kubeapi.api_client import ImpersonatingClient
from gardenbus.kubeapi.domain.acting_users import ActingUser
from gardenbus.kubeapi.requests.client_events import ClientEvents
from gardenbus.kubeapi.requests.reads import Reads
from gardenbus.kubeapi.requests.reviews import Reviews
from gardenbus.kubeapi.requests.seed_leases import SeedLeases
from gardenbus.kubeapi.requests.subresources import Subresources
from gardenbus.kubeapi.requests.watches import WatchServer
from gardenbus.kubeapi.requests.writes import Writes
from gardenbus.kubeapi.settings import KubeApiSettings
from gardenbus.kubeapi.watch.barrier import Barrier
from gardenbus.kubeapi.watch.cacher import Cacher
from gardenbus.kubeapi.watch.caches import Caches
from gardenbus.kubeapi.watch.seed_leases import SeedLeaseCaches
from gardenbus.kubeapi.watch.updater import EventsUpdater, ObjectsUpdater
from gardenbus.kubeapi.web.application import Handlers, KubeApplication
from gardenbus.kubeapi.web.server import HttpsServer, listen_on
from gardenbus.kubeapi.web.tls import server_context

STREAMS = ("OBJECTS", "EVENTS")
"""Followed streams; others create them."""

OWN_USER = ActingUser("kubeapi")
"""The service itself, for what it reads."""

KUBERNETES = ("1", "34", "v1.34.4")
"""Version of Kubernetes whose protocol is spoken: clients choose by it what they send."""

_log = structlog.stdlib.get_logger()


async def build(context: ServiceContext[KubeApiSettings]) -> None:
    """Connect to the bus, as soon as it and its streams are there, and start."""
    bus, subjects = await connect_bus(context, manages_streams=False, awaited_streams=STREAMS)
    await start_kubeapi(context, bus=bus, subjects=subjects)


async def start_kubeapi(context: ServiceContext[KubeApiSettings], *, bus: Bus, subjects: Subjects) -> int:
    """Start everything on the context's tasks; returns the port. Raises SettingsInvalid."""
    settings, clock = context.settings, context.clock
    tls = server_context(Path(settings.kubeapi_certificate), Path(settings.kubeapi_key), settings.kubeapi_client_ca)
    listening = _listening(settings)
    context.stack.callback(listening.close)
    api = ImpersonatingClient(bus, subjects)
    caches = Caches(Cacher(clock.now), Cacher(clock.now))
    metrics.OBJECTS.set_function(lambda: caches.objects.count)
    visited = asyncio.Event()
    barrier = _follow(context, bus, subjects, api, caches, visited)
    name = f"kubeapi-login-{context.instance}"
    check = nats_check(settings.nats_url, name, settings.nats_ca or None)
    logins = Logins(check, _Revoked(caches.objects).now, clock, await _id_tokens(context))
    authorizer = DelegatingAuthorizer(api, clock)
    seed_leases = SeedLeaseCaches(bus, subjects, caches, clock.now)
    watches = WatchServer(authorizer, logins, caches, seed_leases, clock.now, most=settings.kubeapi_watches)
    context.spawn("reviews", _after(visited, watches.run()))
    reads = Reads(api, authorizer, caches, clock.now, barrier)
    application = KubeApplication(
        Handlers(
            reads,
            watches,
            Reviews(api, logins),
            Writes(api, reads, clock.now),
            ClientEvents(api, caches),
            Subresources(api),
            logins,
            api,
            SeedLeases(bus, subjects, clock.now),
        ),
        caches,
        visited.set,
        _version(context),
        most_requests=settings.kubeapi_requests,
        readiness=context.health.readyz,
    )
    server = HttpsServer(application.application(), listening, tls)

    async def stop() -> None:
        await watches.stop()
        await server.stop()

    context.on_stop("https", stop)
    await server.start()
    port: int = listening.getsockname()[1]
    _log.info("kubeapi.started", url=f"https://{settings.kubeapi_host}:{port}")
    return port


def _listening(settings: KubeApiSettings) -> socket.socket:
    try:
        return listen_on(settings.kubeapi_host, settings.kubeapi_port)
    except OSError as error:
        place = f"{settings.kubeapi_host}:{settings.kubeapi_port}"
        raise SettingsInvalid((f"kubeapi_port: cannot listen on {place}: {error.strerror}",)) from error


async def _id_tokens(context: ServiceContext[KubeApiSettings]) -> IdTokenAuthenticator | None:
    """The provider of the settings; None without one. Raises SettingsInvalid."""
    settings = context.settings
    if not settings.kubeapi_oidc_issuer:
        return None
    from gardenbus.kubeapi.access.id_tokens import (  # noqa: PLC0415 - what it takes is loaded where it is used
        IdTokenIssuer,
        IdTokens,
        provider_reader,
    )

    issuer = IdTokenIssuer(
        settings.kubeapi_oidc_issuer,
        settings.kubeapi_oidc_client_id,
        settings.kubeapi_oidc_user_claim,
        settings.kubeapi_oidc_groups_claim,
    )
    session = await context.stack.enter_async_context(aiohttp.ClientSession())
    return IdTokens(issuer, provider_reader(session, settings.kubeapi_oidc_ca), context.clock).named


def _follow(
    context: ServiceContext[KubeApiSettings],
    bus: Bus,
    subjects: Subjects,
    api: ImpersonatingClient,
    caches: Caches,
    visited: asyncio.Event,
) -> Barrier:
    async def fetched(key: ObjectKey) -> bytes | None:
        try:
            return (await api.request(OWN_USER, f"get.{key.tail}")).body
        except GardenbusError:
            return None  # gone meanwhile, or announced again when the API is back

    objects = ObjectsUpdater(bus, subjects, caches.objects, fetched, caches.note_moved)
    context.spawn("objects", _after(visited, objects.run()))
    context.spawn("events", _after(visited, EventsUpdater(bus, subjects, caches.events).run()))
    return Barrier(bus, subjects, caches, objects)


async def _after(visited: asyncio.Event, work: Awaitable[object]) -> None:
    await visited.wait()
    await work


class _Revoked:
    """Revocations, read again when their ConfigMap is another."""

    def __init__(self, cache: Cacher) -> None:
        self._cache = cache
        self._version = 0
        self._found = Revocations()

    def now(self) -> Revocations:
        """The revocations; what was revoked stays so while the ConfigMap cannot be read. Raises Unavailable."""
        if not self._cache.synced:
            raise Unavailable("the announcements have not been read yet: try again")
        stored = self._cache.get(REVOCATIONS)
        version = stored.version if stored is not None else 0
        if version != self._version:
            lines = section(stored.document(), "data") if stored is not None else {}
            self._found = read_revocations({name: str(line) for name, line in lines.items()})
            self._version = version
        return self._found


def _version(context: ServiceContext[KubeApiSettings]) -> Document:
    major, minor, version = KUBERNETES
    return {
        "major": major,
        "minor": minor,
        "gitVersion": version,
        "gitCommit": f"gardenbus-{identity_of('kubeapi', context.instance, context.settings.prefix).version}",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }
