"""Request handler of the landscape's history: charts of all of it, a region, a seed or a set."""

from collections.abc import Mapping
from datetime import timedelta

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gardenbus.common.api.identity.readable import Readable
from gardenbus.common.errors import BadRequest, Forbidden
from gardenbus.common.ports.clock import Clock
from gardenbus.dashboard.watch.history import HistoryCache
from gardenbus.dashboard.watch.landscape import milliseconds
from gardenbus.dashboard.web.responses import json_response
from gardenbus.diagnostics.history_record import SCOPE_KINDS, HistoryScope

INSTANTS = 144
TIMES: Mapping[str, timedelta] = {
    "6h": timedelta(hours=6),
    "24h": timedelta(days=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}


class HistoryHandlers:
    """Read-only handler; a history is of the whole landscape, so whoever sees a part of it sees none."""

    def __init__(self, *, history: HistoryCache, clock: Clock, readable: Readable) -> None:
        self._history = history
        self._clock = clock
        self._readable = readable

    async def charts(self, request: Request) -> Response:
        """Respond with the charts of a part of the landscape for some time. Raises BadRequest, Forbidden."""
        if not self._readable.is_whole:
            raise Forbidden("the history takes a role in the landscape")
        scope, lasting = _query_of(request)
        note = await self._history.opened()
        now = self._clock.now()
        view = self._history.record.view(scope, now - lasting, now, instants=INSTANTS)
        return json_response(msgspec.to_builtins(view) | {"note": note, "now": milliseconds(now)})


def _query_of(request: Request) -> tuple[HistoryScope, timedelta]:
    given = dict(request.query_params)
    kind, name, lasts = given.pop("of", "landscape"), given.pop("name", ""), given.pop("for", "24h")
    if given:
        raise BadRequest(f"{min(given)}: no such parameter; there are of, name and for")
    found = SCOPE_KINDS.get(kind)
    if found is None:
        raise BadRequest(f"of: there are {', '.join(SCOPE_KINDS)}")
    if bool(name) == (found == "landscape"):
        raise BadRequest("name: a region, a seed and a set have one, the landscape has none")
    if lasts not in TIMES:
        raise BadRequest(f"for: there are {', '.join(TIMES)}")
    return HistoryScope(found, name), TIMES[lasts]
