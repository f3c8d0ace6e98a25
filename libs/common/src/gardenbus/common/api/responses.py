"""Responses to requests below `<prefix>.api.`, and to those that the apiserver relays."""

import msgspec

from gardenbus.common.errors import GardenbusError

_encode = msgspec.json.Encoder().encode


def success(result: object) -> bytes:
    """A successful response of the API."""
    return _encode({"ok": True, "result": result, "warnings": []})


def failure(error: GardenbusError) -> bytes:
    """A response of the API that carries an error."""
    return _encode(
        {"ok": False, "error": {"code": error.code, "reason": error.reason, "message": error.message, "details": []}}
    )
