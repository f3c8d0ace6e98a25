"""Line between one process and one server, which can be cut, made half open, or slowed down."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from typing import Literal

LOOPBACK = "127.0.0.1"
CHUNK = 256 * 1024
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def everybody(_source: str) -> bool:
    """True: wherever a connection comes from."""
    return True


class Line:
    """TCP proxy on a port of its own. `server_port` is looked up for each connection."""

    def __init__(self, server_port: int) -> None:
        self.port = 0
        self.delay_seconds = 0.0
        self._server_port = server_port
        self._state: Literal["open", "cut", "half-open"] = "open"
        self._listener: asyncio.Server | None = None
        self._is_hit = everybody
        self._healed = asyncio.Event()
        self._writers: dict[asyncio.StreamWriter, str] = {}
        """Both ends of each connection, and the address that it comes from."""
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
        self._healed.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self, *, resets: bool) -> None:
        """End all connections, and each new one at once."""
        self._state = "cut"
        self._drop(resets=resets)

    def half_open(self, is_hit: Callable[[str], bool] = everybody) -> None:
        """Swallow whatever is sent, in both directions, ends included; connections stay, and new ones are accepted.

        `is_hit` says of the address that a connection comes from whether it is one of those.
        """
        self._state, self._is_hit = "half-open", is_hit
        self._healed.clear()

    def heal(self) -> None:
        """Pass everything again. Connections that have lost something end."""
        if self._state == "half-open":
            self._drop(resets=True, is_hit=self._is_hit)
        self._state, self.delay_seconds = "open", 0.0
        self._healed.set()

    def _drop(self, *, resets: bool, is_hit: Callable[[str], bool] = everybody) -> None:
        for writer in [writer for writer, source in self._writers.items() if is_hit(source)]:
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
        source = writer.get_extra_info("peername")[0]
        self._writers[writer] = source
        server: asyncio.StreamWriter | None = None
        try:
            from_server, server = await asyncio.open_connection(LOOPBACK, self._server_port, limit=CHUNK)
            self._writers[server] = source
            await asyncio.gather(self._pump(reader, server, source), self._pump(from_server, writer, source))
        finally:
            for each in (writer, server):
                if each is not None:
                    self._writers.pop(each, None)
                    each.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: str) -> None:
        try:
            while chunk := await reader.read(CHUNK):
                if self.delay_seconds:
                    await asyncio.sleep(self.delay_seconds)
                if not self._swallows(source):
                    writer.write(chunk)
                    await writer.drain()
        finally:
            if self._swallows(source):  # nobody on the other side learns that it has ended
                await self._healed.wait()
        if not writer.is_closing():
            writer.write_eof()

    def _swallows(self, source: str) -> bool:
        return self._state == "half-open" and self._is_hit(source)
