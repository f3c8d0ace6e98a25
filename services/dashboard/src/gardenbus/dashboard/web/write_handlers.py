"""Request handlers for changes, where allowed: actions, retry, delete. SecurityMiddleware has checked them."""

from itertools import count
from typing import Any

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import Response

from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import section
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.numbers import whole_number
from gardenbus.common.errors import BadRequest, Conflict, GardenbusError, NotFound
from gardenbus.dashboard.api_client import USER, GardenApiClient
from gardenbus.dashboard.domain.actions import PlannedAction, planned, room_elsewhere
from gardenbus.dashboard.watch.landscape import DashboardCache
from gardenbus.dashboard.web.acting import acting, session_of
from gardenbus.dashboard.web.paths import key_in
from gardenbus.dashboard.web.responses import json_response

_log = structlog.stdlib.get_logger()


class Confirmation(msgspec.Struct, frozen=True):
    """Body of a deletion: the object's name, typed by the user."""

    confirm: str = ""


class ActionRequest(msgspec.Struct, frozen=True, rename="camel"):
    """Body of an action: what its user was shown that it does, and what to annotate (None: remove)."""

    dry_run: bool = False
    shown: list[str] = []
    annotation: str = ""
    value: str | None = None


ATTEMPTS = 5

ACTION_REASONS = frozenset({"Cordoned", "Uncordoned", "Annotated", "DeletionConfirmed"})
"""Reasons of the Events of actions."""


class WriteHandlers:
    """Handlers that change something."""

    def __init__(self, *, cache: DashboardCache, api: GardenApiClient) -> None:
        self._cache = cache
        self._api = api

    async def act(self, request: Request) -> Response:
        """Do an action that its user was shown, or (a dry run) respond with what it would do, as the API has tried it.

        Raises BadRequest, NotFound, Forbidden; Conflict where it is done already, or would do something else by now.
        """
        key, name = key_in(request), request.path_params["action"]
        try:
            wanted = decode_json(await request.body(), ActionRequest)
        except msgspec.MsgspecError as error:
            raise BadRequest(f"the body of an action: {error}") from error
        api = acting(self._api, request)
        plan = await self._carry_out(api, name, key, wanted)
        if wanted.dry_run:
            return json_response({"shown": plan.does, "does": [*plan.does, *self._consequences(name, key)]})
        who = session_of(request).user or USER
        try:
            await api.record(key, plan.reason, f"{who} {plan.words}, on the dashboard")
        except GardenbusError as error:  # the change is made; who may not record Events is in the audit log still
            _log.info("event.unrecorded", object=str(key), reason=error.message)
        return _done(name, key, request)

    async def _carry_out(self, api: GardenApiClient, name: str, key: ObjectKey, wanted: ActionRequest) -> PlannedAction:
        """Patch the object as it was read, and again if somebody else wrote it meanwhile, maybe its status alone."""
        for attempt in count(1):
            document = await api.get(key)
            try:
                plan = planned(name, key.kind, document, annotation=wanted.annotation, value=wanted.value)
            except Conflict as error:
                raise Conflict(f"{error.message}{await self._done_by(api, key)}") from error
            if not wanted.dry_run and wanted.shown != [*plan.does]:
                raise Conflict(f"{key} has changed meanwhile{await self._done_by(api, key)}: see what it would do now")
            version = whole_number(section(document, "metadata").get("resourceVersion"))
            try:
                await api.change(key, plan.patch, version=version, dry_run=wanted.dry_run)
            except Conflict:
                if attempt == ATTEMPTS:
                    raise
            else:
                return plan
        raise AssertionError

    def _consequences(self, action: str, key: ObjectKey) -> list[str]:
        row = self._cache.seeds.get(key) if key.kind == "seed" else None
        if row is None or action != "cordon":
            return []
        others = [(each, self._cache.used(each.name)) for each in self._cache.seeds.values()]
        return [f"{self._cache.used(row.name)} shoots are on it", room_elsewhere(row, others)]

    async def _done_by(self, api: GardenApiClient, key: ObjectKey) -> str:
        """Words of the last action on an object, for somebody who comes second."""
        events = await api.events_of(key)
        last = next((each for each in events if each["reason"] in ACTION_REASONS), None)
        return "" if last is None else f" ({last['message']}, at {last['at']})"

    async def retry(self, request: Request) -> Response:
        """Retry a shoot now."""
        key = ObjectKey("shoot", request.path_params["namespace"], request.path_params["name"])
        row = self._cache.shoots.get(key)
        if row is None:
            raise NotFound(f"{key} not found")
        await acting(self._api, request).retry(key, has_seed=bool(row.seed))
        return _done("retry", key, request)

    async def delete(self, request: Request) -> Response:
        """Delete an object whose name was typed. Raises BadRequest for another name."""
        key = key_in(request)
        try:
            confirmation = decode_json(await request.body(), Confirmation)
        except msgspec.MsgspecError as error:
            raise BadRequest(f'send {{"confirm": "{key.name}"}}: {error}') from error
        if confirmation.confirm != key.name:
            raise BadRequest(f"confirm: type {key.name} to delete it")
        await acting(self._api, request).delete(key)
        return _done("delete", key, request)


def _done(verb: str, key: ObjectKey, request: Request) -> Response:
    _log.info("object.changed", verb=verb, object=str(key), user=session_of(request).user)
    result: dict[str, Any] = {"ok": True, "verb": verb, **key._asdict()}
    return json_response(result)
