"""`/healthz` of a local seed: real HTTP on the loopback, with a switch that makes it fail.

It fails while the file `healthz-fails` is in the seed's directory. `POST /fail` makes that file, `DELETE /fail`
removes it.
"""

from pathlib import Path

from aiohttp import web

from gardenbus.agent.files import FILE_MODE


class HealthServer:
    """Server of one seed on a free port."""

    def __init__(self, switch: Path) -> None:
        self._switch = switch
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self) -> None:
        """Start listening."""
        application = web.Application()
        application.router.add_get("/healthz", self._healthz)
        application.router.add_post("/fail", self._fail)
        application.router.add_delete("/fail", self._heal)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _healthz(self, _request: web.Request) -> web.Response:
        if self._switch.exists():
            return web.Response(status=500, text="failing, as requested\n")
        return web.Response(text="ok\n")

    async def _fail(self, _request: web.Request) -> web.Response:
        self._switch.touch(mode=FILE_MODE)
        return web.Response(text="fails from now on\n")

    async def _heal(self, _request: web.Request) -> web.Response:
        self._switch.unlink(missing_ok=True)
        return web.Response(text="is well again\n")
