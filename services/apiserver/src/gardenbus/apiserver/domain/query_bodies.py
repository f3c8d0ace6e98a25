"""Bodies of requests, read."""

from typing import TypeVar

import msgspec

from gardenbus.common.api.decoding import decode_json
from gardenbus.common.errors import BadRequest

Body = TypeVar("Body")


def read_body(body: bytes, wanted: type[Body], described: str) -> Body:
    """Read a body, which may be empty. Raises BadRequest, which begins as `described`."""
    try:
        return decode_json(body if body.strip() else b"{}", wanted)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"{described}: {error}") from error


def check_limit(limit: int) -> None:
    """Raise BadRequest where a query limits its response to nothing."""
    if limit < 1:
        raise BadRequest("limit: must be at least 1")
