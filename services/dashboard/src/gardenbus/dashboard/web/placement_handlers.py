"""Request handlers of the pages of placements and member clusters."""

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gardenbus.common.api.conditions import TRUE
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.rows import STEPS, PlacementRow
from gardenbus.common.api.garden.rows import TableRow
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest, NotFound
from gardenbus.common.ports.clock import Clock
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.domain.placement_rows import decisions_of, is_cluster_healthy
from gardenbus.dashboard.watch.landscape import DashboardCache, milliseconds
from gardenbus.dashboard.web.acting import acting
from gardenbus.dashboard.web.paging import PageQuery, page_query
from gardenbus.dashboard.web.paths import key_in
from gardenbus.dashboard.web.responses import json_response

PAGE = 100
"""Rows of a list that come at once."""

MOST_BINDINGS = 2_000

MOST_NAMED = 20
"""Names on the home page of a fleet; the lists have all."""


class PlacementHandlers:
    """Read-only handlers."""

    def __init__(self, *, cache: DashboardCache, api: GardenApiClient, clock: Clock) -> None:
        self._cache = cache
        self._api = api
        self._clock = clock

    async def summary(self, _: Request) -> Response:
        """Respond with the fleet in numbers: clusters that are healthy, placements that are fulfilled, and the rest."""
        fleet, now = self._cache.fleet, self._clock.now()
        clusters, placements = fleet.clusters(), fleet.placements()
        progress = [fleet.progress_of(key) for key, _ in placements]
        unwell = [row.name for row in clusters if not is_cluster_healthy(row, now)]
        unfulfilled = [each for each in placements if each[1].fulfilled != TRUE]
        return json_response(
            {
                "clusters": len(clusters),
                "clustersWell": len(clusters) - len(unwell),
                "placements": len(placements),
                "fulfilled": len(placements) - len(unfulfilled),
                "selected": sum(each.selected for each in progress),
                "available": sum(each.available for each in progress),
                "unwell": unwell[:MOST_NAMED],
                "unfulfilled": [_identity(key, row) for key, row in unfulfilled[:MOST_NAMED]],
            }
        )

    async def placements(self, request: Request) -> Response:
        """Respond with a page of placements by words of `search`; `state=unfulfilled`: those that lack clusters."""
        query, state = _list_query(request, ("", "unfulfilled"))
        fleet = self._cache.fleet
        found = [(key, row) for key, row in fleet.placements() if _is_named(row, query.words)]
        if state:
            found = [each for each in found if each[1].fulfilled != TRUE]
        items = [fleet.shown_placement(key, row) for key, row in found[query.part]]
        return json_response({"items": items, "total": len(found), "offset": query.offset})

    async def clusters(self, request: Request) -> Response:
        """Respond with a page of member clusters by words of `search`; `state=unwell`: those not eligible."""
        query, state = _list_query(request, ("", "unwell"))
        now = self._clock.now()
        found = [row for row in self._cache.fleet.clusters() if _is_named(row, query.words)]
        if state:
            found = [row for row in found if not is_cluster_healthy(row, now)]
        items = [self._cache.fleet.shown_cluster(row, now) for row in found[query.part]]
        body = {"items": items, "total": len(found), "offset": query.offset, "now": milliseconds(now)}
        return json_response(body)

    async def placement(self, request: Request) -> Response:
        """Respond with one placement, the decisions of its policy snapshot, and its bindings. Raises NotFound."""
        key, fleet = key_in(request), self._cache.fleet
        api = acting(self._api, request)
        document, snapshot = await asyncio.gather(api.get(key), _snapshot(api, fleet.snapshot_of(key)))
        row = fleet.tables.get(key.kind, {}).get(key)
        bindings = fleet.bindings_of(key)
        return json_response(
            {
                "placement": fleet.shown_placement(key, row) if isinstance(row, PlacementRow) else None,
                "policy": section(document, "spec", "policy"),
                "strategy": section(document, "spec", "strategy"),
                "selectors": section(document, "spec").get("resourceSelectors") or [],
                "conditions": section(document, "status").get("conditions") or [],
                "snapshot": None if snapshot is None else section(snapshot, "metadata").get("name"),
                "decisions": [] if snapshot is None else decisions_of(snapshot),
                "steps": STEPS,
                "bindings": [msgspec.to_builtins(each) for each in bindings[:MOST_BINDINGS]],
            }
        )


async def _snapshot(api: GardenApiClient, key: ObjectKey | None) -> Document | None:
    if key is None:
        return None
    try:
        return await api.get(key)
    except NotFound:
        return None


def _list_query(request: Request, states: tuple[str, ...]) -> tuple[PageQuery, str]:
    """Return which page is requested, and a state. Raises BadRequest."""
    query = page_query(request, ("state",), default=PAGE)
    state = request.query_params.get("state", "")
    if state not in states:
        raise BadRequest(f"state: there is {', '.join(filter(None, states))}, not {state}")
    return query, state


def _is_named(row: TableRow, words: list[str]) -> bool:
    return not words or all(word in f"{row.namespace}/{row.name}".lower() for word in words)


def _identity(key: ObjectKey, row: PlacementRow) -> Document:
    return {"kind": key.kind, "namespace": row.namespace, "name": row.name, "reason": row.reason}
