"""Line between one process and one server, which can be cut, made half open, or slowed down."""

import asyncio
import contextlib
import socket
import struct
from typing import Literal

LOOPBACK = "127.0.0.1"
CHUNK = 256 * 1024
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Line:
    """TCP proxy on a port of its own. `server_port` is looked up for each connection."""

    def __init__(self, server_port: int) -> None:
        self.port = 0
        self.delay_seconds = 0.0
        self._server_port = server_port
        self._state: Literal["open", "cut", "half-open"] = "open"
        self._listener: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen on a free port."""
        self._listener = await asyncio.start_server(self._accept, LOOPBACK, 0, limit=CHUNK)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End all connections and listen no more."""
        if self._listener is not None:
            self._listener.close()
        self._drop(resets=True)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self, *, resets: bool) -> None:
        """End all connections, and each new one at once."""
        self._state = "cut"
        self._drop(resets=resets)

    def half_open(self) -> None:
        """Swallow whatever is sent, in both directions; connections stay, and new ones are accepted."""
        self._state = "half-open"

    def heal(self) -> None:
        """Pass everything again. Connections that have lost something end."""
        if self._state == "half-open":
            self._drop(resets=True)
        self._state, self.delay_seconds = "open", 0.0

    def _drop(self, *, resets: bool) -> None:
        for writer in self._writers:
            transport = writer.transport
            connection = transport.get_extra_info("socket")
            if resets and connection is not None:
                with contextlib.suppress(OSError):
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._state == "cut":
            writer.transport.abort()
            return
        self._writers.add(writer)
        server: asyncio.StreamWriter | None = None
        try:
            from_server, server = await asyncio.open_connection(LOOPBACK, self._server_port, limit=CHUNK)
            self._writers.add(server)
            await asyncio.gather(self._pump(reader, server), self._pump(from_server, writer))
        finally:
            for each in (writer, server):
                if each is not None:
                    self._writers.discard(each)
                    each.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(CHUNK):
            if self.delay_seconds:
                await asyncio.sleep(self.delay_seconds)
            if self._state != "half-open":
                writer.write(chunk)
                await writer.drain()
        if not writer.is_closing():
            writer.write_eof()
