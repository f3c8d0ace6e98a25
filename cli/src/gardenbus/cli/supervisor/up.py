"""`gardenbus up` from start to end: lock, processes, manifests, picture, settled or stopped, orderly stop."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from gardenbus.cli.addresses import without_password, without_user
from gardenbus.cli.client import Answer, ApiClient, Where, connected
from gardenbus.cli.documents import chunks, title
from gardenbus.cli.mirror import Mirror
from gardenbus.cli.output import Exit, say_error, say_refusal
from gardenbus.cli.supervisor.directory import DirectoryUnwritable, LandscapeInUse, directory_option
from gardenbus.cli.supervisor.landscape import EmbeddedLandscape, StartFailed, UpOptions
from gardenbus.cli.supervisor.leftovers import end_leftovers
from gardenbus.cli.supervisor.picture import Scene, ServiceRow
from gardenbus.cli.supervisor.ports import PortTaken
from gardenbus.cli.supervisor.screen import Screen
from gardenbus.cli.supervisor.servers import ServerMissing
from gardenbus.cli.supervisor.settled import unsettled_because
from gardenbus.common.errors import GardenbusError, Unavailable
from gardenbus.common.resources.document import Document

SETTLED_SECONDS = 2.0
SETTLE_LIMIT_SECONDS = 120.0
LOOK_SECONDS = 0.25
API_SECONDS = 30.0
CANCEL_SECONDS = 0.2


class Up:
    """One run of `gardenbus up`."""

    def __init__(self, options: UpOptions, *, exit_when_settled: bool = False) -> None:
        self._options = options
        self._exit_when_settled = exit_when_settled
        self._screen = Screen()
        self._landscape = EmbeddedLandscape(options, say=self._screen.say)
        self._phase = "starting"
        self._refusals: list[tuple[str, dict[str, Any]]] = []
        self._mirror: Mirror | None = None

    async def run(self) -> int:
        """The whole run; answers the exit code."""
        try:
            lock = self._landscape.directory.lock()
        except (LandscapeInUse, DirectoryUnwritable) as error:
            self._screen.close()
            say_error(str(error))
            return Exit.REFUSED
        try:
            return await self._run_locked()
        finally:
            os.close(lock)

    async def _run_locked(self) -> int:
        stop_asked = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stop_asked.set)
        stop = asyncio.create_task(stop_asked.wait(), name="stop")
        work = asyncio.create_task(self._work(), name="work")
        show_start = asyncio.create_task(self._draw_start(), name="show start")
        try:
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            return await work if work.done() else Exit.DONE
        except Unavailable as error:
            self._screen.close()
            say_error(str(error))
            return Exit.OUT_OF_REACH
        except (StartFailed, PortTaken, ServerMissing, DirectoryUnwritable, GardenbusError) as error:
            self._screen.close()
            say_error(str(error))
            return Exit.REFUSED
        finally:
            await _ended({work, stop, show_start})
            self._show_end()
            self._screen.say("stopping")
            await self._landscape.stop()
            self._screen.say("stopped")

    async def _work(self) -> int:
        if ended := await asyncio.to_thread(end_leftovers, self._landscape.directory):
            self._screen.say(f"ended {len(ended)} processes that an earlier `up` had left behind")
        await self._landscape.start(os.getpid())
        addresses = self._landscape.addresses
        self._phase = "running"
        nats, redis = without_user(addresses.nats_url), without_password(addresses.redis_url)
        self._screen.say(f"ready: NATS {nats}, Redis {redis}")
        self._screen.say(f"dashboard: {self._landscape.dashboard_url}")
        async with connected(Where(addresses.nats_url, addresses.prefix), patience_seconds=API_SECONDS) as api:
            mirror = self._mirror = Mirror(api.bus, api.subjects)
            following = asyncio.create_task(mirror.run(), name="mirror")
            try:
                await self._apply(api, self._options.given.manifests)
                return await self._watch(api, mirror)
            finally:
                following.cancel()
                await asyncio.wait({following})

    async def _apply(self, api: ApiClient, manifests: Sequence[Document]) -> None:
        outcomes: Counter[str] = Counter()
        for chunk in chunks(manifests):
            for document, answer in zip(chunk, await _applied(api, chunk), strict=True):
                outcomes[str(answer.outcome or "applied") if answer.ok else "refused"] += 1
                if not answer.ok:
                    self._refusals.append((title(document), answer.error))
                    self._screen.say(f"{title(document)} was refused: {answer.error.get('message')}")
        if manifests:
            counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
            self._screen.say(f"{len(manifests)} manifests: {counted}")

    async def _watch(self, api: ApiClient, mirror: Mirror) -> int:
        """Show what goes on, until settled where that was asked for, else until stopped."""
        settled_since: float | None = None
        while True:
            reason = await self._unsettled_because(api, mirror)
            now = time.monotonic()
            settled_since = None if reason else settled_since or now
            is_settled = settled_since is not None and now - settled_since >= SETTLED_SECONDS
            if is_settled and self._phase == "running" and not self._exit_when_settled:
                self._screen.say("settled")
                self._screen.show_if_plain(list(mirror.shoots.values()))
            self._phase = "settled" if is_settled else "running"
            self._screen.draw(self._scene(mirror))
            if self._exit_when_settled and is_settled:
                self._screen.say("settled")
                return Exit.REFUSED if self._refusals else Exit.DONE
            if self._exit_when_settled and self._screen.age > SETTLE_LIMIT_SECONDS:
                self._screen.say(f"not settled: {reason}")
                return Exit.REFUSED
            await asyncio.sleep(LOOK_SECONDS)

    async def _unsettled_because(self, api: ApiClient, mirror: Mirror) -> str:
        if down := [process.spec.name for process in self._landscape.processes if process.state != "ready"]:
            return f"{', '.join(down)} not ready"
        if not mirror.current.is_set():
            return "the news of the landscape are still being read"
        try:
            census = await api.census(timeout_seconds=2.0)
        except GardenbusError as error:
            return error.message
        return unsettled_because(
            census=census,
            shoots=list(mirror.shoots.values()),
            seeds=list(mirror.seeds.values()),
            sets=list(mirror.sets.values()),
            autoscalers=list(mirror.autoscalers.values()),
            expected_seeds=self._landscape.seeds,
        )

    def _show_end(self) -> None:
        """Leave the live picture; then what is worth keeping: refused manifests, and shoots without a seed."""
        self._screen.close()
        for about, error in self._refusals:
            say_refusal(error, about)
        if self._mirror:
            self._screen.show_unplaced(list(self._mirror.shoots.values()))

    async def _draw_start(self) -> None:
        while self._phase == "starting":
            self._screen.draw(self._scene(None))
            await asyncio.sleep(LOOK_SECONDS)

    def _scene(self, mirror: Mirror | None) -> Scene:
        address, page = self._landscape.addresses.nats_url, self._landscape.dashboard_url
        return Scene(
            title=f"Gardenbus · {self._phase} · {self._screen.age:.0f} s" + (f" · {address}" if address else ""),
            services=[
                ServiceRow(process.spec.name, process.state, process.pid, process.restarts, process.trouble)
                for process in self._landscape.processes
            ],
            seeds=list(mirror.seeds.values()) if mirror else [],
            shoots=list(mirror.shoots.values()) if mirror else [],
            sets=list(mirror.sets.values()) if mirror else [],
            is_settled=self._phase == "settled",
            footer="Ctrl-C stops everything" + (f" · dashboard {page}" if page else ""),
            more_hint=f"gardenbus get shoots{directory_option(self._options.directory)}",
        )


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel until all have ended: a client that is just connecting may swallow the first cancellation."""
    while pending := {task for task in tasks if not task.done()}:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=CANCEL_SECONDS)


async def _applied(api: ApiClient, chunk: list[Document]) -> list[Answer]:
    """Apply, again and again while nobody answers: applying twice changes nothing."""
    deadline = time.monotonic() + API_SECONDS
    while True:
        try:
            return await api.apply(chunk)
        except Unavailable:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(LOOK_SECONDS)


def run_up(options: UpOptions, *, exit_when_settled: bool) -> int:
    """Run until settled or stopped; answers the exit code."""

    async def run() -> int:
        return await Up(options, exit_when_settled=exit_when_settled).run()

    return asyncio.run(run())
