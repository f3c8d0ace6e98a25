"""A service's process for messages that may kill it: started when there is one, ended when there was none for a while.

The service runs its own program once more, with a socket in place of its queues: a message goes there, its result comes
back. The child has connections of its own, serves no requests, and ends with the service. See `isolated_service`.
"""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from contextlib import suppress

import structlog

from gardenbus.common.controller.cancellation import unless_set
from gardenbus.common.controller.isolation import IsolatedResult
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import QueueMessage
from gardenbus.common.runtime.bus_connection import AnySettings
from gardenbus.common.runtime.isolated_service import (
    ISOLATED_VARIABLE,
    LARGEST_LINE,
    IsolatedTask,
    Line,
    read_line,
    write_line,
)
from gardenbus.common.runtime.service import HEALTH_FILE_VARIABLE, ServiceContext
from gardenbus.common.runtime.watchdog import EXIT_CODE

IDLE_SECONDS = 30.0
"""Life of the process after its last message."""

ENDING_SECONDS = 5.0
"""Longest wait for the end of a process that has closed its socket."""

ENDED_FROM_OUTSIDE = frozenset({0, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP})
"""Exit codes that say nothing of a message: that of an orderly stop, and signals that come from people."""

MOST_ENDED_FROM_OUTSIDE = 2
"""Times that the process of one message ends so; the last time the message counts as the cause."""

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def isolated_process(context: ServiceContext[AnySettings]) -> "IsolatedProcess":
    """The process of its own of a service; it is ended at the stop."""
    isolated = IsolatedProcess(
        f"gardenbus.{context.name}",
        instance=context.instance,
        watchdog_seconds=context.settings.watchdog_seconds,
        stopping=context.stopping,
    )
    context.stack.push_async_callback(isolated.close)
    return isolated


class _Child:
    """A running process, ready for messages."""

    def __init__(self, process: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.process = process
        self.is_fresh = True
        self._reader = reader
        self._writer = writer

    async def result_of(self, task: IsolatedTask) -> IsolatedResult | None:
        """The result of a message; None where the process died before there was one."""
        self.is_fresh = False
        with suppress(OSError):
            await write_line(self._writer, task)
        return await read_line(self._reader, IsolatedResult)

    async def end(self, *, within_seconds: float = 0) -> int:
        """Wait for the end of the process, and end it if it does not; returns its exit code, or minus a signal."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_seconds):
                return await self.process.wait()
        with suppress(ProcessLookupError):
            self.process.kill()
        return await self.process.wait()


class IsolatedProcess:
    """Handles messages one at a time, in a process of their own."""

    def __init__(self, module: str, *, instance: str, watchdog_seconds: float, stopping: asyncio.Event) -> None:
        """`module` is the service's program, as `python -m` runs it."""
        self._module = module
        self._instance = instance
        self._watchdog_seconds = watchdog_seconds
        self._stopping = stopping
        self._child: _Child | None = None
        self._alone = asyncio.Lock()
        self._ending: asyncio.TimerHandle | None = None
        self._ended: dict[tuple[str, int], int] = {}
        """Ends from outside of the processes of messages that were not finished since, by consumer and sequence."""

    async def handle(self, consumer: str, message: QueueMessage) -> IsolatedResult:
        """Handle a message of one of the consumers. Raises Unavailable where no process is to be had."""
        task = IsolatedTask(
            consumer=consumer,
            message=message.message,
            deliveries=message.deliveries,
            queued_ms=message.queued_ms,
            is_held_over=message.is_held_over,
        )
        async with self._alone:
            if self._ending is not None:
                self._ending.cancel()
            try:
                result = await self._handle(task)
                self._ended.pop((task.consumer, task.message.sequence), None)
                return result
            finally:
                self._ending = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._end_when_idle)

    async def close(self) -> None:
        """End the process, whatever it does."""
        if self._ending is not None:
            self._ending.cancel()
        await self._end()

    async def _handle(self, task: IsolatedTask) -> IsolatedResult:
        while True:
            child = self._child or await self._start()
            was_fresh = child.is_fresh
            try:
                result = await child.result_of(task)
            except BaseException:  # cancelled: what it works on is nobody's any more
                await self._end()
                raise
            if result is not None:
                return result
            code = await self._ended_by_itself(child)
            if self._stopping.is_set() or (code in ENDED_FROM_OUTSIDE and not self._is_ended_again(task)):
                raise Unavailable("the process of its own was ended from outside")
            if was_fresh or code == EXIT_CODE or code in ENDED_FROM_OUTSIDE:
                return IsolatedResult(death=self._described(code))
            _log.warning("isolation.repeated", reason=self._described(code), subject=task.message.subject)

    def _is_ended_again(self, task: IsolatedTask) -> bool:
        """Count one more end from outside of a message's process; true for the last that is not its own doing."""
        which = task.consumer, task.message.sequence
        self._ended[which] = self._ended.get(which, 0) + 1
        return self._ended[which] >= MOST_ENDED_FROM_OUTSIDE

    async def _start(self) -> _Child:
        ours, theirs = socket.socketpair()
        with theirs:
            environ = {name: value for name, value in os.environ.items() if name != HEALTH_FILE_VARIABLE}
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                self._module,
                env={**environ, **self._environment(theirs.fileno())},
                pass_fds=(theirs.fileno(),),
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        reader, writer = await asyncio.open_connection(sock=ours, limit=LARGEST_LINE)
        self._child = child = _Child(process, reader, writer)
        _log.info("isolation.started", pid=process.pid)
        try:
            ready = await unless_set(self._stopping, read_line(reader, Line))
        except BaseException:
            await self._end()
            raise
        if ready is None:
            code = await self._ended_by_itself(child)
            raise Unavailable(f"no process of its own could be started: {self._described(code)}")
        return child

    def _environment(self, descriptor: int) -> Mapping[str, str]:
        return {
            ISOLATED_VARIABLE: str(descriptor),
            "GARDENBUS_HEALTH_HOST": "127.0.0.1",
            "GARDENBUS_HEALTH_PORT": "0",
            "GARDENBUS_INSTANCE": f"{self._instance}-isolated",
        }

    async def _ended_by_itself(self, child: _Child) -> int:
        """Exit code of a process that has closed its socket."""
        self._child = None
        return await child.end(within_seconds=ENDING_SECONDS)

    def _end_when_idle(self) -> None:
        if not self._alone.locked() and self._child is not None:
            child, self._child = self._child, None
            self._closing = asyncio.get_running_loop().create_task(child.end(), name="isolation end")

    async def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.end()

    def _described(self, code: int) -> str:
        if code == EXIT_CODE:
            return f"it used more than {self._watchdog_seconds:g} s of processor time without a pause"
        if code >= 0:
            return f"its process ended with exit code {code}"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return f"its process was ended by {name}" + (", as where memory runs out" if -code == signal.SIGKILL else "")
