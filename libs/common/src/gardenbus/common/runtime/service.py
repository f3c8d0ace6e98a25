"""The life of one service process: settings, logs, health, start, supervision, orderly stop.

    run_service("relay", lambda: load(RelaySettings), build)

`build(context)` connects, registers health checks and starts tasks; what it puts on `context.stack` is closed at the
stop. Exit codes: 0 after SIGTERM or SIGINT, 1 when a task crashed or the start failed, 2 when the settings are invalid,
27 when it computed for too long (see `watchdog`).

The order of a stop: `/readyz` turns 503, `context.stopping` is set, the drains run (last registered first, all
within `drain_seconds`), tasks are cancelled, `context.stack` unwinds. A process that is not gone after that and one
second more ends itself the hard way.
"""

import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

import msgspec
import structlog
import uvloop

from gardenbus.common.errors import SettingsInvalid, Transient
from gardenbus.common.ports.clock import Clock
from gardenbus.common.runtime.build_info import export_build_info
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.event_loop import SharedLookups
from gardenbus.common.runtime.health import Health
from gardenbus.common.runtime.isolated_service import IsolatedService
from gardenbus.common.runtime.logs import configure_logging
from gardenbus.common.runtime.settings import CommonSettings
from gardenbus.common.runtime.tracing import configure_tracing
from gardenbus.common.runtime.watchdog import Watchdog

HEALTH_FILE_VARIABLE = "GARDENBUS_HEALTH_FILE"
OWNER_ALONE = 0o077
"""Mask of a service: what it writes is nobody else's to read."""
UNWIND_SECONDS = 1.0
AWAIT_REPEAT_SECONDS = 0.25
AWAIT_LOG_SECONDS = 60.0
"""Interval at which a wait that goes on is logged again."""

YOUNG_OBJECTS = 100_000
"""Objects made and not yet gone at which garbage is collected: more than a batch of decoded manifests, which go by
themselves (Python's own 700 costs a tenth of the intake)."""

SettingsT = TypeVar("SettingsT", bound=CommonSettings)
Reached = TypeVar("Reached")
Drain = Callable[[], Awaitable[None]]
Build = Callable[["ServiceContext[SettingsT]"], Coroutine[Any, Any, None]]

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class ServiceLoop(SharedLookups, uvloop.Loop):  # pyright: ignore[reportIncompatibleMethodOverride]
    """The event loop of a service."""


class ServiceContext(Generic[SettingsT]):
    """Context of a service: its settings, health, clock, tasks and drains."""

    def __init__(self, name: str, settings: SettingsT, *, health: Health, clock: Clock) -> None:
        self.name = name
        self.settings = settings
        self.health = health
        self.clock = clock
        self.stack = contextlib.AsyncExitStack()
        """Enter clients here; they are closed last."""
        self.stopping = asyncio.Event()
        """Set when the process is to stop: accept no new work."""
        self.isolated = IsolatedService.of_environment(os.environ)
        """Set in a process of its own for messages that may kill it; see `isolated_process`."""
        self._drains: list[tuple[str, Drain]] = []
        self._tasks: set[asyncio.Task[object]] = set()
        self._crash: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._awaited: tuple[str, str, float] | None = None
        self.stop_step = "its start"
        """Part of the stop that is under way: what a process that does not end in time waits for."""

    @property
    def instance(self) -> str:
        """The replica's name."""
        return self.settings.instance

    def spawn(self, name: str, coroutine: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
        """Run a background task. If it raises, the process ends with code 1; if it returns, all is well."""
        task: asyncio.Task[object] = asyncio.create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def on_stop(self, name: str, drain: Drain) -> None:
        """Have something finished at the stop, while connections are still open."""
        self._drains.append((name, drain))

    async def wait_for(self, server: str, connect: Callable[[], Awaitable[Reached]]) -> Reached:
        """Call `connect` until it raises no Transient error any more; the wait is logged, and shown by `/readyz`."""
        began = last_logged_at = self.clock.monotonic()
        waited = False
        with self.awaiting(server):
            while True:
                try:
                    reached = await connect()
                except Transient as error:
                    now = self.clock.monotonic()
                    self._awaited = (server, error.message, began)
                    if not waited or now - last_logged_at >= AWAIT_LOG_SECONDS:
                        waited_s = round(now - began, 1)
                        log.warning("server.awaited", server=server, reason=error.message, waited_s=waited_s)
                        waited, last_logged_at = True, now
                    await self.clock.sleep(AWAIT_REPEAT_SECONDS)
                else:
                    log.info("server.reached", server=server, waited_s=round(self.clock.monotonic() - began, 2))
                    return reached

    @contextlib.contextmanager
    def awaiting(self, server: str) -> Generator[None]:
        """Have `/readyz` name what the start waits for inside."""
        before, self._awaited = self._awaited, (server, "", self.clock.monotonic())
        try:
            yield
        finally:
            self._awaited = before

    def start_problem(self) -> str:
        """The reason why a process that starts is not ready yet."""
        if self._awaited is None:
            return "starting"
        server, reason, began = self._awaited
        seconds = self.clock.monotonic() - began
        return f"starting: waits for {server} since {seconds:.0f} s{f' ({reason})' if reason else ''}"

    async def crashed(self) -> str:
        """Wait until a background task has crashed; returns its name."""
        return await asyncio.shield(self._crash)

    def _on_task_done(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            log.error("task.crashed", task=task.get_name(), exc_info=error)
            if not self._crash.done():
                self._crash.set_result(task.get_name())

    async def close(self) -> None:
        """Drain, cancel and close, in that order."""
        self.stopping.set()
        self.health.add_readiness("process", lambda: "stopping")
        try:
            async with asyncio.timeout(self.settings.drain_seconds):
                for name, drain in reversed(self._drains):
                    self.stop_step = f"the drain {name}"
                    await _drained(name, drain)
        except TimeoutError:
            log.warning("service.drain_exceeded", drain_seconds=self.settings.drain_seconds, waits_for=self.stop_step)
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            self.stop_step = f"the tasks {', '.join(sorted(task.get_name() for task in self._tasks))}"
            await asyncio.wait(tuple(self._tasks), timeout=UNWIND_SECONDS / 2)
        self.stop_step = "connections to be closed"
        await self.stack.aclose()
        self.stop_step = "threads, or the port of health"


async def _drained(name: str, drain: Drain) -> None:
    try:
        await drain()
    except Exception:
        log.exception("drain.failed", drain=name)


def run_service(name: str, load_settings: Callable[[], SettingsT], build: "Build[SettingsT]") -> NoReturn:
    """Run a service until SIGTERM or SIGINT; ends the process. See the module for the exit codes."""
    os.umask(OWNER_ALONE)
    try:
        settings = load_settings()
        configure_logging(
            name, instance=settings.instance, log_format=settings.log_format, log_level=settings.log_level
        )
        code = uvloop.run(serve(name, settings, build), loop_factory=ServiceLoop)
    except SettingsInvalid as error:
        code = 2
        for problem in error.problems:
            sys.stderr.write(f"{name}: {problem}\n")
    except KeyboardInterrupt:
        code = 0
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(code)


async def serve(name: str, settings: SettingsT, build: "Build[SettingsT]") -> int:
    """Run a service inside a running loop; returns the exit code. Raises SettingsInvalid."""
    end_traces = configure_tracing(name, settings.traces, instance=settings.instance, environ=os.environ)
    health = Health()
    context = ServiceContext(name, settings, health=health, clock=SystemClock())
    watchdog = Watchdog(settings.watchdog_seconds)
    watchdog.start()
    stop_requested = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_requested.set)
    health.add_readiness("process", context.start_problem)
    try:
        url = await health.start(settings.health_host, settings.health_port)
    except OSError as error:
        address = f"{settings.health_host}:{settings.health_port}"
        raise SettingsInvalid((f"health_port: cannot listen on {address}: {error.strerror}",)) from error
    _write_health_file(url)
    export_build_info(name)
    log.info("service.starting", health_url=url, pid=os.getpid())
    try:
        return await _live(context, build, stop_requested)
    finally:
        loop.call_later(
            settings.drain_seconds + UNWIND_SECONDS, _exit_hard, context
        )  # the loop's end waits for its threads
        await context.close()
        await health.stop()
        end_traces()
        watchdog.stop()
        log.info("service.stopped")


async def _live(context: ServiceContext[SettingsT], build: "Build[SettingsT]", stop_requested: asyncio.Event) -> int:
    started = asyncio.create_task(build(context), name="start")
    stop = asyncio.create_task(stop_requested.wait(), name="stop")
    crash = asyncio.create_task(context.crashed(), name="crash")
    waits = {started, stop, crash}
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if started.done() and (failure := started.exception()) is not None:
            if isinstance(failure, SettingsInvalid):
                raise failure
            log.error("service.start_failed", exc_info=failure)
            return 1
        if started.done():
            _freeze_startup_objects()
            context.health.remove_readiness("process")
            log.info("service.started")
            await asyncio.wait({stop, crash}, return_when=asyncio.FIRST_COMPLETED)
        if crash.done():
            return 1
        log.info("service.stopping")
        return 0
    finally:
        for task in waits:
            task.cancel()
        await asyncio.wait(waits, timeout=UNWIND_SECONDS / 2)


def _freeze_startup_objects() -> None:
    """Leave the objects of the start out of garbage collection, and collect rarely: hardly anything makes cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 20, 20)


def _write_health_file(url: str) -> None:
    """Write pid and health URL to the file that the starting process reads (whole file at once)."""
    path = os.environ.get(HEALTH_FILE_VARIABLE)
    if not path:
        return
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    draft.write_bytes(msgspec.json.encode({"pid": os.getpid(), "health_url": url}))
    draft.replace(target)


def _exit_hard(context: ServiceContext[Any]) -> None:
    reason = f"did not stop in time: it waits for {context.stop_step}"
    line = {"event": "service.cut", "level": "error", "service": context.name, "reason": reason}
    sys.stdout.write(f"{msgspec.json.encode(line).decode()}\n")
    sys.stdout.flush()
    os._exit(1)
