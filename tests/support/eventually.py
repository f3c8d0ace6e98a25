"""Waiting in tests: look until it is so, never sleep and hope."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(check: Callable[[], Awaitable[T]], *, within: float, every: float = 0.1) -> T:
    """Call `check` until it raises no AssertionError; answer what it answered. Fails with its last failure."""
    deadline = time.monotonic() + within
    while True:
        try:
            return await check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(every)
