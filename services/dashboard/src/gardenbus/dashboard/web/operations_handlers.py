"""Request handlers of the page of operations: checks, queues, services, and rejected messages with their replay."""

from typing import cast

import structlog
import yaml
from starlette.requests import Request
from starlette.responses import Response

from gardenbus.common.api.document import Document
from gardenbus.common.api.numbers import whole_number
from gardenbus.common.api.redaction import redacted
from gardenbus.common.errors import BadRequest, Forbidden
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.watch.operations import OperationsCache
from gardenbus.dashboard.web.responses import json_response
from gardenbus.diagnostics.rejected_messages import RejectedMessage
from gardenbus.diagnostics.replay import rejected_after, rejected_message, replay_message

PAGE = 20

_log = structlog.stdlib.get_logger()


class OperationsHandlers:
    """Read-only handlers, and the replay of a rejected message."""

    def __init__(self, *, operations: OperationsCache, api: GardenApiClient, is_operators: bool) -> None:
        self._operations = operations
        self._api = api
        self._is_operators = is_operators

    async def checks(self, _: Request) -> Response:
        """Respond with the findings of the checks."""
        self._check_operator()
        return json_response(await self._operations.checks())

    async def queues(self, _: Request) -> Response:
        """Respond with the work queues."""
        self._check_operator()
        return json_response(await self._operations.queues())

    async def services(self, _: Request) -> Response:
        """Respond with services, their versions and replicas."""
        self._check_operator()
        return json_response(await self._operations.services())

    async def rejected(self, request: Request) -> Response:
        """Respond with a page of rejected messages, the newest first: those with a number below `before`."""
        self._check_operator()
        text = request.query_params.get("before", "")
        before = whole_number(text, -1)
        if (text and before < 0) or set(request.query_params) - {"before"}:
            raise BadRequest("before is a number, and the only parameter")
        position = await self._api.bus.position(self._api.subjects.stream("REJECTED"))
        last = min(position.sequence, before - 1) if text else position.sequence
        found = await rejected_after(self._api, max(0, last - PAGE), upto_sequence=last)
        older = max(0, last - PAGE)
        return json_response(
            {"items": [dict(each.row) for each in reversed(found)], "older": older + 1 if older else 0}
        )

    async def rejected_body(self, request: Request) -> Response:
        """Respond with a rejected message as it was kept, credentials hidden. Raises NotFound, BadRequest."""
        self._check_operator()
        original = await self._original(request)
        return json_response({**original.row, "isCut": original.is_cut, "body": _shown_body(original)})

    async def replay(self, request: Request) -> Response:
        """Send a rejected message again to where it was sent. Raises NotFound, BadRequest."""
        self._check_operator()
        original = await self._original(request)
        outcome = await replay_message(self._api, original, original.body)
        _log.info("message.replayed", id=original.id, subject=original.subject, outcome=outcome.state)
        shown: Document = {"state": outcome.state, "message": outcome.message, "repeated": outcome.repeated}
        return json_response(shown | {"isDuplicate": outcome.is_duplicate})

    async def _original(self, request: Request) -> RejectedMessage:
        if (number := whole_number(request.path_params["id"], -1)) < 0:
            raise BadRequest("a rejected message is named by its number")
        return await rejected_message(self._api, number)

    def _check_operator(self) -> None:
        """Raise Forbidden for those who see a part: messages, and what is checked, are of the whole landscape."""
        if not self._is_operators:
            raise Forbidden("servers, queues and rejected messages take the role operator of the landscape")


def _shown_body(original: RejectedMessage) -> str:
    document = original.document
    if isinstance(document, dict):
        return yaml.safe_dump(redacted(cast("Document", document)), sort_keys=False, allow_unicode=True)
    return f"({len(original.body)} bytes that are no manifest)"
