"""JSON responses, and errors in the API's format."""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gardenbus.common.errors import GardenbusError

_encode = msgspec.json.Encoder().encode


def json_response(value: Any, *, status: int = 200) -> Response:
    """Return a value as JSON."""
    return Response(_encode(value), status_code=status, media_type="application/json")


async def error_response(_: Request, error: Exception) -> Response:
    """Return the landscape's error, with its message."""
    if not isinstance(error, GardenbusError):
        raise error
    body = {"error": {"code": error.code, "reason": error.reason, "message": error.message}}
    return json_response(body, status=error.code)
