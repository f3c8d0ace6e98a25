"""Gardenlets that are killed: a life is a fork of the test's process, and ends by SIGKILL where it is told to.

A fork costs a hundredth of a new interpreter, and ends as a process does: nothing is closed, no task is cancelled, and
what it has started goes on.
"""

import asyncio
import os
import signal
import traceback
import warnings
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from tests.support.cutting import CutAfter

KILLED = -signal.SIGKILL


def live(life: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """Run a coroutine in a process of its own; returns its exit code, negative for a signal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of pytest's plug-ins do not matter to the child
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            asyncio.run(life())
            code = 0
        except BaseException:  # noqa: BLE001  nothing of the child may get back into the test's own frames
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


class Kills:
    """The places at which lives were killed already, in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @property
    def places(self) -> list[str]:
        """All of them, in order."""
        return self._file.read_text().splitlines() if self._file.exists() else []

    async def survive(self, awaited: Awaitable[Any], place: str, times: tuple[int, ...]) -> None:
        """Wait for it, and be killed at the first of these awaits where nobody was killed yet; -1: before it begins."""
        left = [each for each in times if f"{place} {each}" not in self.places]
        if left and left[0] < 0:
            self._die(f"{place} {left[0]}")
        await (_KilledAfter(awaited, left[0], lambda: self._die(f"{place} {left[0]}")) if left else awaited)

    def _die(self, place: str) -> None:
        with self._file.open("a") as file:
            file.write(f"{place}\n")
        os.kill(os.getpid(), signal.SIGKILL)


class _KilledAfter(CutAfter):
    def __init__(self, awaited: Awaitable[Any], times: int, die: Callable[[], None]) -> None:
        super().__init__(awaited, times)
        self._die = die

    def cut(self) -> None:
        self._die()
