"""The `/healthz` of a local seed: real HTTP on the loopback, and a switch that makes it fail.

It fails while the file `healthz-fails` is in the seed's directory. `POST /fail` makes that file, `DELETE /fail`
removes it.
"""

from http import HTTPStatus
from pathlib import Path

from gardenbus.common.runtime.http_server import HttpServer, Request, Response


class HealthServer:
    """One seed's server on a free port."""

    def __init__(self, switch: Path) -> None:
        self._switch = switch
        self._server = HttpServer(self._answer)
        self.url = ""

    async def start(self) -> None:
        """Listen."""
        self.url = f"http://127.0.0.1:{await self._server.start('127.0.0.1', 0)}"

    async def stop(self) -> None:
        """Stop listening."""
        await self._server.stop()

    async def _answer(self, request: Request) -> Response:
        match request:
            case ("GET" | "HEAD", "/healthz"):
                return self._healthz()
            case ("POST", "/fail"):
                self._switch.touch()
                return Response(b"fails from now on\n")
            case ("DELETE", "/fail"):
                self._switch.unlink(missing_ok=True)
                return Response(b"is well again\n")
            case (_, "/healthz" | "/fail"):
                return Response(b"not this way\n", HTTPStatus.METHOD_NOT_ALLOWED)
            case _:
                return Response(b"not found\n", HTTPStatus.NOT_FOUND)

    def _healthz(self) -> Response:
        if self._switch.exists():
            return Response(b"failing, as asked for\n", HTTPStatus.INTERNAL_SERVER_ERROR)
        return Response(b"ok\n")
