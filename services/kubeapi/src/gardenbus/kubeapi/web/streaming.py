"""The stream of a watch: a line of JSON for each event, as it comes, until the watch ends."""

import asyncio

from aiohttp import web

from gardenbus.kubeapi.domain.negotiation import JSON
from gardenbus.kubeapi.requests.responses import ApiRequest
from gardenbus.kubeapi.requests.watches import WatchServer
from gardenbus.kubeapi.watch.watchers import Watcher

UNREAD_SECONDS = 60.0
"""Time after which a client that reads nothing is cut off."""


async def stream(request: web.Request, watches: WatchServer, watched: ApiRequest) -> web.StreamResponse:
    """Serve a watch to its end. Raises what opening it raises, before anything is sent."""
    async with watches.open(watched) as (watcher, seconds):
        response = web.StreamResponse(headers={"Content-Type": JSON, "Cache-Control": "no-cache, private"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        try:
            async with asyncio.timeout(seconds):
                await _send(watcher, response)
        except TimeoutError:
            watches.last_bookmark(watcher)
            watcher.end()
        try:
            async with asyncio.timeout(UNREAD_SECONDS):
                await _send(watcher, response)
                await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                request.transport.close()
        return response


async def _send(watcher: Watcher, response: web.StreamResponse) -> None:
    while lines := await watcher.lines():
        await response.write(b"".join(lines))
