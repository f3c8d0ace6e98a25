"""JSON responses, and errors in the API's format."""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from gardenbus.common.errors import GardenbusError, TooManyRequests
from gardenbus.dashboard.web.body_limit import CLOSING, RequestEntityTooLarge

RETRY_AFTER_SECONDS = 5

_encode = msgspec.json.Encoder().encode


def json_response(value: Any, *, status: int = 200) -> Response:
    """Return a value as JSON."""
    return Response(_encode(value), status_code=status, media_type="application/json")


async def error_response(_: Request, error: Exception) -> Response:
    """Return the landscape's error, with its message."""
    if not isinstance(error, GardenbusError):
        raise error
    body = {"error": {"code": error.code, "reason": error.reason, "message": error.message}}
    response = json_response(body, status=error.code)
    if isinstance(error, TooManyRequests):
        response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    if error.code == RequestEntityTooLarge.code:
        response.headers.update(CLOSING)
    return response


async def unknown_address(request: Request, _: Exception) -> Response:
    """Respond to an address at which there is nothing: to browsers with a page that leads back."""
    path = request.url.path
    if path.startswith("/api/"):
        body = {"error": {"code": 404, "reason": "NotFound", "message": f"there is nothing at {path}"}}
        return json_response(body, status=404)
    return HTMLResponse(_UNKNOWN, status_code=404)


_UNKNOWN = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Not found · Gardenbus</title>
<h1>There is no page at this address</h1>
<p><a href="/">To the landscape</a></p>
</html>
"""
