"""HTTPS server on an open socket, with bounds on those who only connect."""

import asyncio
import socket
import ssl

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

HEADER_SECONDS = 10.0
"""Time for the handshake and the headers of a first request together."""

KEEPALIVE_SECONDS = 90.0
MOST_CONNECTIONS = 12_000
BACKLOG = 512


def listen_on(host: str, port: int) -> socket.socket:
    """Bind an address. Raises OSError when it is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening


class HttpsServer:
    """The server of an application."""

    def __init__(self, application: web.Application, listening: socket.socket, context: ssl.SSLContext) -> None:
        self._runner = web.AppRunner(
            application,
            access_log=None,
            keepalive_timeout=KEEPALIVE_SECONDS,
            handler_cancellation=True,
            shutdown_timeout=1.0,
        )
        self._socket = listening
        self._context = context
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begin to serve."""
        await self._runner.setup()
        self._server = await asyncio.get_running_loop().create_server(
            self._connection, sock=self._socket, ssl=self._context, ssl_handshake_timeout=HEADER_SECONDS
        )

    async def stop(self) -> None:
        """Accept no more, and end what goes on."""
        if self._server is not None:
            self._server.close()
        await self._runner.cleanup()

    def _connection(self) -> RequestHandler:
        """The protocol of one connection, which is closed unless a first request comes in time."""
        web_server = self._runner.server
        assert web_server is not None
        handler = web_server()
        asyncio.get_running_loop().call_later(HEADER_SECONDS, _close_silent, handler)
        if len(web_server.connections) >= MOST_CONNECTIONS:
            asyncio.get_running_loop().call_soon(handler.force_close)
        return handler


def _close_silent(handler: RequestHandler) -> None:
    """Close a connection on which no request has come: aiohttp itself has no bound on the first one's headers."""
    if handler.transport is not None and not getattr(handler, "_request_count", 1):
        handler.transport.close()
