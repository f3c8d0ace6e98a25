"""Waiting in tests: for a state, within a bound that only ends a hang. No test sleeps and hopes."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from gardenbus.common.errors import Unavailable

T = TypeVar("T")

HANG_SECONDS = 120.0
"""Bound of a wait for one state. It ends a hang, and says nothing of how long the state may take."""


async def eventually(check: Callable[[], Awaitable[T]], *, within: float = HANG_SECONDS, every: float = 0.1) -> T:
    """Call `check` until it holds, and return its result; fails with its last failure and what was waited for.

    An AssertionError, or a `pytest.raises` without an exception, says that it does not hold yet, a LookupError that
    what it reads is not there yet, Unavailable that a server does not respond now. `within` is stated where a whole
    landscape has longer than HANG_SECONDS.
    """
    deadline = time.monotonic() + within
    while True:
        try:
            return await check()
        except (AssertionError, LookupError, Unavailable, pytest.fail.Exception) as failure:
            if time.monotonic() > deadline:
                failure.add_note(f"{getattr(check, '__qualname__', check)} did not hold within {within:g} s")
                raise
        await asyncio.sleep(every)
