"""`up --detach` and `down`: a supervisor in the background, started and ended by its directory."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gardenbus.cli.local.directory import LandscapeDirectory, LandscapeFile, open_for_owner, writing
from gardenbus.embedded.leftovers import end_leftovers
from gardenbus.embedded.start_order import WAITING, WARNING

READY_SECONDS = 90.0
DOWN_SECONDS = 30.0
POLL_SECONDS = 0.05
LOG = "up.log"
COMPLAINT = "gardenbus: "
"""Beginning of a line by `output.say_error`."""

_REMARK = re.compile(rf"\s*[0-9.]+ s  ((?:{WAITING}|{WARNING})\b.*)")


class DetachFailed(Exception):
    """The supervisor ended (with `code`), or was not ready in time; the message has its last words."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def start_detached(
    directory: LandscapeDirectory, arguments: Sequence[str], notify: Callable[[str], None]
) -> LandscapeFile:
    """Run `gardenbus <arguments>` in a session of its own until its landscape is ready.

    `notify` gets the lines of its log that report what it waits for, and warnings. Stopped (Ctrl-C, SIGTERM), it ends
    what it began. Raises DetachFailed, DirectoryUnwritable.
    """
    directory.prepare()
    log = directory.logs / LOG
    with _stop_signals() as stop_signals, writing(log), os.fdopen(open_for_owner(log, os.O_TRUNC), "wb") as output:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "gardenbus.cli.main", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        landscape = _ready(directory, process, stop_signals, notify)
        if landscape is not None and not stop_signals:
            return landscape
        _end(directory, process)
    raise SystemExit(128 + stop_signals[0])


@contextmanager
def _stop_signals() -> Generator[list[int]]:
    """Collect SIGINT, SIGTERM and SIGHUP instead of ending by them: none comes between a start and its knowledge."""
    numbers: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _frame: numbers.append(number))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield numbers
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(directory: LandscapeDirectory, process: "subprocess.Popen[bytes]") -> None:
    """End a supervisor, and what it leaves behind where it does not end in time."""
    process.terminate()
    try:
        process.wait(DOWN_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    end_leftovers(directory)


def _ready(
    directory: LandscapeDirectory,
    process: "subprocess.Popen[bytes]",
    stop_signals: Sequence[int],
    notify: Callable[[str], None],
) -> LandscapeFile | None:
    """Wait until the landscape of a supervisor is ready; None where a signal ends the wait. Raises DetachFailed."""
    log = directory.logs / LOG
    deadline = time.monotonic() + READY_SECONDS
    shown = 0
    while not stop_signals:
        landscape = directory.read()
        remarks = remarks_in(log.read_text(errors="replace"))
        for line in remarks[shown:]:
            notify(line)
        shown = len(remarks)
        if landscape and landscape.state == "ready" and landscape.supervisor_pid == process.pid:
            return landscape
        if process.poll() is not None:
            raise DetachFailed(_last_words(log), process.returncode)
        is_starting = landscape and landscape.state == "starting" and landscape.supervisor_pid == process.pid
        if time.monotonic() > deadline and not is_starting:  # it has a limit of its own, by how much there is to start
            _end(directory, process)
            raise DetachFailed(f"not ready within {READY_SECONDS:g} s: {_last_words(log)}")
        time.sleep(POLL_SECONDS)
    return None


def remarks_in(log: str) -> list[str]:
    """The whole lines of a supervisor's log that say what it waits for, and its warnings, without their times."""
    whole, _, _ = log.rpartition("\n")
    return [found[1] for line in whole.splitlines() if (found := _REMARK.match(line))]


def stop_supervisor(directory: LandscapeDirectory) -> bool:
    """Stop the landscape of a directory and wait until it is; False when none was running.

    A supervisor that does not stop in time is killed, and what it leaves behind is ended. Raises DirectoryUnwritable
    where somebody else could have written which processes those are.
    """
    directory.check_owner()
    pid = directory.supervisor()
    if pid is None:
        return bool(end_leftovers(directory))
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + DOWN_SECONDS
    while directory.supervisor() == pid:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            end_leftovers(directory)
            break
        time.sleep(POLL_SECONDS)
    return True


def _last_words(log: Path, lines: int = 10) -> str:
    """The errors in a log; without any, the end of the log."""
    output_lines = log.read_text(errors="replace").splitlines()
    complaints = [line.removeprefix(COMPLAINT) for line in output_lines if line.startswith(COMPLAINT)]
    return "\n".join((complaints or output_lines)[-lines:])
