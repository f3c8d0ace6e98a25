"""One process that hosts many gardenlets, so that a laptop can hold hundreds of seeds.

They share the connection, the HTTP client and the followers of BINDINGS: one consumer for up to a hundred seeds.
"""

import asyncio
import fcntl
import os
import socket
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from uuid import uuid4

import aiohttp
import structlog

from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.bus import Bus, Delivered, FollowRestarted, ReplayDone
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.keys import Subjects
from gardenbus.gardenlet.backend.local import LocalBackend
from gardenbus.gardenlet.decide.configuration import GardenletConfiguration
from gardenbus.gardenlet.reconcilers.gardenlet import BINDINGS, Gardenlet

_log = structlog.stdlib.get_logger()

SEEDS_A_FOLLOWER = 100
PROBE_SECONDS = 3.0
_PAUSE_SECONDS = 1.0
_OK = 200


class Identity:
    """Who holds a seed's Lease: a name in the state directory that is locked while the process lives.

    So a gardenlet that was killed takes its own Lease up again at once, in whichever process it comes back, and of two
    on one directory, of which one is a standby, each has a name of its own.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._descriptor = -1
        number = 0
        while self._descriptor < 0:
            self._descriptor = _locked(directory / f"holder-{number}")
            number += 1
        name = os.pread(self._descriptor, 256, 0).decode()
        if not name:
            name = f"{socket.gethostname()}_{uuid4()}"
            os.pwrite(self._descriptor, name.encode(), 0)
        self.name = name

    def release(self) -> None:
        """Let another process have the name."""
        os.close(self._descriptor)


def _locked(file: Path) -> int:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return -1
    return descriptor


class Host:
    """All gardenlets of one process."""

    def __init__(
        self,
        configurations: Sequence[GardenletConfiguration],
        *,
        bus: Bus,
        subjects: Subjects,
        clock: Clock,
        state_directory: Path,
    ) -> None:
        self._bus = bus
        self._subjects = subjects
        self._clock = clock
        self._identities = {
            each.seed_name: Identity(state_directory / ".holders" / each.seed_name) for each in configurations
        }
        self._session: aiohttp.ClientSession | None = None
        self._backends = {
            each.seed_name: LocalBackend(state_directory / each.seed_name, each.backend, clock)
            for each in configurations
        }
        self.gardenlets: Mapping[str, Gardenlet] = {
            each.seed_name: Gardenlet(
                each,
                bus=bus,
                subjects=subjects,
                clock=clock,
                backend=self._backends[each.seed_name],
                identity=self._identities[each.seed_name].name,
                probe=self._probe,
                version=package_version(),
            )
            for each in configurations
        }

    async def start(self) -> None:
        """Open the backends."""
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PROBE_SECONDS))
        for backend in self._backends.values():
            await backend.start()

    async def run(self) -> None:
        """Listen and live, until cancelled."""
        seeds = sorted(self.gardenlets)
        async with asyncio.TaskGroup() as tasks:
            for start in range(0, len(seeds), SEEDS_A_FOLLOWER):
                tasks.create_task(self._follow(seeds[start : start + SEEDS_A_FOLLOWER]), name=f"bindings {start}")
            for seed in seeds:
                tasks.create_task(self.gardenlets[seed].run(), name=f"gardenlet {seed}")

    async def stop(self) -> None:
        """Let every gardenlet say its last and release its Lease. `run` must have ended."""
        await asyncio.gather(*(gardenlet.stop() for gardenlet in self.gardenlets.values()), return_exceptions=True)

    async def close(self) -> None:
        """Close the backends."""
        if self._session is not None:
            await self._session.close()
        for backend in self._backends.values():
            await backend.stop()
        for identity in self._identities.values():
            identity.release()

    def unhealthy(self) -> list[str]:
        """Seeds whose gardenlet has missed too many rounds."""
        return [seed for seed, gardenlet in sorted(self.gardenlets.items()) if not gardenlet.is_healthy]

    def endpoints(self) -> Mapping[str, str]:
        """Where each seed's `/healthz` is."""
        return {seed: backend.health_url for seed, backend in sorted(self._backends.items())}

    async def _follow(self, seeds: Sequence[str]) -> None:
        filters = [each for seed in seeds for each in (self._subjects.bindings_of(seed), self._subjects.views_of(seed))]
        while True:
            for seed in seeds:
                self.gardenlets[seed].replay_began()
            try:
                async with self._bus.follow(
                    self._subjects.stream(BINDINGS), filters, last_per_subject=True
                ) as follower:
                    async for event in follower:
                        self._dispatch(event, seeds)
            except GardenbusError as error:
                _log.warning("bindings.interrupted", reason=error.message)
            await self._clock.sleep(_PAUSE_SECONDS)

    def _dispatch(self, event: Delivered | ReplayDone | FollowRestarted, seeds: Sequence[str]) -> None:
        if isinstance(event, Delivered):
            seed = event.subject.removeprefix(f"{self._subjects.prefix}.").split(".", 2)[1]
            self.gardenlets[seed].deliver(event)
            return
        for seed in seeds:
            if isinstance(event, ReplayDone):
                self.gardenlets[seed].replay_ended()
            else:
                self.gardenlets[seed].replay_began()

    async def _probe(self, url: str) -> str | None:
        """Ask a seed's `/healthz`."""
        assert self._session is not None
        try:
            async with self._session.get(url) as response:
                return None if response.status == _OK else f"{url} answers {response.status}"
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return f"{url} does not answer: {type(error).__name__}"


def package_version() -> str:
    """The version that reports carry."""
    try:
        return version("gardenbus-gardenlet")
    except PackageNotFoundError:
        return "0.0.0"
