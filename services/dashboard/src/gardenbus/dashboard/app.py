"""Wires the dashboard: cache, cache updater, change feed, and HTTP server.

Until the first visit it costs next to nothing: it listens, and follows only autoscalers (their history is stored
nowhere else). With the first visit the landscape is read and the HTTP server loaded.
"""

import secrets
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from prometheus_client import Counter, Gauge

from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.clock import Clock
from gardenbus.common.runtime.bus_connection import connect_bus, nats_credentials
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.settings import DashboardSettings
from gardenbus.dashboard.watch.landscape import DashboardCache
from gardenbus.dashboard.watch.updater import CacheUpdater, keep_orders, record_fills
from gardenbus.dashboard.web.address import Address, first_visit, listen_on
from gardenbus.dashboard.web.change_feed import ChangeFeed
from gardenbus.diagnostics.login_keys import read_key

if TYPE_CHECKING:
    from gardenbus.dashboard.watch.session_registry import SessionRegistry
    from gardenbus.dashboard.web.login_handlers import SignOn
    from gardenbus.dashboard.web.sessions import Sessions

_log = structlog.stdlib.get_logger()

STREAMS = ("OBJECTS", "LEASES", "EVENTS")
"""Followed streams; others create them."""

BROWSERS = Gauge("gardenbus_dashboard_browsers", "Browsers that follow the changes")
SLOW = Counter("gardenbus_dashboard_slow_browsers", "Browsers that were cut off because they did not read")


async def build(context: ServiceContext[DashboardSettings]) -> None:
    """Connect to the bus, as soon as it and its streams are there, and start."""
    bus, subjects = await connect_bus(context, manages_streams=False, awaited_streams=STREAMS)
    start_dashboard(context, bus=bus, subjects=subjects)


def start_dashboard(context: ServiceContext[DashboardSettings], *, bus: Bus, subjects: Subjects) -> str:
    """Start everything on the context's tasks; returns the page's address.

    Raises SettingsInvalid when the address is in use.
    """
    settings, cache, api = context.settings, DashboardCache(), GardenApiClient(bus, subjects)
    key = read_key(Path(settings.dashboard_key_file)) if settings.dashboard_key_file else None
    changes = ChangeFeed(cache, context.clock, secrets.token_hex(4), on_slow_listener=SLOW.inc)
    BROWSERS.set_function(lambda: changes.listeners)
    try:
        address = listen_on(settings.dashboard_host, settings.dashboard_port)
    except OSError as error:
        place = f"{settings.dashboard_host}:{settings.dashboard_port}"
        raise SettingsInvalid((f"dashboard_port: cannot listen on {place}: {error.strerror}",)) from error
    context.stack.callback(address.socket.close)
    updater = CacheUpdater(bus, subjects, cache, api)
    context.spawn("autoscalers", updater.run_autoscalers())
    context.spawn("http", _serve(context, address, cache=cache, api=api, changes=changes, updater=updater, key=key))
    has_login = key is not None
    _log.info("dashboard.started", url=address.url, allow_writes=settings.dashboard_allow_writes, has_login=has_login)
    return address.url


async def _serve(  # noqa: PLR0913 - the parts of a dashboard
    context: ServiceContext[DashboardSettings],
    address: Address,
    *,
    cache: DashboardCache,
    api: GardenApiClient,
    changes: ChangeFeed,
    updater: CacheUpdater,
    key: bytes | None,
) -> None:
    """Wait for the first visit; then follow the landscape and serve."""
    await first_visit(address)
    _follow(context, cache, changes, updater)
    from gardenbus.dashboard.watch.history import HistoryCache  # noqa: PLC0415 - as below
    from gardenbus.dashboard.watch.operations import AdminConnection, OperationsApi, OperationsCache  # noqa: PLC0415 - as below
    from gardenbus.dashboard.watch.session_registry import SessionRegistry  # noqa: PLC0415 - as below
    from gardenbus.dashboard.web.application import application, landscape_views  # noqa: PLC0415 - loaded when it is wanted
    from gardenbus.dashboard.web.server import HttpServer  # noqa: PLC0415 - as above

    admin = AdminConnection()
    context.spawn("admin", admin.run(context.settings.nats_url, nats_credentials(context.settings, context.name)))
    operations = OperationsCache(OperationsApi(api, cache), admin, context.clock)
    parts = partial(landscape_views, context.settings, cache=cache, api=api, changes=changes, clock=context.clock)
    history = HistoryCache(api.bus, api.subjects, context.clock)
    context.spawn("history", history.run())
    registry = SessionRegistry(api.bus, api.subjects, api, context.clock)
    sessions, sign_on = _logins(context.settings, context.clock, key, registry)
    if sessions is not None:
        context.spawn("sessions", registry.run())
    views = parts(operations=operations, history=history, sessions=sessions)
    context.spawn("views", views.run())
    app = partial(application, context.settings, api=api, views=views, clock=context.clock)
    server = HttpServer(app(token=secrets.token_urlsafe(24), sessions=sessions, sign_on=sign_on), address.socket)

    async def stop() -> None:
        views.cut_all()
        server.stop()

    context.on_stop("http", stop)
    await server.run()


def _follow(
    context: ServiceContext[DashboardSettings], cache: DashboardCache, changes: ChangeFeed, updater: CacheUpdater
) -> None:
    """Follow the landscape on the context's tasks."""
    for name, work in (
        ("first reads", updater.run_first_reads()),
        ("objects", updater.run_objects()),
        ("leases", updater.run_leases()),
        ("events", updater.run_events()),
        ("changes", changes.run()),
        ("beats", changes.run_heartbeats()),
        ("fills", record_fills(cache, context.clock)),
        ("orders", keep_orders(cache, context.clock)),
    ):
        context.spawn(name, work)


def _logins(
    settings: DashboardSettings, clock: Clock, key: bytes | None, registry: "SessionRegistry"
) -> "tuple[Sessions | None, SignOn | None]":
    """The sessions and their identity provider; None, None where nobody has to log in."""
    from gardenbus.dashboard.web.sessions import Sessions  # noqa: PLC0415 - loaded when it is wanted

    if key is None:
        return None, None
    sessions = Sessions(key, clock, registry, is_encrypted=settings.dashboard_public_url.startswith("https:"))
    if not settings.dashboard_oidc_issuer:
        return sessions, None
    from gardenbus.dashboard.web.oidc import OpenIdConnect, provider_of  # noqa: PLC0415 - as above

    return sessions, OpenIdConnect(provider_of(settings), sessions, clock)
