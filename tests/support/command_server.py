"""Command server: a process that has imported what the commands of `gardenbus` need, and forks for each that is run.

`python command_server.py SOCKET PARENT` listens on a socket, with neither threads nor an event loop, and ends with its
parent, when it removes the socket's directory. A launcher connects, sends its arguments, environment, directory and
the three standard streams, then signals, each a byte; it gets the way in which the command ended. The command is killed
with its launcher. Linux only.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import io
import marshal
import os
import select
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

LARGEST_REQUEST = 1024 * 1024
STREAMS = 3
CHECK_SECONDS = 2.0
"""Between checks that the process which is served still runs."""

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve until the end of the process that started this one."""
    path, parent = sys.argv[1], int(sys.argv[2])

    def end(number: int, frame: object) -> None:
        del number, frame
        if os.getppid() == parent:  # the thread that started this one has ended, its process goes on
            return
        shutil.rmtree(Path(path).parent, ignore_errors=True)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    _die_with(parent, signal.SIGTERM)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(path)
        listening.listen(128)
        _import_commands()
        gc.collect()
        gc.freeze()
        server = os.getpid()
        listening.settimeout(CHECK_SECONDS)
        while True:
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                end(0, None)
                continue
            if not os.fork():
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                _die_with(server, signal.SIGKILL)
                listening.close()
                _attend(connection)
            connection.close()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def _import_commands() -> None:
    from gardenbus.cli.main import COMMANDS  # noqa: PLC0415  launchers connect meanwhile

    for module in sorted({entry.where.partition(":")[0] for entry in COMMANDS.values()} - {""}):
        importlib.import_module(f"gardenbus.cli.commands.{module}")
    importlib.import_module("gardenbus.common.adapters.nats.jetstream")


def _attend(connection: socket.socket) -> NoReturn:
    """Run the command of one launcher to its end, and send how it ended."""
    body, streams, _, _ = socket.recv_fds(connection, LARGEST_REQUEST, STREAMS)
    if len(streams) != STREAMS:
        os._exit(0)
    attendant = os.getpid()
    command = os.fork()
    if not command:
        _die_with(attendant, signal.SIGKILL)
        connection.close()
        _run(body, streams)
    for stream in streams:
        os.close(stream)
    _pass_signals_on(connection, os.pidfd_open(command))
    _, status = os.waitpid(command, 0)
    with contextlib.suppress(OSError):
        connection.send(marshal.dumps(os.waitstatus_to_exitcode(status)))
    os._exit(0)


def _pass_signals_on(connection: socket.socket, command: int) -> None:
    """Send signals to a command until it has ended; SIGKILL once its launcher is gone."""
    while True:
        ready, _, _ = select.select([command, connection], [], [])
        if command in ready:
            return
        numbers = connection.recv(64)
        for number in numbers or bytes([signal.SIGKILL]):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(command, number)
        if not numbers:
            return


def _run(body: bytes, streams: Sequence[int]) -> NoReturn:
    """Be the command from here on, as in an interpreter that has just started."""
    argv, environ, directory = marshal.loads(body)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    os.chdir(directory)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = list(argv)
    sys.stdin = _text(0, "surrogateescape")
    sys.stdout = _text(1, "strict", is_buffered=not os.isatty(1))
    sys.stderr = _text(2, "backslashreplace")
    code = 1
    try:
        from gardenbus.cli.main import main as run_command  # noqa: PLC0415  imported long ago

        run_command()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
    except BaseException:  # noqa: BLE001  as an interpreter does with what nobody has caught
        traceback.print_exc()
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
    for finish in (atexit._run_exitfuncs, sys.stdout.flush, sys.stderr.flush):  # pyright: ignore[reportPrivateUsage]
        with contextlib.suppress(OSError, ValueError):
            finish()
    os._exit(code)


def _text(number: int, errors: str, *, is_buffered: bool = False) -> io.TextIOWrapper:
    raw = io.FileIO(number, "w" if number else "r", closefd=False)
    binary = io.BufferedWriter(raw) if number else io.BufferedReader(raw)
    return io.TextIOWrapper(binary, encoding="utf-8", errors=errors, line_buffering=not is_buffered)


def _die_with(parent: int, number: signal.Signals) -> None:
    """Request a signal for the death of the parent, and end if it has died already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


if __name__ == "__main__":
    main()
