"""Rules that stored objects break: those of a later version than the one that stored them.

Such an object stays, can be changed elsewhere, and deleted; the result of `invalid.<kind>` counts them by rule:
`{"checked", "rules": [{"field", "message", "objects", "names"}], "continue"?}`. The fields have no places in lists, the
message is that of the first object, and some are named.
"""

from typing import Any

import msgspec

from gardenbus.apiserver.call import Call
from gardenbus.apiserver.domain.query_bodies import check_limit
from gardenbus.apiserver.domain.validation.stored_objects import HAVE_RULES, rules_broken_by
from gardenbus.apiserver.registry.loop_turn import LoopTurn
from gardenbus.apiserver.registry.stored_names import StoredNames
from gardenbus.common.api.request_bodies import ListRequest
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.store import Page, Store
from gardenbus.common.side_thread import beside_loop

LIMIT = 500
"""Most objects that one request checks."""

NAMED = 5
"""Objects that are named of each rule."""


class StoredRules:
    """Handles `invalid`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._names = StoredNames(store)

    async def on_invalid(self, call: Call) -> Any:
        """The rules that objects of `<kind>[.<namespace>]` break. Raises BadRequest, Unsupported, Unavailable."""
        query, target = call.read(ListRequest), await self._names.list_target(call.tail)
        check_limit(query.limit)
        if target.kind not in HAVE_RULES:
            return {"checked": 0, "rules": []}
        page = await self._page(target.kind, target.namespace, query)
        found: dict[str, dict[str, Any]] = {}
        turn = LoopTurn()
        for stored in page.objects:
            await turn.let_others_in()
            if stored.is_deleting:
                continue
            broken = await beside_loop(stored.size, lambda stored=stored: rules_broken_by(stored.document()))
            for field, message in broken.items():
                rule = found.setdefault(field, {"field": field, "message": message, "objects": 0, "names": []})
                rule["objects"] += 1
                if len(rule["names"]) < NAMED:
                    rule["names"].append("/".join(filter(None, (stored.key.namespace, stored.key.name))))
        result: dict[str, Any] = {"checked": len(page.objects), "rules": list(found.values())}
        if page.continue_token is not None:
            result["continue"] = page.continue_token
        return result

    async def _page(self, kind: str, namespace: str | None, query: ListRequest) -> Page:
        limit, token = min(query.limit, LIMIT), query.continue_token
        try:
            return await self._store.list_page(kind, namespace, limit=limit, continue_token=token)
        except (ValueError, msgspec.DecodeError) as error:
            raise BadRequest("continue: not a token of a response") from error
