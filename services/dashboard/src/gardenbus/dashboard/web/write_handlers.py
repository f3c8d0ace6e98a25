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
from gardenbus.common.errors import BadRequest, Conflict, NotFound
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.domain.actions import PlannedAction, planned, room_elsewhere
from gardenbus.dashboard.watch.landscape import DashboardCache
from gardenbus.dashboard.web.acting import acting, session_of
from gardenbus.dashboard.web.action_events import ActionRequest, action_request, last_action, recorded
from gardenbus.dashboard.web.paths import key_in
from gardenbus.dashboard.web.responses import json_response

_log = structlog.stdlib.get_logger()


class Confirmation(msgspec.Struct, frozen=True):
    """Body of a deletion: the object's name, typed by the user."""

    confirm: str = ""


ATTEMPTS = 5


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
        wanted = await action_request(request)
        api = acting(self._api, request)
        plan = await self._carry_out(api, name, key, wanted)
        if wanted.dry_run:
            return json_response({"shown": plan.does, "does": [*plan.does, *self._consequences(name, key)]})
        await recorded(api, request, key, plan.reason, plan.words)
        return _done(name, key, request)

    async def _carry_out(self, api: GardenApiClient, name: str, key: ObjectKey, wanted: ActionRequest) -> PlannedAction:
        """Patch the object as it was read, and again if somebody else wrote it meanwhile, maybe its status alone."""
        for attempt in count(1):
            document = await api.get(key)
            try:
                plan = planned(name, key.kind, document, annotation=wanted.annotation, value=wanted.value)
            except Conflict as error:
                raise Conflict(f"{error.message}{await last_action(api, key)}") from error
            if not wanted.dry_run and wanted.shown != [*plan.does]:
                raise Conflict(f"{key} has changed meanwhile{await last_action(api, key)}: see what it would do now")
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
