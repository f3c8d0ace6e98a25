"""Child processes: started, kept running, watched, stopped.

    stopped ─start→ starting ─healthy→ ready ─ends→ waiting ─backoff→ starting …
                        └─ends→ waiting            any ─stop→ stopping → stopped

Whatever ends by itself is started again: after 0.2 s at first, doubling up to 10 s; a life of 5 s
makes it forget. A nats-server that cannot write although its disk has room again is restarted (full_disk.py).
"""

import asyncio
import contextlib
import ctypes
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import aiohttp
import msgspec

from gardenbus.cli.local.directory import LandscapeDirectory, ServiceEntry
from gardenbus.common.api.decoding import decode_json, json_decoder
from gardenbus.embedded.forking import Child, ForkServer
from gardenbus.embedded.full_disk import WriteState, WriteWatch, is_write_error, room_of, storage_trouble
from gardenbus.embedded.ports import LOOPBACK
from gardenbus.embedded.process_specs import ProcessSpec

ProcessState = Literal["starting", "ready", "waiting", "stopping", "stopped"]
Notify = Callable[[str], None]

STOP_SECONDS = 5.0
PROBE_SECONDS = 0.1
WATCH_SECONDS, WATCH_STORE_SECONDS = 5.0, 1.0
"""Intervals of the checks of what is well, and of a server whose disk is short of room."""
LONG_LIFE_SECONDS = 5.0
BACKOFF_BASE_SECONDS = 0.2
BACKOFF_CAP_SECONDS = 10.0
LARGEST_LOG_BYTES = 16 * 1024 * 1024
"""Beyond it a log begins anew; the one before it is kept. NATS logs each rejected message, however many are sent."""
LAST_LINE_BYTES, LAST_LINE_SHOWN = 4096, 200
LANDSCAPE_VARIABLE = "GARDENBUS_LANDSCAPE"

NATS_TIMER_SLACK_NANOSECONDS = 5_000_000
"""Time by which Linux may fire a timer of nats-server late: Go's monitoring thread, which sleeps for 20 µs and more
between looks at what runs, was a fifth of a server's processor time, and most of its context switches."""

_PR_SET_PDEATHSIG, _PR_SET_TIMERSLACK = 1, 29
_LIBC: ctypes.CDLL | None = ctypes.CDLL(None) if sys.platform == "linux" else None

_decode = json_decoder()


class _HealthFile(msgspec.Struct, frozen=True):
    pid: int
    health_url: str


def backoff_seconds(failures: int) -> float:
    """Delay before the start after so many short lives in a row (1 the first time)."""
    return min(BACKOFF_CAP_SECONDS, BACKOFF_BASE_SECONDS * 2.0 ** (failures - 1))


def landscape_environ(directory: LandscapeDirectory) -> dict[str, str]:
    """Environment of a landscape's processes: ours, and the mark by which leftovers are recognised."""
    return {**os.environ, LANDSCAPE_VARIABLE: str(directory.path)}


class ManagedProcess:
    """One child, over all its lives."""

    def __init__(
        self,
        spec: ProcessSpec,
        directory: LandscapeDirectory,
        *,
        notify: Notify,
        changed: Callable[[], None],
        fork_server: ForkServer | None = None,
    ) -> None:
        self.spec = spec
        self.state: ProcessState = "stopped"
        self.restarts = 0
        self.last_exit: int | None = None
        self.trouble = ""
        """Reason why it is not ready, in its own words."""
        self._directory = directory
        self._notify = notify
        self._changed = changed
        self._fork_server = fork_server
        self._process: Child | None = None
        self._health_url: str | None = None
        self._wanted = True
        self._life: asyncio.Task[None] | None = None
        self._short_lives = 0
        self._writes = WriteWatch()
        self._write_state: WriteState = "fine"
        self._is_write_state_observed = True

    @property
    def log_file(self) -> Path:
        """File that receives stdout and stderr."""
        return self._directory.logs / f"{self.spec.name}.log"

    @property
    def health_file(self) -> Path:
        """File in which the child writes its health URL."""
        return self._directory.health / f"{self.spec.name}.json"

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process and self._process.returncode is None else None

    def entry(self) -> ServiceEntry:
        """Its line of landscape.json."""
        return ServiceEntry(
            name=self.spec.name,
            pid=self.pid,
            health_url=self._health_url,
            url=self.spec.url or msgspec.UNSET,
            restarts=self.restarts,
            note=self._note() or msgspec.UNSET,
        )

    def start(self) -> None:
        """Start it, and again whenever it ends."""
        self._life = asyncio.create_task(self._live(), name=f"process {self.spec.name}")

    def reload(self) -> None:
        """Have a server read its configuration anew (SIGHUP); one that is down does so when it starts."""
        if (pid := self.pid) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGHUP)

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL when that does not end it in time."""
        self._wanted = False
        self._set_state("stopping")
        process = self._process
        if process is not None and process.returncode is None:
            await self._end(process)
        if self._life is not None:
            self._life.cancel()
            await asyncio.wait({self._life})
        self._set_state("stopped")

    async def _live(self) -> None:
        while self._wanted:
            began = time.monotonic()
            try:
                process = await self._spawn()
            except OSError as error:
                self.trouble = f"cannot be started: {error}"
            else:
                watch = asyncio.create_task(self._watch(process), name=f"watch {self.spec.name}")
                self.last_exit = await process.wait()
                watch.cancel()
                self.trouble = _exit_text(self.last_exit)
            self._health_url = None
            if not self._wanted:
                return
            self.restarts += 1
            self._short_lives = 1 if time.monotonic() - began > LONG_LIFE_SECONDS else self._short_lives + 1
            delay = backoff_seconds(self._short_lives)
            self._notify(f"{self.spec.name} {self.trouble}, starting it again in {delay:.1f} s (log: {self.log_file})")
            self._set_state("waiting")
            await asyncio.sleep(delay)

    async def _spawn(self) -> Child:
        self.health_file.unlink(missing_ok=True)
        self._shorten_log()
        environ = {**landscape_environ(self._directory), **self.spec.environ}
        with self.log_file.open("ab") as log:
            forked = await self._fork_server.fork(self.spec.command, environ, log=log) if self._fork_server else None
            self._process = forked or await asyncio.create_subprocess_exec(
                *self.spec.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environ,
                cwd=self._directory.path,
                start_new_session=True,
                preexec_fn=partial(_set_up_child, self.spec.kind) if _LIBC else None,
            )
        self._set_state("starting")
        return self._process

    async def _watch(self, process: Child) -> None:
        """Follow the health of one life."""
        timeout = aiohttp.ClientTimeout(total=2.0)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while process.returncode is None:
                self.trouble = await self._probe(session)
                self._shorten_log()
                if self.spec.store is not None:
                    await self._watch_writes(process, session)
                if self.state in ("starting", "ready"):
                    self._set_state("starting" if self.trouble else "ready")
                await asyncio.sleep(self._seconds_to_next_probe())

    def _seconds_to_next_probe(self) -> float:
        if self.trouble:
            return PROBE_SECONDS
        room = room_of(self.spec.store) if self.spec.store else None
        is_short = self._write_state != "fine" or (room is not None and not room.is_enough)
        return WATCH_STORE_SECONDS if is_short else WATCH_SECONDS

    def _shorten_log(self) -> None:
        """Move a log that is too long aside and begin it anew; the child appends to the same file, so it is copied."""
        with contextlib.suppress(OSError):  # none yet, or no room for the copy: the next look finds it again
            if self.log_file.stat().st_size > LARGEST_LOG_BYTES:
                shutil.copyfile(self.log_file, self.log_file.with_suffix(".log.1"))
                os.truncate(self.log_file, 0)

    async def _watch_writes(self, process: Child, session: aiohttp.ClientSession) -> None:
        """See whether a server can write; restart a nats-server that could again but does not."""
        room = room_of(self.spec.store) if self.spec.store else None
        if self.spec.kind == "nats" and not self.trouble:
            self.trouble = storage_trouble(await _page(session, f"{self._health_url}/jsz"), room)
        is_observed = not self.trouble or is_write_error(self.trouble)
        if is_observed != self._is_write_state_observed:
            self._is_write_state_observed = is_observed
            if self._write_state != "fine":
                self._changed()
        if not is_observed:
            self._writes.interrupt()
            return
        state = self._writes.observe(
            cannot_write=is_write_error(self.trouble), room=room, now=asyncio.get_running_loop().time()
        )
        if state == "restart" and self.spec.kind != "nats":
            state = "recovering"
        if state != self._write_state:
            self._write_state = state
            self._changed()
            if state == "fine":
                self._notify(f"{self.spec.name} can write again")
            elif note := self._note():
                self._notify(f"{self.spec.name} {note}")
        if state == "restart":
            await self._end(process)

    def _note(self) -> str:
        """Note of `status` about a server that cannot write; "" about others."""
        room = room_of(self.spec.store) if self.spec.store else None
        if self._write_state == "fine" or not self._is_write_state_observed or room is None:
            return ""
        if self._write_state == "full":
            return f"cannot write: the disk of {self.spec.store} is full; make room"
        how = "it is restarted" if self.spec.kind == "nats" else "it goes on within a second"
        return f"could not write, and the disk of {self.spec.store} has room again: {how}"

    async def _end(self, process: Child) -> None:
        """SIGTERM, and SIGKILL when that does not end it in time."""
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            awaited = f"; last in its log: {last}" if (last := _last_line(self.log_file)) else ""
            self._notify(f"{self.spec.name} did not stop within {STOP_SECONDS:g} s and is killed{awaited}")
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _probe(self, session: aiohttp.ClientSession) -> str:
        """Check its health; returns why it is not ready, or "" when it is."""
        if self.spec.kind == "redis":
            return await _redis_trouble(self.spec)
        url = self._find_health_url()
        if url is None:
            return "starting"
        path = "/healthz" if self.spec.kind == "nats" else "/readyz"
        try:
            async with session.get(url + path) as response:
                if response.status == 200:  # noqa: PLR2004
                    return ""
                return _reasons(await response.read()) or f"HTTP {response.status}"
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return type(error).__name__

    def _find_health_url(self) -> str | None:
        if self.spec.kind == "nats":
            url: str | None = f"http://{LOOPBACK}:{self.spec.port}{self.spec.path}"
        else:
            url = self._reported_url()
        if url != self._health_url:
            self._health_url = url
            self._changed()
        return url

    def _reported_url(self) -> str | None:
        try:
            reported = decode_json(self.health_file.read_bytes(), _HealthFile)
        except (OSError, msgspec.MsgspecError):
            return None
        return reported.health_url if reported.pid == self.pid else None

    def _set_state(self, state: ProcessState) -> None:
        if state != self.state:
            self.state = state
            self._changed()


async def _redis_trouble(spec: ProcessSpec) -> str:
    try:
        async with asyncio.timeout(1.0):
            if spec.socket is not None:
                reader, writer = await asyncio.open_unix_connection(spec.socket)
            else:
                reader, writer = await asyncio.open_connection(LOOPBACK, spec.port or 0)
            try:
                if spec.password:
                    writer.write(f"AUTH {spec.user} {spec.password}\r\n".encode())
                    await reader.readline()  # a rejection is what PING says too
                writer.write(b"PING\r\n")
                response = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError) as error:
        return type(error).__name__
    return "" if response.startswith(b"+PONG") else response.decode(errors="replace").strip() or "no response"


async def _page(session: aiohttp.ClientSession, url: str) -> bytes:
    """A page of a server; empty when there is none."""
    try:
        async with session.get(url) as response:
            return await response.read()
    except (aiohttp.ClientError, TimeoutError, OSError):
        return b""


def _reasons(body: bytes) -> str:
    try:
        decoded = _decode(body)
        if "error" in decoded:  # NATS
            return str(decoded["error"])
        checks = decoded["checks"]
        return "; ".join(f"{name}: {response}" for name, response in checks.items() if response != "ok")
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError):
        return ""


def _last_line(log: Path) -> str:
    """The last line of a log, short: of a service's its event with what that says of a reason."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LAST_LINE_BYTES))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    line = next((each.strip() for each in reversed(lines) if each.strip()), "")
    try:
        members = decode_json(line, dict[str, Any])
    except msgspec.MsgspecError:
        return line[:LAST_LINE_SHOWN]
    shown = [
        f"{members.get('event')}",
        *(f"{name}={members[name]}" for name in ("waits_for", "reason") if name in members),
    ]
    return " ".join(shown)[:LAST_LINE_SHOWN]


def _exit_text(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with code {code}"


def _set_up_child(kind: str) -> None:
    """Linux only, in the child before it becomes another program: request SIGTERM when the supervisor dies.

    A nats-server also gets `NATS_TIMER_SLACK_NANOSECONDS`.
    """
    libc = _LIBC
    if libc:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if kind == "nats":
            libc.prctl(_PR_SET_TIMERSLACK, NATS_TIMER_SLACK_NANOSECONDS)
