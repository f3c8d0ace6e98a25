"""Puts the dashboard together: the view, what feeds it, what tells browsers, and the HTTP server."""

import secrets

import structlog
from prometheus_client import Counter, Gauge

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.ports.bus import Bus
from gardenbus.common.resources.keys import Subjects
from gardenbus.common.runtime.connections import connect_bus
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.dashboard.reconcilers.asking import Api
from gardenbus.dashboard.reconcilers.changes import Changes
from gardenbus.dashboard.reconcilers.following import Following
from gardenbus.dashboard.reconcilers.view import View
from gardenbus.dashboard.settings import DashboardSettings
from gardenbus.dashboard.web.application import application
from gardenbus.dashboard.web.listening import Listening

_log = structlog.stdlib.get_logger()

BROWSERS = Gauge("gardenbus_dashboard_browsers", "Browsers that follow the changes")
BATCHES = Gauge("gardenbus_dashboard_batches", "Batches of changes since the start")
SLOW = Counter("gardenbus_dashboard_slow_browsers", "Browsers that were cut off because they did not read")


async def build(context: ServiceContext[DashboardSettings]) -> None:
    """Connect to the bus, as soon as it is there, and start."""
    bus, subjects = await connect_bus(context, manages_streams=False)
    await start_dashboard(context, bus=bus, subjects=subjects)


async def start_dashboard(context: ServiceContext[DashboardSettings], *, bus: Bus, subjects: Subjects) -> str:
    """Start all loops on the context's tasks; answers the page's address once it serves.

    It serves before it knows the landscape: the page says that it is being read. Raises SettingsInvalid when the
    address is taken.
    """
    settings, clock = context.settings, context.clock
    view, api = View(), Api(bus, subjects)
    changes = Changes(view, clock, secrets.token_hex(4), gone_slow=SLOW.inc)
    BROWSERS.set_function(lambda: changes.listeners)
    BATCHES.set_function(lambda: changes.number)
    app = application(settings, view=view, api=api, changes=changes, clock=clock, token=secrets.token_urlsafe(24))
    try:
        listening = Listening(app, settings.dashboard_host, settings.dashboard_port)
    except OSError as error:
        address = f"{settings.dashboard_host}:{settings.dashboard_port}"
        raise SettingsInvalid((f"dashboard_port: cannot listen on {address}: {error.strerror}",)) from error
    following = Following(bus, subjects, view, api)
    for name, work in (
        ("objects", following.run_objects()),
        ("leases", following.run_leases()),
        ("events", following.run_events()),
        ("changes", changes.run()),
        ("beats", changes.run_beats()),
        ("http", listening.run()),
    ):
        context.spawn(name, work)

    async def stop() -> None:
        changes.cut_all()
        await listening.stop()

    context.on_stop("http", stop)
    await listening.started()
    _log.info("dashboard.started", url=listening.url, allow_writes=settings.dashboard_allow_writes)
    return listening.url
