"""The routes, put together with what guards them."""

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route

from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.clock import Clock
from gardenbus.dashboard.reconcilers.asking import Api
from gardenbus.dashboard.reconcilers.changes import Changes
from gardenbus.dashboard.reconcilers.view import View
from gardenbus.dashboard.settings import DashboardSettings
from gardenbus.dashboard.web.answers import refused
from gardenbus.dashboard.web.files import Files
from gardenbus.dashboard.web.fleet import FleetReading
from gardenbus.dashboard.web.reading import Reading
from gardenbus.dashboard.web.security import Guard
from gardenbus.dashboard.web.streaming import ChangeStream
from gardenbus.dashboard.web.writing import Writing


def application(
    settings: DashboardSettings, *, view: View, api: Api, changes: Changes, clock: Clock, token: str
) -> Starlette:
    """The ASGI application; `token` is what a browser has to send to change anything (if that is allowed at all)."""
    allowed_token = token if settings.dashboard_allow_writes else None
    reading = Reading(view=view, api=api, clock=clock, prefix=settings.prefix, token=allowed_token)
    fleet = FleetReading(view=view, api=api, clock=clock)
    routes = [*_reading_routes(reading), *_fleet_routes(fleet)]
    routes += [Route("/api/changes", ChangeStream(changes), methods=["GET"])]
    if settings.dashboard_allow_writes:
        routes += _writing_routes(Writing(view=view, api=api))
    files = Files()
    routes += [Route("/", files.__call__), Route("/static/{path:path}", files.__call__)]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(Guard, allowed_hosts=settings.allowed_hosts, token=allowed_token),
            Middleware(GZipMiddleware, minimum_size=2048, compresslevel=3),
        ],
        exception_handlers={GardenbusError: refused},
    )


def _reading_routes(reading: Reading) -> list[Route]:
    return [
        Route("/api/session", reading.session),
        Route("/api/landscape", reading.landscape),
        Route("/api/places", reading.places),
        Route("/api/seeds", reading.seeds),
        Route("/api/shoots", reading.shoots),
        Route("/api/growth", reading.growth),
        Route("/api/autoscalers/{namespace}/{name}/history", reading.history),
        Route("/api/waiting", reading.waiting),
        Route("/api/events", reading.events),
        Route("/api/search", reading.search),
        Route("/api/object/{kind}/{namespace}/{name:path}", reading.one),
        Route("/api/explain/{namespace}/{name}", reading.explain),
        Route("/api/explain-seed/{name}", reading.explain_seed),
    ]


def _fleet_routes(fleet: FleetReading) -> list[Route]:
    return [
        Route("/api/placements", fleet.placements),
        Route("/api/clusters", fleet.clusters),
        Route("/api/placement/{kind}/{namespace}/{name:path}", fleet.placement),
    ]


def _writing_routes(writing: Writing) -> list[Route]:
    return [
        Route("/api/seeds/{name}/cordon", writing.cordon, methods=["POST"]),
        Route("/api/seeds/{name}/uncordon", writing.uncordon, methods=["POST"]),
        Route("/api/shoots/{namespace}/{name}/retry", writing.retry, methods=["POST"]),
        Route("/api/object/{kind}/{namespace}/{name:path}", writing.delete, methods=["DELETE"]),
    ]
