"""Positions of streams for somebody outside the services, as the apiserver states them.

A stream's information names the subjects of everybody, and a message by its number may be anybody's: neither is granted
outside. A Lease of one's own is read by its subject (`direct_get`), the incarnation of a stream and the server's clock
come with a response of the apiserver's (`api.position.<stream>`), everything else by consumers.
"""

from datetime import datetime
from typing import NamedTuple

import msgspec

from gardenbus.common.adapters.nats.api import instant
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import NotFound, Unavailable
from gardenbus.common.ports.bus import StreamPosition

TIMEOUT_SECONDS = 5.0
_NOT_FOUND = 404


class _PositionResult(msgspec.Struct, frozen=True):
    created: str
    sequence: int
    now: str


class _Error(msgspec.Struct, frozen=True):
    message: str = ""
    code: int = 0


class _Response(msgspec.Struct, frozen=True):
    ok: bool = False
    result: _PositionResult | None = None
    error: _Error = _Error()


class StatedPosition(NamedTuple):
    """A stream's position, and the server's clock."""

    position: StreamPosition
    now: datetime


async def stated_position(connection: Connection, subjects: Subjects, user: str, stream: str) -> StatedPosition:
    """Request a stream's position from the apiserver. Raises NotFound, Unavailable."""
    subject = subjects.as_user(user, f"api.position.{stream}")
    found = await connection.request_raw(subject, b"", timeout_seconds=TIMEOUT_SECONDS)
    try:
        response = msgspec.json.decode(found.body, type=_Response)
        if response.result is not None and response.ok:
            position = StreamPosition(int(response.result.created), response.result.sequence)
            return StatedPosition(position, instant(response.result.now))
    except (msgspec.MsgspecError, ValueError) as error:
        raise Unavailable(f"{subject}: the apiserver's response cannot be read") from error
    failure = NotFound if response.error.code == _NOT_FOUND else Unavailable
    raise failure(response.error.message or f"{subject}: rejected without a reason")
