"""`gardenbus up` from start to end: lock, processes, manifests, picture, settled or stopped, orderly stop."""

import asyncio
import contextlib
import math
import os
import signal
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from gardenbus.cli.client.api import ApiClient, ApiResponse, connected
from gardenbus.cli.client.cache import LandscapeCache
from gardenbus.cli.local.directory import DirectoryUnwritable, LandscapeInUse, ServiceStatus, directory_option
from gardenbus.cli.manifests.files import chunks, title
from gardenbus.cli.output.console import Exit, print_api_error, print_error
from gardenbus.common.adapters.addresses import without_password, without_user
from gardenbus.common.api.document import Document
from gardenbus.common.errors import GardenbusError, Unavailable
from gardenbus.embedded.convergence import not_converged_reason
from gardenbus.embedded.landscape import EmbeddedLandscape, StartFailed, UpOptions
from gardenbus.embedded.leftovers import end_leftovers
from gardenbus.embedded.picture import Scene
from gardenbus.embedded.ports import PortInUse
from gardenbus.embedded.screen import Screen
from gardenbus.embedded.servers import ServerMissing
from gardenbus.embedded.start_order import Unready, in_phases, unready_clusters, unready_seeds, until_agents_ready

CONVERGED_SECONDS = 2.0
CONVERGENCE_TIMEOUT_SECONDS = 120.0
POLL_SECONDS = 0.25
SETTLED_SECONDS = 5.0
"""Interval of the checks of a landscape that has settled, while it announces no change."""
API_SECONDS = 30.0
CANCEL_SECONDS = 0.2
OWNER_ALONE = 0o077
"""Mask under which everything below the state directory is made, by its supervisor and by all that it starts."""


class Up:
    """One run of `gardenbus up`."""

    def __init__(self, options: UpOptions, *, exit_when_converged: bool = False) -> None:
        self._options = options
        self._exit_when_converged = exit_when_converged
        self._screen = Screen()
        self._landscape = EmbeddedLandscape(options, notify=self._screen.notify)
        self._phase = "starting"
        self._rejected: list[tuple[str, dict[str, Any]]] = []
        self._cache: LandscapeCache | None = None

    async def run(self) -> int:
        """The whole run; returns the exit code."""
        try:
            lock = self._landscape.directory.lock()
        except (LandscapeInUse, DirectoryUnwritable) as error:
            self._screen.close()
            print_error(str(error))
            return Exit.FAILED
        try:
            return await self._run_locked()
        finally:
            os.close(lock)

    async def _run_locked(self) -> int:
        stop_requested = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stop_requested.set)
        stop = asyncio.create_task(stop_requested.wait(), name="stop")
        work = asyncio.create_task(self._work(), name="work")
        show_start = asyncio.create_task(self._draw_start(), name="show start")
        try:
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            return await work if work.done() else Exit.DONE
        except Unavailable as error:
            self._screen.close()
            print_error(str(error))
            return Exit.OUT_OF_REACH
        except (StartFailed, PortInUse, ServerMissing, DirectoryUnwritable, GardenbusError) as error:
            self._screen.close()
            print_error(str(error))
            return Exit.FAILED
        finally:
            await _ended({work, stop, show_start})
            self._show_end()
            self._screen.notify("stopping")
            await self._landscape.stop()
            self._screen.notify("stopped")

    async def _work(self) -> int:
        if ended := await asyncio.to_thread(end_leftovers, self._landscape.directory):
            self._screen.notify(f"ended {len(ended)} processes that an earlier `up` had left behind")
        await self._landscape.start(os.getpid())
        addresses = self._landscape.addresses
        self._phase = "running"
        nats, redis = without_user(addresses.nats_url), without_password(addresses.redis_url)
        self._screen.notify(f"ready: NATS {nats}, Redis {redis}")
        self._screen.notify(f"dashboard: {self._dashboard_hint}")
        async with connected(self._landscape.target, timeout_seconds=API_SECONDS, waits=True) as api:
            cache = self._cache = LandscapeCache(api)
            following = asyncio.create_task(cache.run(), name="cache")
            try:
                await self._apply_in_phases(api, cache)
                self._landscape.note_ready()
                return await self._watch(api, cache)
            finally:
                following.cancel()
                await asyncio.wait({following})

    async def _apply_in_phases(self, api: ApiClient, cache: LandscapeCache) -> None:
        """Apply what agents need, wait for those that were started here, then apply what is scheduled."""
        phases = in_phases(self._options.given.manifests)
        outcomes = await self._apply(api, phases.at_once)
        if phases.scheduled:
            await until_agents_ready(
                partial(self._unready_agents, api, cache), self._screen.notify, rest=len(phases.scheduled)
            )
            outcomes += await self._apply(api, phases.scheduled)
        if outcomes:
            counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
            self._screen.notify(f"{outcomes.total()} manifests: {counted}")

    async def _unready_agents(self, api: ApiClient, cache: LandscapeCache) -> list[Unready]:
        self._screen.draw(self._scene(cache))
        unready = unready_seeds(self._landscape.seeds, cache.seeds.values())
        if self._landscape.clusters:
            try:
                clusters = await api.items("membercluster")
            except GardenbusError:  # requested again, until the bound
                clusters = []
            unready += unready_clusters(self._landscape.clusters, clusters)
        return unready

    async def _apply(self, api: ApiClient, manifests: Sequence[Document]) -> Counter[str]:
        outcomes: Counter[str] = Counter()
        for chunk in chunks(manifests):
            for document, response in zip(chunk, await _applied(api, chunk), strict=True):
                outcomes[str(response.outcome or "applied") if response.ok else "refused"] += 1
                if not response.ok:
                    self._rejected.append((title(document), response.error))
                    self._screen.notify(f"{title(document)} was rejected: {response.error.get('message')}")
        return outcomes

    async def _watch(self, api: ApiClient, cache: LandscapeCache) -> int:
        """Show what goes on, until settled where that was requested, else until stopped."""
        converged_since: float | None = None
        reason, checked_at = "", -math.inf
        while True:
            now = time.monotonic()
            if self._phase == "running" or cache.changed.is_set() or now - checked_at >= SETTLED_SECONDS:
                cache.changed.clear()
                reason, checked_at = await self._not_converged_reason(api, cache), now
                now = time.monotonic()
            converged_since = None if reason else converged_since or now
            is_converged = converged_since is not None and now - converged_since >= CONVERGED_SECONDS
            if is_converged and self._phase == "running" and not self._exit_when_converged:
                self._screen.notify("settled")
                self._screen.show_if_not_live(list(cache.shoots.values()))
            self._phase = "settled" if is_converged else "running"
            self._screen.draw(self._scene(cache))
            if self._exit_when_converged and is_converged:
                self._screen.notify("settled")
                return Exit.FAILED if self._rejected else Exit.DONE
            if self._exit_when_converged and self._screen.age > CONVERGENCE_TIMEOUT_SECONDS:
                self._screen.notify(f"not settled: {reason}")
                return Exit.FAILED
            await asyncio.sleep(POLL_SECONDS)
            if self._phase == "settled" and not self._screen.is_live:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(SETTLED_SECONDS):
                        await cache.changed.wait()

    async def _not_converged_reason(self, api: ApiClient, cache: LandscapeCache) -> str:
        if down := [process.spec.name for process in self._landscape.processes if process.state != "ready"]:
            return f"{', '.join(down)} not ready"
        if not cache.current.is_set():
            return "the state of the landscape is still being read"
        try:
            census = await api.census(timeout_seconds=2.0)
        except GardenbusError as error:
            return error.message
        return not_converged_reason(
            census=census,
            shoots=list(cache.shoots.values()),
            seeds=list(cache.seeds.values()),
            sets=list(cache.sets.values()),
            autoscalers=list(cache.autoscalers.values()),
            expected_seeds=self._landscape.seeds,
        )

    def _show_end(self) -> None:
        """Leave the live picture; then what is worth keeping: rejected manifests, and shoots without a seed."""
        self._screen.close()
        for about, error in self._rejected:
            print_api_error(error, about)
        if self._cache:
            self._screen.show_unplaced(list(self._cache.shoots.values()))

    async def _draw_start(self) -> None:
        while self._phase == "starting":
            self._screen.draw(self._scene(None))
            await asyncio.sleep(POLL_SECONDS)

    @property
    def _dashboard_hint(self) -> str:
        """The command that leads to the dashboard, as people have to log in."""
        return f"gardenbus dashboard{directory_option(self._options.directory)}"

    def _scene(self, cache: LandscapeCache | None) -> Scene:
        address, page = self._landscape.addresses.nats_url, self._landscape.dashboard_url and self._dashboard_hint
        return Scene(
            title=f"Gardenbus · {self._phase} · {self._screen.age:.0f} s" + (f" · {address}" if address else ""),
            services=[
                ServiceStatus(process.spec.name, process.state, process.pid, process.restarts, process.trouble)
                for process in self._landscape.processes
            ],
            seeds=list(cache.seeds.values()) if cache else [],
            shoots=list(cache.shoots.values()) if cache else [],
            sets=list(cache.sets.values()) if cache else [],
            is_converged=self._phase == "settled",
            footer="Ctrl-C stops everything" + (f" · dashboard {page}" if page else ""),
            more_hint=f"gardenbus get shoots{directory_option(self._options.directory)}",
        )


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel until all have ended: a client that is just connecting may swallow the first cancellation."""
    while pending := {task for task in tasks if not task.done()}:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=CANCEL_SECONDS)


async def _applied(api: ApiClient, chunk: list[Document]) -> list[ApiResponse]:
    """Apply, again and again while there is no response: applying twice changes nothing."""
    deadline = time.monotonic() + API_SECONDS
    while True:
        try:
            return await api.apply(chunk)
        except Unavailable:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(POLL_SECONDS)


def run_up(options: UpOptions, *, exit_when_converged: bool) -> int:
    """Run until settled or stopped; returns the exit code."""

    async def run() -> int:
        return await Up(options, exit_when_converged=exit_when_converged).run()

    before = os.umask(OWNER_ALONE)
    try:
        return asyncio.run(run())
    finally:
        os.umask(before)
