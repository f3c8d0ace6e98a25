"""Common parts of all actions of pages: their bodies, and the Events by which who comes second learns of the first."""

import msgspec
import structlog
from starlette.requests import Request

from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest, GardenbusError
from gardenbus.dashboard.api_client import USER, GardenApiClient
from gardenbus.dashboard.web.acting import session_of

_log = structlog.stdlib.get_logger()

ACTION_REASONS = frozenset({"Cordoned", "Uncordoned", "Annotated", "DeletionConfirmed", "Draining"})
"""Reasons of the Events of actions."""


class ActionRequest(msgspec.Struct, frozen=True, rename="camel"):
    """Body of an action: what its user was shown that it does, and what to annotate (None: remove)."""

    dry_run: bool = False
    shown: list[str] = []
    annotation: str = ""
    value: str | None = None


async def action_request(request: Request) -> ActionRequest:
    """The body of an action. Raises BadRequest."""
    try:
        return decode_json(await request.body(), ActionRequest)
    except msgspec.MsgspecError as error:
        raise BadRequest(f"the body of an action: {error}") from error


async def recorded(api: GardenApiClient, request: Request, key: ObjectKey, reason: str, words: str) -> None:
    """Record the Event of an action by the user's name."""
    who = session_of(request).user or USER
    try:
        await api.record(key, reason, f"{who} {words}, on the dashboard")
    except GardenbusError as error:  # the change is made; who may not record Events is in the audit log still
        _log.info("event.unrecorded", object=str(key), reason=error.message)


async def last_action(api: GardenApiClient, key: ObjectKey) -> str:
    """Words of the last action on an object, for somebody who comes second."""
    events = await api.events_of(key)
    last = next((each for each in events if each["reason"] in ACTION_REASONS), None)
    return "" if last is None else f" ({last['message']}, at {last['at']})"
