"""Supervisor's side of the fork server: services are forked instead of started, which spares each of them the imports.

An empty landscape is up after 4.3 s instead of 7.5, its 13 processes take 331 MB instead of 603 (decision 29).

It serves a start of the landscape only. What ends later is started anew with the code that is installed then, and where
there is no fork server (another system than Linux, or it died) everything is.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec

from gardenbus.common.api.decoding import decode_json
from gardenbus.embedded.fork_server import ALLOWED, LARGEST_MESSAGE, ROOM_FOR_COMMANDS, ForkRequest, ForkResponse

FORK_SECONDS = 20.0
GIVE_UP_SECONDS = 5.0
"""Longest time until a process that nobody wants any more is forked, so that it can be waited for."""
_PR_SET_CHILD_SUBREAPER = 36


class Child(Protocol):
    """A child process, started or forked; an `asyncio.subprocess.Process` is one."""

    @property
    def pid(self) -> int:
        """Its id."""
        ...

    @property
    def returncode(self) -> int | None:
        """Its exit code once it has ended, negative after a signal."""
        ...

    async def wait(self) -> int:
        """Wait until it has ended; returns its exit code."""
        ...

    def terminate(self) -> None:
        """Send SIGTERM."""
        ...

    def kill(self) -> None:
        """Send SIGKILL."""
        ...


class ForkedProcess:
    """A child that the fork server made: ours to wait for, because we are the subreaper."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._descriptor = os.pidfd_open(pid)
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._loop.add_reader(self._descriptor, self._reap)

    async def wait(self) -> int:
        """Wait until it has ended; returns its exit code."""
        return await asyncio.shield(self._ended)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.returncode is None:
            signal.pidfd_send_signal(self._descriptor, number)

    def _reap(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        _, status = os.waitpid(self.pid, 0)
        self.returncode = os.waitstatus_to_exitcode(status)
        self._ended.set_result(self.returncode)


class ForkServer:
    """The fork server of one start. `fork` gives None when it cannot, and never again after that."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._socket: socket.socket | None = None
        self._lock = asyncio.Lock()
        self._forking: asyncio.Future[ForkedProcess] | None = None

    async def start(self, directory: Path, environ: Mapping[str, str]) -> None:
        """Start it where that is possible; it imports while the first request waits for it."""
        if not _adopt_orphans(adopts=True):
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        self._socket = ours
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                *[sys.executable, "-m", "gardenbus.embedded.fork_server"],
                *[str(theirs.fileno()), str(os.getpid()), ROOM_FOR_COMMANDS],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                env=environ,
                cwd=directory,
                start_new_session=True,
                pass_fds=[theirs.fileno()],
            )

    async def fork(self, command: Sequence[str], environ: Mapping[str, str], *, log: BinaryIO) -> ForkedProcess | None:
        """Fork `python -m MODULE ARGUMENTS`, its output appended to an open file; None if it has to be started."""
        if list(command[:2]) != [sys.executable, "-m"]:
            return None
        request = ForkRequest(command[2], command[3:], command, dict(environ))
        async with self._lock:
            if self._socket is None:
                return None
            try:
                return await self._forked(self._socket, request, log)
            except (OSError, TimeoutError, msgspec.MsgspecError):
                await self._end()
                return None
            except asyncio.CancelledError:
                await self._end()
                raise

    async def close(self) -> None:
        """End it, and the fork that is under way; what it forked before lives on."""
        self._kill()
        async with self._lock:
            await self._end()

    async def _forked(self, ours: socket.socket, request: ForkRequest, log: BinaryIO) -> ForkedProcess:
        """Have a process forked; what nobody learns of any more, as this is cancelled, is not let run."""
        allowed, allow = os.pipe()
        try:
            async with asyncio.timeout(FORK_SECONDS):
                socket.send_fds(ours, [msgspec.json.encode(request)], [log.fileno(), allowed])
                self._forking = _response(ours)
                process = await asyncio.shield(self._forking)
            self._forking = None
            os.write(allow, ALLOWED)
            return process
        finally:
            os.close(allowed)
            os.close(allow)

    async def _give_up(self) -> None:
        """Wait for the process that is being forked for nobody: it ends by itself, and we are its parent."""
        if self._forking is not None:
            with contextlib.suppress(OSError, TimeoutError, msgspec.MsgspecError):
                async with asyncio.timeout(GIVE_UP_SECONDS):
                    await (await asyncio.shield(self._forking)).wait()

    def _kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def _end(self) -> None:
        ours, self._socket = self._socket, None
        if ours is not None:
            try:
                await self._give_up()
            finally:
                _close_after_response(ours, self._forking)
                self._forking = None
        if self._process is not None:
            self._kill()
            await self._process.wait()
            self._process = None


def _close_after_response(ours: socket.socket, forking: asyncio.Future[ForkedProcess] | None) -> None:
    """Close the socket, and adopt no more orphans, once it is known which process was forked last, or that none was.

    A process that is forked for nobody reports itself, however late, and ends: we are its parent, and wait for it.
    """

    def close(response: asyncio.Future[ForkedProcess] | None) -> None:
        if response is not None and not response.cancelled():
            response.exception()  # the other side has closed: there is no process
        asyncio.get_running_loop().remove_reader(ours)
        ours.close()
        _adopt_orphans(adopts=False)

    if forking is None or forking.done():
        close(forking)
    else:
        forking.add_done_callback(close)


def _response(ours: socket.socket) -> asyncio.Future[ForkedProcess]:
    """The process that the fork server responds with, which is taken over whether or not somebody awaits it."""
    loop = asyncio.get_running_loop()
    response: asyncio.Future[ForkedProcess] = loop.create_future()

    def receive() -> None:
        loop.remove_reader(ours)
        try:
            process = ForkedProcess(decode_json(ours.recv(LARGEST_MESSAGE), ForkResponse).pid)
        except (OSError, msgspec.MsgspecError) as error:
            response.set_exception(error)
        else:
            response.set_result(process)

    loop.add_reader(ours, receive)
    return response


def _adopt_orphans(*, adopts: bool) -> bool:
    """Become the parent of orphans below us, or cease to; false where the system cannot."""
    if sys.platform != "linux":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(adopts)) == 0
