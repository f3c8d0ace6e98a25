"""Runs one command: JSON in, JSON out, in a process group of its own, for a limited time.

Whoever is cancelled here ends the whole group first: SIGTERM, and SIGKILL a while later. A command whose gardenlet was
killed goes on; it is found by a variable of its environment (`end_survivors`). Linux only: that is read from `/proc`.
"""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

OWNER_VARIABLE = "GARDENBUS_EXEC_SEED_DIRECTORY"
MOST_OUTPUT_BYTES = 1 << 20
_MOST_LINES = 1000
_MOST_LINE_BYTES = 4096
_CHUNK_BYTES = 1 << 16
_POLL_SECONDS = 0.05
_PROC = Path("/proc")


class CommandLimits(NamedTuple):
    """Time that a command may take, and that it has between SIGTERM and SIGKILL."""

    timeout_seconds: float
    kill_after_seconds: float


class CommandEnded(NamedTuple):
    """End of a command: negative exit codes are signals. `last_line` is that of its standard error."""

    exit_code: int
    output: bytes
    last_line: str


class OutputTooLarge(Exception):
    """The command wrote more than MOST_OUTPUT_BYTES to its output."""


class OutputHeld(TimeoutError):
    """The command has ended, and something that it has started still had its output when its time was over."""


async def run_command(
    arguments: Sequence[str],
    given: bytes,
    *,
    environment: Mapping[str, str],
    limits: CommandLimits,
    log_line: Callable[[str], None],
) -> CommandEnded:
    """Run a command to its end. Raises OSError when it cannot be started, TimeoutError, OutputTooLarge."""
    starting = asyncio.ensure_future(_start(arguments, environment))
    try:
        command = await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await _end(await starting, limits.kill_after_seconds)
        raise
    try:
        async with asyncio.timeout(limits.timeout_seconds):
            ended = await _talk(command.child, given, log_line)
            await command.closed
            return ended
    except BaseException as error:
        has_ended = command.child.returncode is not None
        await _end(command, limits.kill_after_seconds)
        if has_ended and isinstance(error, TimeoutError):
            raise OutputHeld from error
        raise


class _CommandProtocol(SubprocessStreamProtocol):
    """Signals when the command has ended and its pipes are closed, which comes after what Process.wait() waits for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(_CHUNK_BYTES, loop)
        self.closed: asyncio.Future[None] = loop.create_future()
        self._left = {"command", 0, 1, 2}

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        super().pipe_connection_lost(fd, exc)
        self._note_end(fd)

    def process_exited(self) -> None:
        super().process_exited()
        self._note_end("command")

    def _note_end(self, what: str | int) -> None:
        self._left.discard(what)
        if not self._left and not self.closed.done():
            self.closed.set_result(None)


class _Command(NamedTuple):
    """A command that runs. Only its transport can close pipes which others hold open."""

    transport: asyncio.SubprocessTransport
    child: Process
    closed: asyncio.Future[None]


async def _start(arguments: Sequence[str], environment: Mapping[str, str]) -> _Command:
    """Start it like asyncio.create_subprocess_exec."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.subprocess_exec(
        lambda: _CommandProtocol(loop),
        *arguments,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env=dict(environment),
        start_new_session=True,
    )
    return _Command(transport, Process(transport, protocol, loop), protocol.closed)


async def _talk(child: Process, given: bytes, log_line: Callable[[str], None]) -> CommandEnded:
    output = asyncio.ensure_future(_read_output(child))
    last_line = asyncio.ensure_future(_read_lines(child, log_line))
    tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(_write(child, given)), output, last_line]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    return CommandEnded(await child.wait(), output.result(), last_line.result())


async def _write(child: Process, given: bytes) -> None:
    """A command need not read what it is given. uvloop raises RuntimeError for what is written to a closed pipe."""
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, RuntimeError):
        child.stdin.write(given)
        await child.stdin.drain()
    child.stdin.close()


async def _read_output(child: Process) -> bytes:
    assert child.stdout is not None
    output = bytearray()
    while chunk := await child.stdout.read(_CHUNK_BYTES):
        output += chunk
        if len(output) > MOST_OUTPUT_BYTES:
            raise OutputTooLarge
    return bytes(output)


async def _read_lines(child: Process, log_line: Callable[[str], None]) -> str:
    """Log each line as it comes, cut where it is too long; returns the last one that says something."""
    assert child.stderr is not None
    count, last, rest = 0, "", b""
    while chunk := await child.stderr.read(_CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        while len(rest) > _MOST_LINE_BYTES:
            lines.append(rest[:_MOST_LINE_BYTES])
            rest = rest[_MOST_LINE_BYTES:]
        for line in lines:
            count, last = _log_text(line, count, last, log_line)
    return _log_text(rest, count, last, log_line)[1]


def _log_text(line: bytes, count: int, last: str, log_line: Callable[[str], None]) -> tuple[int, str]:
    text = line[:_MOST_LINE_BYTES].decode(errors="replace").strip()
    if not text:
        return count, last
    if count < _MOST_LINES:
        log_line(text)
    elif count == _MOST_LINES:
        log_line(f"(only the first {_MOST_LINES} lines are logged)")
    return count + 1, text


async def _end(command: _Command, kill_after_seconds: float) -> None:
    """End the whole group; returns once the command is gone and its pipes are closed, whoever else holds them open."""
    try:
        await _end_groups([command.child.pid], kill_after_seconds)
    finally:
        command.transport.close()  # closes the pipes, which end what `closed` waits for
    await command.closed


async def _end_groups(groups: Sequence[int], kill_after_seconds: float) -> None:
    for group in groups:
        _signal(group, signal.SIGTERM)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + kill_after_seconds
    try:
        while loop.time() < deadline and any(_signal(group, 0) for group in groups):  # noqa: ASYNC110  not our children only
            await asyncio.sleep(_POLL_SECONDS)
    finally:
        for group in groups:
            _signal(group, signal.SIGKILL)


async def end_survivors(directory: Path, kill_after_seconds: float) -> int:
    """End commands that earlier gardenlets have left running for the seed in a directory; returns how many."""
    groups = _groups_with(f"{OWNER_VARIABLE}={directory}".encode())
    groups.discard(os.getpgid(0))
    await _end_groups(sorted(groups), kill_after_seconds)
    return len(groups)


def _groups_with(mark: bytes) -> set[int]:
    """Groups of the processes that have a variable in their environment."""
    groups: set[int] = set()
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                groups.add(os.getpgid(int(entry.name)))
    return groups


def _signal(group: int, number: int) -> bool:
    """Send a signal to a group, 0 to probe only; returns whether there is one that takes it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
