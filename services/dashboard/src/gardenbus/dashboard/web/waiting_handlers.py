"""Request handlers of the page of unschedulable shoots: groups by cause, and the shoots of one."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.timers import NextAttempt, Timers
from gardenbus.common.errors import NotFound, Unavailable
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.watch.landscape import DashboardCache
from gardenbus.dashboard.watch.waiting import WaitingShoot
from gardenbus.dashboard.web.paging import page_query
from gardenbus.dashboard.web.responses import json_response


class WaitingHandlers:
    """Read-only handlers."""

    def __init__(self, *, cache: DashboardCache, api: GardenApiClient) -> None:
        self._cache = cache
        self._subjects = api.subjects
        self._timers = Timers(api.bus, api.subjects)

    async def groups(self, request: Request) -> Response:
        """Respond with a page of the causes, each with its number of shoots, by words of `search`."""
        query = page_query(request)
        groups = self._cache.waiting.groups(query.words)
        items = [group._asdict() for group in groups[query.part]]
        total = sum(group.shoots for group in groups)
        return json_response({"items": items, "groups": len(groups), "total": total, "offset": query.offset})

    async def shoots(self, request: Request) -> Response:
        """Respond with a page of the shoots of a `cause`, each with its next attempt."""
        query = page_query(request, ("cause",))
        cause = request.query_params.get("cause", "")
        page = self._cache.waiting.page(cause, query.words, offset=query.offset, limit=query.limit)
        items = await asyncio.gather(*map(self._shown, page.shoots))
        return json_response({"items": items, "total": page.total, "offset": query.offset})

    async def _shown(self, shoot: WaitingShoot) -> Document:
        scheduler = shoot.scheduler or DEFAULT_SCHEDULER
        subject = self._subjects.scheduling(scheduler, ObjectKey("shoot", shoot.namespace, shoot.name))
        try:
            attempt = await self._timers.next_attempt(subject)
        except (NotFound, Unavailable):
            attempt = NextAttempt(None, is_queued=False)  # everything else is in the cache
        return shoot._asdict() | {"nextAttempt": attempt.due_at, "queued": attempt.is_queued}
