"""Requests that are sent again where no response comes: the server that held the request, or its response, may be gone.

Core NATS delivers at most once. Only for what may be carried out twice: reads, and manifests that are applied.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any

from gardenbus.common.errors import NoResponse

SILENCE_SECONDS = 5.0
"""Silence after which a request is sent again; after twice that it is sent for the last time."""
RECONNECT_SECONDS = 1.0
"""Time that a lost connection has to be made to another server."""

RequestSender = Callable[[float], Coroutine[Any, Any, bytes]]
"""Sends the request and returns the response, which has to come within so many seconds."""


async def first_response(send: RequestSender, timeout_seconds: float) -> bytes:
    """First response to a request that is sent up to three times. Raises what `send` does when there is none."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_seconds
    waiting: set[asyncio.Task[bytes]] = set()
    problem = NoResponse(f"no response within {timeout_seconds:g} s")
    try:
        for silence in (SILENCE_SECONDS, 2 * SILENCE_SECONDS, math.inf):
            left = deadline - loop.time()
            waiting.add(asyncio.create_task(send(left)))
            until = silence if silence < left else None  # the last one ends by itself
            done, waiting = await asyncio.wait(waiting, timeout=until, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if not isinstance(error := task.exception(), NoResponse):
                    return task.result()
                problem = error
            if done and deadline - loop.time() <= RECONNECT_SECONDS:
                break
            if done:  # the connection was lost
                await asyncio.sleep(RECONNECT_SECONDS)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    raise problem
