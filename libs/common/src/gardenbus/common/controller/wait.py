"""Periodic work, as apimachinery's package `wait` has it."""

from collections.abc import Awaitable, Callable
from typing import NoReturn

from gardenbus.common.controller.reconcile_ids import bound_reconcile_id
from gardenbus.common.errors import Transient

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
