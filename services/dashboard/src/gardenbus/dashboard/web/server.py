"""uvicorn inside the service's own loop: the service starts and stops it, not uvicorn's signal handlers."""

import contextlib
import socket
from collections.abc import Generator

import uvicorn
from starlette.types import ASGIApp

from gardenbus.dashboard.web.open_pages import MOST_PAGES

MOST_HEAD_BYTES = 32 * 1024
"""Bytes of a request's line and headers."""

MOST_CONNECTIONS = MOST_PAGES + 300
"""Connections at a time, of those who have logged in and of others; beyond them uvicorn responds with 503."""


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave SIGTERM and SIGINT to the service."""
        yield


class HttpServer:
    """HTTP server on an open socket."""

    def __init__(self, app: ASGIApp, listening: socket.socket) -> None:
        self._socket = listening
        configuration = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=30,
            h11_max_incomplete_event_size=MOST_HEAD_BYTES,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(configuration)

    async def run(self) -> None:
        """Serve until stopped."""
        await self._server.serve(sockets=[self._socket])

    def stop(self) -> None:
        """Accept no new requests, and end pending ones soon."""
        self._server.should_exit = True
