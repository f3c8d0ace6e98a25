"""Puts the dashboard together: the view, what feeds it, what tells browsers, and the HTTP server.

Until somebody opens the page it costs next to nothing: its address is taken, and only autoscalers are followed (their
history is kept nowhere else). With the first visit the landscape is read and the HTTP server loaded.
"""

import secrets
from functools import partial

import structlog
from prometheus_client import Counter, Gauge

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.ports.bus import Bus
from gardenbus.common.resources.keys import Subjects
from gardenbus.common.runtime.bus_connection import connect_bus
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.dashboard.reconcilers.asking import Api
from gardenbus.dashboard.reconcilers.changes import Changes
from gardenbus.dashboard.reconcilers.following import Following
from gardenbus.dashboard.reconcilers.view import View
from gardenbus.dashboard.settings import DashboardSettings
from gardenbus.dashboard.web.address import Address, first_visit, take

_log = structlog.stdlib.get_logger()

BROWSERS = Gauge("gardenbus_dashboard_browsers", "Browsers that follow the changes")
SLOW = Counter("gardenbus_dashboard_slow_browsers", "Browsers that were cut off because they did not read")


async def build(context: ServiceContext[DashboardSettings]) -> None:
    """Connect to the bus, as soon as it is there, and start."""
    bus, subjects = await connect_bus(context, manages_streams=False)
    start_dashboard(context, bus=bus, subjects=subjects)


def start_dashboard(context: ServiceContext[DashboardSettings], *, bus: Bus, subjects: Subjects) -> str:
    """Start everything on the context's tasks; answers the page's address.

    Raises SettingsInvalid when the address is taken.
    """
    settings, view, api = context.settings, View(), Api(bus, subjects)
    changes = Changes(view, context.clock, secrets.token_hex(4), gone_slow=SLOW.inc)
    BROWSERS.set_function(lambda: changes.listeners)
    try:
        address = take(settings.dashboard_host, settings.dashboard_port)
    except OSError as error:
        place = f"{settings.dashboard_host}:{settings.dashboard_port}"
        raise SettingsInvalid((f"dashboard_port: cannot listen on {place}: {error.strerror}",)) from error
    context.stack.callback(address.socket.close)
    following = Following(bus, subjects, view, api)
    context.spawn("autoscalers", following.run_autoscalers())
    context.spawn("http", _serve(context, address, view=view, api=api, changes=changes, following=following))
    _log.info("dashboard.started", url=address.url, allow_writes=settings.dashboard_allow_writes)
    return address.url


async def _serve(
    context: ServiceContext[DashboardSettings],
    address: Address,
    *,
    view: View,
    api: Api,
    changes: Changes,
    following: Following,
) -> None:
    """Wait for the first visit; then follow the landscape and serve."""
    await first_visit(address)
    for name, work in (
        ("objects", following.run_objects()),
        ("leases", following.run_leases()),
        ("events", following.run_events()),
        ("changes", changes.run()),
        ("beats", changes.run_beats()),
    ):
        context.spawn(name, work)
    from gardenbus.dashboard.web.application import application  # noqa: PLC0415 - loaded when it is wanted
    from gardenbus.dashboard.web.listening import Listening  # noqa: PLC0415 - as above

    app = partial(application, context.settings, view=view, api=api, changes=changes, clock=context.clock)
    listening = Listening(app(token=secrets.token_urlsafe(24)), address.socket)

    async def stop() -> None:
        changes.cut_all()
        listening.stop()

    context.on_stop("http", stop)
    await listening.run()
