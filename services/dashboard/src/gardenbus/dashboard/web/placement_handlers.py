"""Request handlers of the pages of placements and member clusters."""

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.rows import STEPS, PlacementRow
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest, NotFound
from gardenbus.common.ports.clock import Clock
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.cache.landscape import DashboardCache, milliseconds
from gardenbus.dashboard.domain.placement_rows import decisions_of
from gardenbus.dashboard.web.paths import key_in
from gardenbus.dashboard.web.responses import json_response

MOST_SHOWN = 300
"""Maximum rows of a list; a filter finds the others."""

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
        clusters = self._cache.fleet.clusters(self._clock.now())
        placements = self._cache.fleet.placements()
        return json_response(
            {
                "clusters": len(clusters),
                "clustersWell": sum(each["well"] for each in clusters),
                "placements": len(placements),
                "fulfilled": sum(each["fulfilled"] == "True" for each in placements),
                "selected": sum(each["selected"] for each in placements),
                "available": sum(each["available"] for each in placements),
                "unwell": [each["name"] for each in clusters if not each["well"]][:MOST_NAMED],
                "unfulfilled": [_identity(each) for each in placements if each["fulfilled"] != "True"][:MOST_NAMED],
            }
        )

    async def placements(self, request: Request) -> Response:
        """Respond with placements by words of `search`; `state=unfulfilled`: those that lack clusters."""
        words, state = _list_query(request, ("", "unfulfilled"))
        rows = _named(self._cache.fleet.placements(), words)
        if state:
            rows = [row for row in rows if row["fulfilled"] != "True"]
        return json_response({"items": rows[:MOST_SHOWN], "total": len(rows)})

    async def clusters(self, request: Request) -> Response:
        """Respond with member clusters by words of `search`; `state=unwell`: those not eligible."""
        words, state = _list_query(request, ("", "unwell"))
        now = self._clock.now()
        rows = _named(self._cache.fleet.clusters(now), words)
        if state:
            rows = [row for row in rows if not row["well"]]
        return json_response({"items": rows[:MOST_SHOWN], "total": len(rows), "now": milliseconds(now)})

    async def placement(self, request: Request) -> Response:
        """Respond with one placement, the decisions of its policy snapshot, and its bindings. Raises NotFound."""
        key, fleet = key_in(request), self._cache.fleet
        document, snapshot = await asyncio.gather(self._api.get(key), self._snapshot(fleet.snapshot_of(key)))
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

    async def _snapshot(self, key: ObjectKey | None) -> Document | None:
        if key is None:
            return None
        try:
            return await self._api.get(key)
        except NotFound:
            return None


def _list_query(request: Request, states: tuple[str, ...]) -> tuple[list[str], str]:
    """Return search words and a state. Raises BadRequest."""
    if unknown := sorted(set(request.query_params) - {"search", "state"}):
        raise BadRequest(f"{unknown[0]}: no such parameter; there are search, state")
    state = request.query_params.get("state", "")
    if state not in states:
        raise BadRequest(f"state: there is {', '.join(filter(None, states))}, not {state}")
    return request.query_params.get("search", "").lower().split(), state


def _named(rows: list[Document], words: list[str]) -> list[Document]:
    if not words:
        return rows
    return [row for row in rows if all(word in f"{row['namespace']}/{row['name']}".lower() for word in words)]


def _identity(row: Document) -> Document:
    return {name: row[name] for name in ("kind", "namespace", "name", "reason")}
