"""Watchdog: ends a process that computes for too long without returning to its event loop.

A thread that holds the interpreter ends neither itself nor another one; the kernel does it. A timer that counts the
processor time of this process (and so neither waits for servers nor the time for which a machine was stopped) is wound
up by the event loop again and again. When it runs out, its signal is handled without the interpreter: the stack of each
thread is written to stderr, then the process exits with the number of the signal. What it handled is delivered again.
Work in the side thread counts by itself, as the event loop goes on beside it.
"""

import asyncio
import ctypes
import faulthandler
import signal

from gardenbus.common.side_thread import computing_seconds

EXIT_CODE = int(signal.SIGPROF)
"""Exit code of a process that was ended."""

LONGEST_INTERVAL_SECONDS = 1.0
_TURNS = 10
"""Times that an idle loop winds the timer up before it would run out."""

_AT_ONCE_SECONDS = 1e-6
_STDERR = 2


class Watchdog:
    """The timer of one process, whose event loop must be running."""

    def __init__(self, seconds: float) -> None:
        """`seconds` of processor time; 0 for no watchdog."""
        self._seconds = seconds
        self._interval_seconds = min(LONGEST_INTERVAL_SECONDS, seconds / _TURNS)
        self._winding: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to count."""
        if not self._seconds:
            return
        _exit_on_signal()
        self._wind()

    def stop(self) -> None:
        """Count no more."""
        if self._winding is not None:
            self._winding.cancel()
            signal.setitimer(signal.ITIMER_PROF, 0)

    def _wind(self) -> None:
        is_over = computing_seconds() >= self._seconds
        signal.setitimer(signal.ITIMER_PROF, _AT_ONCE_SECONDS if is_over else self._seconds)
        self._winding = asyncio.get_running_loop().call_later(self._interval_seconds, self._wind)


def _exit_on_signal() -> None:
    """Have the signal write the stacks, and then call the C library's `_exit` with its number.

    The default action of a signal would not do: the first process of a container is exempt from it.
    """
    library = ctypes.CDLL(None)
    library.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
    library.signal.restype = ctypes.c_void_p
    library.signal(signal.SIGPROF, ctypes.cast(library["_exit"], ctypes.c_void_p))
    faulthandler.register(signal.SIGPROF, file=_STDERR, chain=True)
