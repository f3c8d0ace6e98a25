"""The routes, put together with what guards them."""

import asyncio
from collections.abc import Collection
from functools import partial

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route, Router

from gardenbus.common.api.budgets import DEFAULT_BUDGET, Budget
from gardenbus.common.api.identity.readable import Readable
from gardenbus.common.controller.budget_use import BudgetUse
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.clock import Clock
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.settings import DashboardSettings
from gardenbus.dashboard.watch.history import HistoryCache
from gardenbus.dashboard.watch.landscape import DashboardCache
from gardenbus.dashboard.watch.operations import OperationsCache
from gardenbus.dashboard.web.change_feed import ChangeFeed
from gardenbus.dashboard.web.drain_handler import DrainHandler
from gardenbus.dashboard.web.files import StaticFiles
from gardenbus.dashboard.web.history_handlers import HistoryHandlers
from gardenbus.dashboard.web.login_handlers import LoginHandlers, SignOn
from gardenbus.dashboard.web.open_pages import OpenPages
from gardenbus.dashboard.web.operations_handlers import OperationsHandlers
from gardenbus.dashboard.web.placement_handlers import PlacementHandlers
from gardenbus.dashboard.web.read_handlers import ReadHandlers
from gardenbus.dashboard.web.responses import error_response, unknown_address
from gardenbus.dashboard.web.rights import Rights
from gardenbus.dashboard.web.security import SecurityMiddleware
from gardenbus.dashboard.web.sessions import Session, Sessions
from gardenbus.dashboard.web.set_handlers import SetHandlers
from gardenbus.dashboard.web.streaming import ChangeStream, StreamRules
from gardenbus.dashboard.web.tree_handlers import TreeHandlers
from gardenbus.dashboard.web.views import LandscapeViews
from gardenbus.dashboard.web.waiting_handlers import WaitingHandlers
from gardenbus.dashboard.web.write_handlers import WriteHandlers


def landscape_views(  # noqa: PLR0913 - the parts of a dashboard
    settings: DashboardSettings,
    *,
    cache: DashboardCache,
    api: GardenApiClient,
    changes: ChangeFeed,
    operations: OperationsCache,
    history: HistoryCache,
    clock: Clock,
    sessions: Sessions | None = None,
) -> LandscapeViews:
    """Views of the landscape for people, each of what they may read."""
    pages = OpenPages(_default_budget if sessions is None else sessions.registry.budget)
    if sessions is not None:
        use = BudgetUse(sessions.registry.budget)
        use.count("sessions", sessions.registry.counts)
        use.count("pages", lambda: pages.counts)
        api.bus.report_stats(use.report)
    until_ended = _for_ever if sessions is None else sessions.until_ended
    rights = Rights(api, clock)
    allows_writes = settings.dashboard_allow_writes

    def build(readable: Readable, cache: DashboardCache, changes: ChangeFeed) -> Router:
        reading = ReadHandlers(
            cache=cache, api=api, clock=clock, prefix=settings.prefix, allows_writes=allows_writes, readable=readable
        )
        tree = TreeHandlers(cache=cache, api=api)
        operating = OperationsHandlers(operations=operations, api=api, is_operators=readable.is_operators)
        routes = [
            *_reading_routes(reading),
            *_waiting_routes(WaitingHandlers(cache=cache, api=api)),
            *_fleet_routes(PlacementHandlers(cache=cache, api=api, clock=clock)),
            *_operations_routes(operating),
            Route("/api/sets/{namespace}/{name}", SetHandlers(cache=cache, api=api).outlook),
            Route("/api/tree", tree.tree),
            Route("/api/works/{kind}/{namespace}/{name:path}", tree.works),
            Route("/api/history", HistoryHandlers(history=history, clock=clock, readable=readable).charts),
        ]
        rules = StreamRules(pages, readable.projects, partial(rights.until_changed, readable=readable), until_ended)
        routes += [Route("/api/changes", ChangeStream(changes, clock, rules), methods=["GET"])]
        if allows_writes:
            drains = DrainHandler(api=api, is_operators=readable.is_operators)
            routes += _writing_routes(WriteHandlers(cache=cache, api=api), drains)
            routes += [Route("/api/rejected/{id}/replay", operating.replay, methods=["POST"])]
        return Router(routes)

    return LandscapeViews(build, cache=cache, changes=changes, rights=rights, clock=clock)


def _default_budget(_user: str, _projects: Collection[str]) -> Budget:
    return DEFAULT_BUDGET


async def _for_ever(_: Session) -> None:
    await asyncio.Event().wait()


def application(  # noqa: PLR0913 - the parts of a dashboard
    settings: DashboardSettings,
    *,
    api: GardenApiClient,
    views: LandscapeViews,
    clock: Clock,
    token: str,
    sessions: Sessions | None = None,
    sign_on: SignOn | None = None,
) -> Starlette:
    """The ASGI application.

    With `sessions` people log in. Without one everybody has the same session, and `token` is what a browser has to send
    to change anything (if that is allowed at all).
    """
    allows_writes = settings.dashboard_allow_writes
    nobodys = Session("", token if allows_writes else None)
    files = StaticFiles()
    routes: list[Route] = []
    if sessions is not None:
        auth = LoginHandlers(sessions=sessions, api=api, rights=views.rights, clock=clock, files=files, sign_on=sign_on)
        routes += _login_routes(auth)
    routes += [Route("/api/{rest:path}", views)]
    routes += [Route("/", files.__call__), Route("/static/{path:path}", files.__call__)]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(
                SecurityMiddleware,
                allowed_hosts=settings.allowed_hosts,
                allows_writes=allows_writes,
                nobodys=nobodys,
                sessions=sessions,
            ),
            Middleware(GZipMiddleware, minimum_size=2048, compresslevel=3),
        ],
        exception_handlers={GardenbusError: error_response, 404: unknown_address},
    )


def _login_routes(logins: LoginHandlers) -> list[Route]:
    return [
        Route("/login", logins.page),
        Route("/api/login", logins.ways, methods=["GET"]),
        Route("/api/login", logins.by_link, methods=["POST"]),
        Route("/api/logout", logins.log_out, methods=["POST"]),
        Route("/oidc/start", logins.begin_sign_on),
        Route("/oidc/callback", logins.finish_sign_on),
    ]


def _reading_routes(reading: ReadHandlers) -> list[Route]:
    return [
        Route("/api/session", reading.session),
        Route("/api/landscape", reading.landscape),
        Route("/api/places", reading.places),
        Route("/api/seeds", reading.seeds),
        Route("/api/shoots", reading.shoots),
        Route("/api/growth", reading.growth),
        Route("/api/autoscalers/{namespace}/{name}/history", reading.history),
        Route("/api/events", reading.events),
        Route("/api/search", reading.search),
        Route("/api/object/{kind}/{namespace}/{name:path}", reading.get_object),
        Route("/api/explain/{namespace}/{name}", reading.explain),
        Route("/api/explain/{namespace}/{name}/rejections", reading.rejections),
        Route("/api/explain-seed/{name}", reading.explain_seed),
        Route("/api/seeds/{name}/fill", reading.fill),
    ]


def _waiting_routes(waiting: WaitingHandlers) -> list[Route]:
    return [Route("/api/waiting", waiting.groups), Route("/api/waiting/shoots", waiting.shoots)]


def _operations_routes(operating: OperationsHandlers) -> list[Route]:
    return [
        Route("/api/checks", operating.checks),
        Route("/api/queues", operating.queues),
        Route("/api/services", operating.services),
        Route("/api/rejected", operating.rejected),
        Route("/api/rejected/{id}", operating.rejected_body),
    ]


def _fleet_routes(fleet: PlacementHandlers) -> list[Route]:
    return [
        Route("/api/fleet", fleet.summary),
        Route("/api/placements", fleet.placements),
        Route("/api/clusters", fleet.clusters),
        Route("/api/placement/{kind}/{namespace}/{name:path}", fleet.placement),
    ]


def _writing_routes(writing: WriteHandlers, drains: DrainHandler) -> list[Route]:
    return [
        Route("/api/actions/drain/seed/_/{name}", drains.drain, methods=["POST"]),
        Route("/api/actions/{action}/{kind}/{namespace}/{name:path}", writing.act, methods=["POST"]),
        Route("/api/shoots/{namespace}/{name}/retry", writing.retry, methods=["POST"]),
        Route("/api/object/{kind}/{namespace}/{name:path}", writing.delete, methods=["DELETE"]),
    ]
