"""Waiting in tests: look until it is so, never sleep and hope."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

T = TypeVar("T")


async def eventually(check: Callable[[], Awaitable[T]], *, within: float, every: float = 0.1) -> T:
    """Call `check` until it holds, and answer what it answered; fails with its last failure.

    An AssertionError, or a `pytest.raises` without an exception, says that it does not hold yet, a LookupError that
    what it looks at is not there yet.
    """
    deadline = time.monotonic() + within
    while True:
        try:
            return await check()
        except (AssertionError, LookupError, pytest.fail.Exception):
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(every)
