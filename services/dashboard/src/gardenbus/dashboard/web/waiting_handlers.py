"""Request handlers of the page of unschedulable shoots: groups by cause, and the shoots of one."""

import asyncio
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.timers import NextAttempt, Timers
from gardenbus.common.errors import BadRequest, NotFound, Unavailable
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.cache.landscape import DashboardCache
from gardenbus.dashboard.cache.waiting import WaitingShoot
from gardenbus.dashboard.web.responses import json_response

LARGEST_PAGE = 100
DEFAULT_PAGE = 25


class WaitingHandlers:
    """Read-only handlers."""

    def __init__(self, *, cache: DashboardCache, api: GardenApiClient) -> None:
        self._cache = cache
        self._subjects = api.subjects
        self._timers = Timers(api.bus, api.subjects)

    async def groups(self, request: Request) -> Response:
        """Respond with a page of the causes, each with its number of shoots, by words of `search`."""
        words, offset, limit = _page_query(request, ())
        groups = self._cache.waiting.groups(words)
        items = [group._asdict() for group in groups[offset : offset + limit]]
        total = sum(group.shoots for group in groups)
        return json_response({"items": items, "groups": len(groups), "total": total, "offset": offset})

    async def shoots(self, request: Request) -> Response:
        """Respond with a page of the shoots of a `cause`, each with its next attempt."""
        words, offset, limit = _page_query(request, ("cause",))
        cause = request.query_params.get("cause", "")
        page = self._cache.waiting.page(cause, words, offset=offset, limit=limit)
        items = await asyncio.gather(*map(self._shown, page.shoots))
        return json_response({"items": items, "total": page.total, "offset": offset})

    async def _shown(self, shoot: WaitingShoot) -> Document:
        scheduler = shoot.scheduler or DEFAULT_SCHEDULER
        subject = self._subjects.scheduling(scheduler, ObjectKey("shoot", shoot.namespace, shoot.name))
        try:
            attempt = await self._timers.next_attempt(subject)
        except (NotFound, Unavailable):
            attempt = NextAttempt(None, is_queued=False)  # everything else is in the cache
        return shoot._asdict() | {"nextAttempt": attempt.due_at, "queued": attempt.is_queued}


def _page_query(request: Request, names: Sequence[str]) -> tuple[list[str], int, int]:
    """Return search words, offset and limit. Raises BadRequest."""
    parameters = (*names, "search", "offset", "limit")
    if unknown := sorted(set(request.query_params) - set(parameters)):
        raise BadRequest(f"{unknown[0]}: no such parameter; there are {', '.join(parameters)}")
    offset, limit = request.query_params.get("offset", "0"), request.query_params.get("limit", str(DEFAULT_PAGE))
    if not offset.isdecimal() or not limit.isdecimal() or not 1 <= int(limit) <= LARGEST_PAGE:
        raise BadRequest(f"offset must not be negative, limit between 1 and {LARGEST_PAGE}")
    return request.query_params.get("search", "").lower().split(), int(offset), int(limit)
