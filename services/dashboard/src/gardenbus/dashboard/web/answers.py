"""How the page is answered: JSON, and errors in the form in which the API has them."""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gardenbus.common.errors import GardenbusError

_encode = msgspec.json.Encoder().encode


def answer(value: Any, *, status: int = 200) -> Response:
    """A value as JSON."""
    return Response(_encode(value), status_code=status, media_type="application/json")


async def refused(_: Request, error: Exception) -> Response:
    """What the landscape refused, with its sentence."""
    if not isinstance(error, GardenbusError):
        raise error
    body = {"error": {"code": error.code, "reason": error.reason, "message": error.message}}
    return answer(body, status=error.code)
