"""Plants a poll of 10 ms in the autoscaler."""

import asyncio
import sys
from pathlib import Path
from typing import Any

sys.path.insert(1, str(Path(__file__).parents[1]))

import chained

if "gardenbus.embedded.fork_server" in sys.orig_argv:
    from gardenbus.common.runtime import service

    serve_before = service.serve

    async def poll_every_10_ms() -> None:
        while True:
            await asyncio.sleep(0.01)

    async def serve_with_a_poll(name: str, *arguments: Any) -> int:
        polling = asyncio.create_task(poll_every_10_ms()) if name == "autoscaler" else None
        try:
            return await serve_before(name, *arguments)
        finally:
            if polling is not None:
                polling.cancel()

    service.serve = serve_with_a_poll

chained.start_others(__file__)
