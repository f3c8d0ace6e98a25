"""Request handler of a drain: shown by the scheduler's plan, then carried out by binds in the name of the user.

Nothing is kept here: the seed is cordoned, and each shoot is bound to another seed, which lifecycle and the gardenlets
carry out. One that dies in between leaves a seed that can be drained again, with fewer shoots.
"""

from collections.abc import Awaitable, Callable
from itertools import count

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import Response

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.moves import ExplainedDrain, Move
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.numbers import whole_number
from gardenbus.common.errors import Conflict, Forbidden, GardenbusError, NotFound, Unavailable
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.domain.actions import planned
from gardenbus.dashboard.domain.explained_drain import (
    counted,
    outcome_words,
    shown_drain,
)
from gardenbus.dashboard.web.acting import acting
from gardenbus.dashboard.web.action_events import action_request, last_action, recorded
from gardenbus.dashboard.web.responses import json_response

_log = structlog.stdlib.get_logger()

ATTEMPTS = 5

Record = Callable[[], Awaitable[None]]


class DrainHandler:
    """Drains seeds. Whoever sees a part of the landscape would get a plan of a part."""

    def __init__(self, *, api: GardenApiClient, is_operators: bool) -> None:
        self._api = api
        self._is_operators = is_operators

    async def drain(self, request: Request) -> Response:
        """Begin a drain that its user was shown, or (a dry run) respond with what it would do.

        Raises BadRequest, NotFound, Forbidden, Unavailable; Conflict where there is nothing to do, or another plan.
        """
        if not self._is_operators:
            raise Forbidden("to drain a seed takes the role operator of the landscape")
        key, wanted = ObjectKey("seed", "", request.path_params["name"]), await action_request(request)
        api = acting(self._api, request)
        document = await api.get(key)
        is_open = section(document, "spec", "settings", "scheduling").get("visible") is not False
        try:
            plan = msgspec.convert(await api.explain_drain(key.name), ExplainedDrain)
        except msgspec.ValidationError as error:
            raise Unavailable(f"the plan of a drain cannot be read: {error}") from error
        try:
            shown = shown_drain(plan, is_open=is_open)
        except Conflict as error:
            raise Conflict(f"{error.message}{await last_action(api, key)}") from error
        if wanted.dry_run:
            return json_response({"shown": shown.does, "does": [*shown.does, *shown.follows]})
        if wanted.shown != [*shown.does]:
            raise Conflict(f"{key} has changed meanwhile{await last_action(api, key)}: see what it would do now")
        return await self._carry_out(api, request, key, document, plan, is_open=is_open)

    async def _carry_out(
        self,
        api: GardenApiClient,
        request: Request,
        key: ObjectKey,
        document: Document,
        plan: ExplainedDrain,
        *,
        is_open: bool,
    ) -> Response:
        record = _once(api, request, key, f"drains it: {counted(len(plan.moves))} to other seeds")
        if is_open:
            await _cordon(api, key, document)
            await record()
        moved, rejected = 0, list[str]()
        for move in plan.moves:
            try:
                has_begun = await _begin(api, move)
            except Unavailable:
                raise
            except GardenbusError as error:
                rejected.append(f"{move.namespace}/{move.name} ({error.message})")
            else:
                if has_begun:
                    moved += 1
                    await record()
        _log.info("object.changed", verb="drain", object=str(key), moved=moved, rejected=len(rejected))
        return json_response({"ok": True, "verb": "drain", **key._asdict(), "words": outcome_words(moved, rejected)})


def _once(api: GardenApiClient, request: Request, key: ObjectKey, words: str) -> Record:
    """Records the Event of a drain with the first thing that it has changed."""
    done: list[None] = []

    async def record() -> None:
        if not done:
            done.append(None)
            await recorded(api, request, key, "Draining", words)

    return record


async def _cordon(api: GardenApiClient, key: ObjectKey, document: Document) -> None:
    """Cordon a seed, also where its status was written meanwhile. Raises Conflict where somebody else cordoned it."""
    for attempt in count(1):
        try:
            patch = planned("cordon", "seed", document).patch
            version = whole_number(section(document, "metadata").get("resourceVersion"))
        except Conflict as error:
            raise Conflict(f"{error.message}{await last_action(api, key)}: see what it would do now") from error
        try:
            await api.change(key, patch, version=version)
        except Conflict:
            if attempt == ATTEMPTS:
                raise
            document = await api.get(key)
        else:
            return


async def _begin(api: GardenApiClient, move: Move) -> bool:
    """Bind a shoot to another seed if it is on the seed still; returns whether it was."""
    key = ObjectKey("shoot", move.namespace, move.name)
    for attempt in count(1):
        try:
            shoot = await api.get(key)
        except NotFound:
            return False
        if section(shoot, "spec").get("seedName") != move.source:
            return False
        try:
            await api.bind(key, move.target, version=str(section(shoot, "metadata").get("resourceVersion") or ""))
        except Conflict:
            if attempt == ATTEMPTS:
                raise
        else:
            return True
    raise AssertionError
