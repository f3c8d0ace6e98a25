"""Request handlers for changes, where allowed: cordon, uncordon, retry, delete. SecurityMiddleware has checked them."""

from typing import Any

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import Response

from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest, NotFound
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.watch.landscape import DashboardCache
from gardenbus.dashboard.web.acting import acting, session_of
from gardenbus.dashboard.web.paths import key_in
from gardenbus.dashboard.web.responses import json_response

_log = structlog.stdlib.get_logger()


class Confirmation(msgspec.Struct, frozen=True):
    """Body of a deletion: the object's name, typed by the user."""

    confirm: str = ""


class WriteHandlers:
    """Handlers that change something."""

    def __init__(self, *, cache: DashboardCache, api: GardenApiClient) -> None:
        self._cache = cache
        self._api = api

    async def cordon(self, request: Request) -> Response:
        """Mark a seed as unschedulable."""
        return await self._set_visible(request, visible=False)

    async def uncordon(self, request: Request) -> Response:
        """Mark a seed as schedulable."""
        return await self._set_visible(request, visible=True)

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

    async def _set_visible(self, request: Request, *, visible: bool) -> Response:
        key = ObjectKey("seed", "", request.path_params["name"])
        await acting(self._api, request).set_visible(key.name, visible=visible)
        return _done("uncordon" if visible else "cordon", key, request)


def _done(verb: str, key: ObjectKey, request: Request) -> Response:
    _log.info("object.changed", verb=verb, object=str(key), user=session_of(request).user)
    result: dict[str, Any] = {"ok": True, "verb": verb, **key._asdict()}
    return json_response(result)
