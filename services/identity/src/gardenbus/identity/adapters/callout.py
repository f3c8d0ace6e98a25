"""NATS' auth callout (ADR-26): a server requests on one subject whether a connection may come in."""

import contextlib
from collections.abc import AsyncGenerator, Callable

import structlog

from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import Credentials
from gardenbus.common.adapters.nats.messages import RawMessage, publish_command
from gardenbus.common.errors import BadRequest

CALLOUT_SUBJECT = "$SYS.REQ.USER.AUTH"
GROUP = "identity"
"""Replicas share the requests."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@contextlib.asynccontextmanager
async def serve_callouts(
    url: str, name: str, credentials: Credentials, respond: Callable[[str], str]
) -> AsyncGenerator[Connection]:
    """Respond to callouts as the user that may; what `respond` rejects with BadRequest gets no response."""
    connection = Connection()

    def receive(message: RawMessage) -> None:
        try:
            response = respond(message.body.decode("ascii", "replace"))
        except BadRequest as error:
            log.warning("callout.unreadable", reason=error.message)
            return
        connection.send_nowait((publish_command(message.reply, response.encode()),))

    await connection.open(url, name, credentials=credentials, on_reconnect=lambda: None)
    try:
        await connection.listen(CALLOUT_SUBJECT, receive, queue=GROUP)
        await connection.flush_fully()
        yield connection
    finally:
        await connection.close()
