"""uvicorn inside the service's own loop: the service says when it starts and stops, not uvicorn's signals."""

import asyncio
import contextlib
import socket
from collections.abc import Generator

import uvicorn
from starlette.types import ASGIApp

START_STEP_SECONDS = 0.01
BACKLOG = 256


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave SIGTERM and SIGINT to the service."""
        yield


class Listening:
    """One HTTP server. Raises OSError when the address is taken."""

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError:
            self._socket.close()
            raise
        self._socket.listen(BACKLOG)
        shown = "127.0.0.1" if host in {"0.0.0.0", "::", ""} else host  # noqa: S104 - only compared
        name = f"[{shown}]" if ":" in shown else shown
        self.url = f"http://{name}:{self._socket.getsockname()[1]}"
        configuration = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(configuration)

    async def run(self) -> None:
        """Serve until stopped."""
        await self._server.serve(sockets=[self._socket])

    async def started(self) -> None:
        """Return once it serves."""
        while not self._server.started:  # noqa: ASYNC110 - uvicorn only offers a flag
            await asyncio.sleep(START_STEP_SECONDS)

    async def stop(self) -> None:
        """Take no new requests, and end those in hand soon."""
        self._server.should_exit = True
