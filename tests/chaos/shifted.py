"""Starts a service whose clock somebody else can shift while it runs.

`python -m tests.chaos.shifted FILE MODULE ARGUMENTS…` runs the module as the main program. FILE holds one double, the
seconds that are added to the wall clock; whoever writes into it shifts the clock at once. What measures durations
(the monotonic clock) is not concerned, as with a real clock that is set.
"""

import mmap
import runpy
import struct
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

from gardenbus.common.runtime.clock import SystemClock

_FORMAT = struct.Struct("d")


class ClockShift:
    """The file, as the one who shifts sees it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_FORMAT.pack(0.0))

    def set(self, seconds: float) -> None:
        """Shift the clock to so many seconds before or behind the real one."""
        with self.file.open("r+b") as opened:
            opened.write(_FORMAT.pack(seconds))


def shift_clocks(file: Path) -> None:
    """Have this process' wall clocks follow a file from now on."""
    with file.open("r+b") as opened:
        shared = mmap.mmap(opened.fileno(), _FORMAT.size, access=mmap.ACCESS_READ)
    real_time, real_now = time.time, SystemClock.now

    def shifted_time() -> float:
        return real_time() + _FORMAT.unpack_from(shared)[0]

    def shifted_now(self: SystemClock) -> datetime:
        return real_now(self) + timedelta(seconds=_FORMAT.unpack_from(shared)[0])

    time.time = shifted_time
    SystemClock.now = shifted_now


def main() -> None:
    """Shift, then become the service."""
    file, module, *arguments = sys.argv[1:]
    shift_clocks(Path(file))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
