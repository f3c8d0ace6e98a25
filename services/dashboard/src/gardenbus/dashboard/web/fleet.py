"""What the pages of placements and member clusters ask."""

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gardenbus.common.errors import BadRequest, NotFound
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.dashboard.decide.fleet_rows import STEPS, PlacementRow, decisions_of
from gardenbus.dashboard.reconcilers.asking import Api
from gardenbus.dashboard.reconcilers.view import View, milliseconds
from gardenbus.dashboard.web.answers import answer
from gardenbus.dashboard.web.paths import key_in

MOST_SHOWN = 300
"""Lines of a list: whoever looks for one among more filters."""

MOST_BINDINGS = 2_000


class FleetReading:
    """Handlers; they change nothing."""

    def __init__(self, *, view: View, api: Api, clock: Clock) -> None:
        self._view = view
        self._api = api
        self._clock = clock

    async def placements(self, request: Request) -> Response:
        """The placements whose names hold all words of `search`; with `state=unfulfilled` those that lack clusters."""
        words, state = _asked(request, ("", "unfulfilled"))
        rows = _named(self._view.fleet.placements(), words)
        if state:
            rows = [row for row in rows if row["fulfilled"] != "True"]
        return answer({"items": rows[:MOST_SHOWN], "total": len(rows)})

    async def clusters(self, request: Request) -> Response:
        """The member clusters whose names hold all words; with `state=unwell` those that take nothing new."""
        words, state = _asked(request, ("", "unwell"))
        now = self._clock.now()
        rows = _named(self._view.fleet.clusters(now), words)
        if state:
            rows = [row for row in rows if not row["well"]]
        return answer({"items": rows[:MOST_SHOWN], "total": len(rows), "now": milliseconds(now)})

    async def placement(self, request: Request) -> Response:
        """One placement: its decisions as its policy snapshot tells them, and its bindings. Raises NotFound."""
        key, fleet = key_in(request), self._view.fleet
        document, snapshot = await asyncio.gather(self._api.get(key), self._snapshot(fleet.snapshot_of(key)))
        row = fleet.tables.get(key.kind, {}).get(key)
        bindings = fleet.bindings_of(key)
        return answer(
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


def _asked(request: Request, states: tuple[str, ...]) -> tuple[list[str], str]:
    """Words to look for, and a state. Raises BadRequest."""
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
