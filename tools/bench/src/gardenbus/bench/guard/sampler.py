"""Sampler inside a process: each few milliseconds of its CPU, the function of ours that is at work, with the time.

It needs no rights over other processes: the kernel signals CPU time in user mode (`ITIMER_VIRTUAL`; the watchdog of a
service has `ITIMER_PROF`), and Python calls the handler with the frame. A service knows nothing of it: `started_by`
makes a folder for `PYTHONPATH` whose `sitecustomize` starts it in each Python process of that environment, and in what
the fork server makes. Nothing costs anything without that folder. What was sampled is written when the process ends,
to `<pid>.json`.

A sample counts for the innermost function of ours on the stack, whoever it called for it; without one of ours, for the
innermost one.
"""

import atexit
import os
import signal
import sys
import sysconfig
import time
from pathlib import Path
from types import CodeType, FrameType

import msgspec

INTERVAL_SECONDS = 0.004
MOST_SAMPLES = 200_000
_OURS = "gardenbus."
_FORK_SERVER = "gardenbus.embedded.fork_server"
"""The one whose children stay Python: a timer that outlives an exec ends a program that does not expect its signal."""

_STARTER = "from gardenbus.bench.guard import sampler\nsampler.start({folder!r})\n"


class SampleFile(msgspec.Struct, frozen=True):
    """Samples of one process: names of functions, and for each sample when (monotonic seconds) and which."""

    functions: list[str]
    samples: list[tuple[float, int]]


class _Samples:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers: dict[CodeType, int] = {}
        self._names: list[str] = []
        self._taken: list[tuple[float, int]] = []
        paths = sysconfig.get_paths()
        self._others = tuple(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))

    def begin(self) -> None:
        """Sample this process from now on."""
        self._taken.clear()
        signal.setitimer(signal.ITIMER_VIRTUAL, INTERVAL_SECONDS, INTERVAL_SECONDS)

    def take(self, _: int, innermost: FrameType | None) -> None:
        """Note the function that is at work."""
        if innermost is None or len(self._taken) >= MOST_SAMPLES:
            return
        frame: FrameType | None = innermost
        while frame is not None and not self._is_ours(frame):
            frame = frame.f_back
        at_work = frame or innermost
        number = self._numbers.get(at_work.f_code)
        if number is None:
            number = self._numbers[at_work.f_code] = len(self._names)
            self._names.append(f"{_module(at_work)}:{at_work.f_code.co_qualname}")
        self._taken.append((time.monotonic(), number))

    def _is_ours(self, frame: FrameType) -> bool:
        """True for what is in a module of ours, or in a file beside the installed packages."""
        if str(frame.f_globals.get("__name__")).startswith(_OURS):
            return True
        file = frame.f_code.co_filename
        return file.startswith("/") and not file.startswith(self._others)

    def write(self) -> None:
        """Write all that was sampled, by time: a signal may interrupt the handler of the one before it."""
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        file = self._folder / f"{os.getpid()}.json"
        file.write_bytes(msgspec.json.encode(SampleFile(self._names, sorted(self._taken))))


def _module(frame: FrameType) -> str:
    name = str(frame.f_globals.get("__name__"))
    return Path(frame.f_code.co_filename).parent.name if name == "__main__" else name


def start(folder: str) -> None:
    """Sample this process, and what is forked of it, until the end."""
    samples = _Samples(Path(folder))
    signal.signal(signal.SIGVTALRM, samples.take)
    signal.siginterrupt(signal.SIGVTALRM, False)
    if _FORK_SERVER in sys.orig_argv:
        os.register_at_fork(after_in_child=samples.begin)
    atexit.register(samples.write)
    samples.begin()


def started_by(folder: Path, starter: Path) -> dict[str, str]:
    """Environment in which each Python process writes its samples to a folder; `starter` is another, which it fills.

    What stands on PYTHONPATH stays before it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    starter.mkdir(parents=True, exist_ok=True)
    (starter / "sitecustomize.py").write_text(_STARTER.format(folder=str(folder)), encoding="utf-8")
    before = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{before}{os.pathsep}{starter}" if before else str(starter)}


def read(folder: Path, pid: int) -> SampleFile | None:
    """Samples of a process that has ended; None where it wrote none."""
    file = folder / f"{pid}.json"
    return msgspec.json.decode(file.read_bytes(), type=SampleFile) if file.exists() else None
