"""The recovery of a store that was restored or rebuilt: what it waits for, and an operator's word to go on.

The result is `{"recovery": null}` without one, else its `id`, `cause`, `beganAt`, `leasePeriodPassed`, `silent` (the
Seeds that have not said what they run) and `responses` (by Seed: `queried`, or who goes on without it).
"""

from typing import Any

import msgspec

from gardenbus.common.api.decoding import decode_json
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.recovery import Recovery
from gardenbus.common.ports.store import Store


class ProceedBody(msgspec.Struct, frozen=True):
    """Body of `proceed`: the Seeds that are waited for no longer."""

    without: tuple[str, ...]


class RecoveryRequests:
    """Handles `recovery` and `proceed`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self) -> Any:
        """Read it. Raises Unavailable."""
        return _shown(await self._store.recovery())

    async def proceed(self, body: bytes, user: str) -> Any:
        """Go on without some Seeds, by a user's word. Raises BadRequest, NotFound, Unavailable."""
        try:
            without = decode_json(body, ProceedBody).without
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadRequest(f"send an object with without, a list of Seeds: {error}") from error
        if not without:
            raise BadRequest("without: name the Seeds that are not to be waited for")
        return _shown(await self._store.go_on_without(without, user or "somebody"))


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
