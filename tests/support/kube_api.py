"""An HTTP server in the place of an API server, which answers as a test says: what a real one cannot be made to do."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def a_status(code: int, message: str = "no", *, headers: dict[str, str] | None = None, **details: object) -> Handler:
    """Answers everything with a Status."""

    async def handler(_request: web.Request) -> web.Response:
        body = {"kind": "Status", "code": code, "message": message, **details}
        return web.json_response(body, status=code, headers=headers)

    return handler


@asynccontextmanager
async def an_api_server(handler: Handler) -> AsyncGenerator[str]:
    """The URL of a server with one handler for everything."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
