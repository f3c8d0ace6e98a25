"""The recovery of a store that was restored or rebuilt: what it waits for, and an operator's word to go on.

The result is `{"recovery": null}` without one, else its `id`, `cause`, `beganAt`, `leasePeriodPassed`, `silent` (the
Seeds that have not said what they run) and `responses` (by Seed: `queried`, or who goes on without it).
"""

from typing import Any

from gardenbus.apiserver.call import Call
from gardenbus.common.api.request_bodies import ProceedRequest
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.recovery import Recovery
from gardenbus.common.ports.store import Store


class RecoveryRequests:
    """Handles `recovery` and `proceed`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def on_recovery(self, _: Call) -> Any:
        """Read it. Raises Unavailable."""
        return _shown(await self._store.recovery())

    async def on_proceed(self, call: Call) -> Any:
        """Go on without some Seeds, by a user's word. Raises BadRequest, NotFound, Unavailable."""
        without = call.read(ProceedRequest).without
        if not without:
            raise BadRequest("without: name the Seeds that are not to be waited for")
        shown = _shown(await self._store.go_on_without(without, call.user or "somebody"))
        call.done()
        return shown


def _shown(recovery: Recovery | None) -> dict[str, Any]:
    if recovery is None:
        return {"recovery": None}
    return {
        "recovery": {
            "id": recovery.recovery_id,
            "cause": recovery.cause,
            "beganAt": recovery.began_at,
            "leasePeriodPassed": recovery.has_waited,
            "silent": recovery.silent,
            "responses": recovery.responses,
            "message": recovery.text,
        }
    }
