"""Periodic work, as apimachinery's package `wait` has it, and a sleep between its rounds that can be interrupted."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn

import structlog

from gardenbus.common.controller.cancellation import unless_set
from gardenbus.common.controller.reconcile_ids import bound_reconcile_id
from gardenbus.common.errors import NotFound, Transient
from gardenbus.common.ports.clock import Clock

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

RETRY_SECONDS = 0.5
"""Pause of a loop after a server did not respond, unless it has a reason for another."""

Sleep = Callable[[float], Awaitable[object]]
"""Sleep for so many seconds: a clock's, or one that can be interrupted."""


async def forever(
    work: Callable[[], Awaitable[object] | None],
    *,
    period_seconds: float,
    sleep: Sleep,
    interrupted: Callable[[Transient], object] | None = None,
    is_immediate: bool = True,
) -> NoReturn:
    """Do something, sleep for a period, and so on until cancelled: `wait.Forever`.

    Raises what the work raises, but for Transient where `interrupted` logs it. Not `is_immediate`, it sleeps first.
    """
    if not is_immediate:
        await sleep(period_seconds)
    while True:
        try:
            with bound_reconcile_id():
                if (done := work()) is not None:
                    await done
        except Transient as error:
            if interrupted is None:
                raise
            interrupted(error)
        await sleep(period_seconds)


async def keep_following(
    content: str,
    follow: Callable[[], Awaitable[None]],
    *,
    sleep: Sleep = asyncio.sleep,
    interrupted: Callable[[], object] = lambda: None,
) -> NoReturn:
    """Follow a stream for ever: again, after a pause, when a server is away or the stream is not there."""
    while True:
        try:
            await follow()
        except (Transient, NotFound) as error:
            _log.warning("stream.interrupted", content=content, reason=error.message)
            interrupted()
        await sleep(RETRY_SECONDS)


class InterruptibleSleep:
    """Sleeps by a clock until interrupted. An interrupt while nobody sleeps ends the next sleep at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._interrupted = asyncio.Event()

    def interrupt(self) -> None:
        """End the current sleep, or the next one."""
        self._interrupted.set()

    async def pause(self, seconds: float) -> None:
        """Sleep until interrupted or the time is over."""
        await unless_set(self._interrupted, self._clock.sleep(seconds))
        self._interrupted.clear()
