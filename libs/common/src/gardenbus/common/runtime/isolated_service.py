"""The inner side of a process of its own: a service that handles what comes over a socket, one message at a time.

`ServiceContext.isolated` is set in such a process; a service then opens no queue and serves no request, but gives its
handlers to `IsolatedService.serve`. It ends when the socket is closed.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Literal, TypeVar

import msgspec
import structlog

from gardenbus.common.controller.isolation import Handle, IsolatedResult
from gardenbus.common.errors import Transient
from gardenbus.common.ports.bus import QueueMessage, StreamMessage

ISOLATED_VARIABLE = "GARDENBUS_ISOLATED_SOCKET"
LARGEST_LINE = 64 * 1024 * 1024
"""Bytes of a line on the socket: the largest message in base64, with its headers."""

LineType = TypeVar("LineType", bound=msgspec.Struct)

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Line(msgspec.Struct, frozen=True):
    """A line without content: the process is ready."""


class IsolatedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A message to handle, and the consumer whose handler does it."""

    consumer: str
    message: StreamMessage
    deliveries: int
    queued_ms: float
    is_held_over: bool


class IsolatedMessage:
    """A queue message whose end is noted; the service that fetched it carries it out."""

    def __init__(self, task: IsolatedTask) -> None:
        self.message = task.message
        self.deliveries = task.deliveries
        self.queued_ms = task.queued_ms
        self.is_held_over = task.is_held_over
        self.ended: Literal["acknowledged", "released", "kept"] = "kept"

    async def ack(self) -> None:
        """Note that it is finished."""
        self.ended = "acknowledged"

    async def release(self) -> None:
        """Note that it is to be delivered again."""
        self.ended = "released"

    async def in_progress(self) -> None:
        """Do nothing: the service that fetched it extends its deadline."""


class NotingQueue:
    """The queue of a handler in a process of its own: nothing is fetched, acknowledgements are noted."""

    depth = 0

    async def fetch(self, limit: int, wait_seconds: float) -> Sequence[QueueMessage]:  # noqa: ARG002
        """Return no message."""
        return ()

    async def ack_many(self, works: Sequence[QueueMessage]) -> None:
        """Note that messages are finished."""
        for work in works:
            await work.ack()


class IsolatedService:
    """The socket of a process of its own."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def of_environment(cls, environ: MutableMapping[str, str]) -> "IsolatedService | None":
        """The socket that a service has passed; None in any other process. Its own children do not inherit it."""
        descriptor = environ.pop(ISOLATED_VARIABLE, "")
        return cls(int(descriptor)) if descriptor else None

    async def serve(self, handlers: Mapping[str, Handle]) -> None:
        """Handle messages by the handlers of their consumers until the socket is closed; then stop the process."""
        reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=self._descriptor), limit=LARGEST_LINE)
        await write_line(writer, Line())
        while (task := await read_line(reader, IsolatedTask)) is not None:
            await write_line(writer, await _result_of(task, handlers[task.consumer]))
        os.kill(os.getpid(), signal.SIGTERM)


async def _result_of(task: IsolatedTask, handle: Handle) -> IsolatedResult:
    message = IsolatedMessage(task)
    try:
        await handle([message])
    except Transient as error:
        return IsolatedResult(transient=error.message)
    except Exception as error:  # noqa: BLE001 - the process goes on, and the service releases the message
        _log.exception("batch.failed", consumer=task.consumer, messages=1)
        return IsolatedResult(error=repr(error)[:1000])
    return IsolatedResult(ended=message.ended)


async def write_line(writer: asyncio.StreamWriter, line: msgspec.Struct) -> None:
    """Send a struct. Raises OSError."""
    writer.write(msgspec.json.encode(line) + b"\n")
    await writer.drain()


async def read_line(reader: asyncio.StreamReader, expected: type[LineType]) -> LineType | None:
    """Receive a struct; None where the other side is gone."""
    try:
        line = await reader.readline()
    except OSError:
        return None
    return msgspec.json.decode(line, type=expected) if line.endswith(b"\n") else None
