"""Faults: how each kind is done to a landscape, and taken back."""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp

from gardenbus.embedded.ports import LOOPBACK
from gardenbus.embedded.processes import ManagedProcess
from tests.chaos.cluster import ChaosCluster, NoLeader
from tests.chaos.landscape import ChaosLandscape
from tests.chaos.plan import Fault
from tests.chaos.stranger import StrangerGardenlet
from tests.support.eventually import eventually
from tests.support.garbage import RawPublisher, garbage

KEPT_COPIES = 3
GARBAGE_PER_CHANNEL = 5
NATS_REPAIR_SECONDS = 15.0
"""Time in which the write error of a server is noticed and the server restarted, as `up` does."""
CONNECT_SECONDS = 3.0
FAILOVER_SECONDS = 40.0
CATCH_UP_SECONDS = 60.0
FILLER = "filler"


class Skipped(Exception):
    """This fault is not possible here; the message says why."""


class FaultMaker:
    """Does faults. `quiet` has the clients pause and everything settle, `resume` lets them go on."""

    def __init__(
        self,
        landscape: ChaosLandscape,
        stranger: StrangerGardenlet,
        *,
        quiet: Callable[[], Awaitable[None]],
        resume: Callable[[], None],
    ) -> None:
        self._landscape = landscape
        self._stranger = stranger
        self._quiet = quiet
        self._resume = resume
        self._copies: list[Path] = []
        self._copied = 0

    async def do(self, fault: Fault) -> None:
        """Do a fault, and take it back. Raises Skipped."""
        await asyncio.sleep(fault.after)
        await {
            "kill": self._kill,
            "pause": self._pause,
            "cut": self._disturb_line,
            "half-open": self._disturb_line,
            "delay": self._disturb_line,
            "clock": self._clock,
            "rolling": self._rolling,
            "garbage": self._garbage,
            "disk-full": self._disk_full,
            "restore": self._restore,
            "failover": self._failover,
            "partition": self._partition,
            "redis-partition": self._redis_partition,
            "old-disk": self._old_disk,
        }[fault.kind](fault)

    async def copy_stores(self) -> None:
        """Copy the data of both servers, for a later restore; of several copies the oldest is restored."""
        self._copied += 1
        folder = self._landscape.directory.path / "copies" / str(self._copied)
        for server in self._landscape.stores:
            await asyncio.to_thread(self._landscape.copy, server, folder / server)
        self._copies.append(folder)
        while len(self._copies) > KEPT_COPIES:
            shutil.rmtree(self._copies.pop(0))

    async def _kill(self, fault: Fault) -> None:
        if fault.target == self._stranger.seed:
            await self._stranger.kill()
            self._stranger.start()
        else:
            self._landscape.end(fault.target, signal.SIGKILL)

    async def _pause(self, fault: Fault) -> None:
        self._landscape.send(fault.target, signal.SIGSTOP)
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            self._landscape.send(fault.target, signal.SIGCONT)

    async def _disturb_line(self, fault: Fault) -> None:
        line = self._landscape.lines[fault.target]
        if fault.kind == "cut":
            line.cut(resets=fault.detail == "reset")
        elif fault.kind == "half-open":
            line.half_open()
        else:
            line.delay_seconds = float(fault.detail)
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            line.heal()

    async def _clock(self, fault: Fault) -> None:
        clock = self._landscape.clocks[fault.target]
        clock.set(float(fault.detail))
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            clock.set(0.0)

    async def _rolling(self, fault: Fault) -> None:
        """Stop the replicas of a role one after the other, as an upgrade does."""
        for name, process in self._landscape.processes.items():
            if process.spec.role == fault.target:
                before = process.restarts
                self._landscape.end(name, signal.SIGTERM)
                with contextlib.suppress(AssertionError):
                    await eventually(_restarted(self._landscape, name, before), every=0.05)

    async def _garbage(self, fault: Fault) -> None:
        try:
            publisher = await asyncio.wait_for(RawPublisher.connect(self._landscape.nats_urls[0]), CONNECT_SECONDS)
            for message in garbage("garden", seed=int(fault.detail), per_channel=GARBAGE_PER_CHANNEL):
                await publisher.publish(message)
            await publisher.close()
        except (OSError, TimeoutError) as error:
            raise Skipped("NATS was away because of another fault") from error

    async def _disk_full(self, fault: Fault) -> None:
        """Fill the file system of a server, and free it; NATS keeps its write error until it is restarted."""
        store = self._landscape.store(fault.target)
        if not os.path.ismount(store):
            raise Skipped("no file system of its own could be mounted for the server")
        with (store / FILLER).open("wb") as filler:
            free = os.fstatvfs(filler.fileno())
            with contextlib.suppress(OSError):
                os.posix_fallocate(filler.fileno(), 0, free.f_bavail * free.f_frsize)
            process = self._landscape.processes[fault.target]
            before = process.restarts
            await asyncio.sleep(fault.seconds)
        (store / FILLER).unlink()
        with contextlib.suppress(AssertionError):
            await eventually(_healthy(process), within=NATS_REPAIR_SECONDS, every=0.1)
        self._landscape.wanted_ends[fault.target] += process.restarts - before
        if self._landscape.unready([fault.target]):
            self._landscape.end(fault.target, signal.SIGTERM)

    async def _restore(self, fault: Fault) -> None:
        """Bring an older copy of a server's directory back, or an empty one: once everything is carried out."""
        if not self._copies and fault.detail == "older":
            raise Skipped("there is no copy yet")
        await self._quiet()
        await self._landscape.processes[fault.target].stop()
        copy = self._copies[0] / fault.target if fault.detail == "older" else None
        await asyncio.to_thread(self._landscape.replace_store, fault.target, copy)
        self._resume()
        self._landscape.start_server(fault.target)
        await eventually(_ready(self._landscape, fault.target), every=0.05)

    @property
    def _cluster(self) -> ChaosCluster:
        cluster = self._landscape.cluster
        assert cluster is not None, "the plan has this fault for clusters alone"
        return cluster

    async def _failover(self, fault: Fault) -> None:
        """Have the primary of Redis, or the leader of a stream, hang for longer than the others wait for it."""
        try:
            leader = self._cluster.primary() if fault.target == "redis" else await self._cluster.leader(fault.detail)
        except NoLeader as error:
            raise Skipped(str(error)) from error
        await self._pause(fault._replace(target=leader))

    async def _partition(self, fault: Fault) -> None:
        """Cut a server of NATS off from the others, or from one of them, while clients go on to speak to it."""
        self._cluster.isolate(fault.target, is_alone=fault.detail != "one link")
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            self._cluster.heal(fault.target)

    async def _redis_partition(self, fault: Fault) -> None:
        """Cut a server of Redis off; where its clients still reach it, they do while another is promoted."""
        if not self._cluster.has_redis_lines:
            raise Skipped("only on Linux has the loopback an address for each server")
        name = self._cluster.primary() if fault.target == "redis" else fault.target
        self._cluster.cut_off(name, fault.detail)
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            self._cluster.rejoin()

    async def _old_disk(self, fault: Fault) -> None:
        """A server comes back with an older copy of its directory, or an empty one, once another leads in its place."""
        if not self._copies and fault.detail == "older":
            raise Skipped("there is no copy yet")
        await self._quiet()
        self._resume()
        await self._landscape.processes[fault.target].stop()
        if fault.target.startswith("redis"):
            await eventually(self._another_leads(fault.target), within=FAILOVER_SECONDS, every=0.1)
        copy = self._copies[0] / fault.target if fault.detail == "older" else None
        await asyncio.to_thread(self._landscape.replace_store, fault.target, copy)
        self._landscape.start_server(fault.target)
        await eventually(_ready(self._landscape, fault.target), within=CATCH_UP_SECONDS, every=0.1)

    def _another_leads(self, name: str) -> Callable[[], Awaitable[None]]:
        async def leads() -> None:
            assert self._cluster.primary() != name

        return leads


def _ready(landscape: ChaosLandscape, name: str) -> Callable[[], Awaitable[None]]:
    async def ready() -> None:
        assert not (unready := landscape.unready([name])), unready

    return ready


def _healthy(process: ManagedProcess) -> Callable[[], Awaitable[None]]:
    """Ready, and well by its own words of now: a probe of a server that was well is seconds old."""

    async def healthy() -> None:
        assert process.state == "ready", process.trouble or process.state
        if process.spec.kind == "nats":
            url = f"http://{LOOPBACK}:{process.spec.port}{process.spec.path}/healthz"
            try:
                async with aiohttp.ClientSession() as session, session.get(url) as response:
                    assert response.status == 200, await response.text()
            except (aiohttp.ClientError, OSError) as error:  # it is restarted just now
                raise AssertionError(str(error)) from error

    return healthy


def _restarted(landscape: ChaosLandscape, name: str, before: int) -> Callable[[], Awaitable[None]]:
    async def restarted() -> None:
        assert landscape.processes[name].restarts > before
        assert not (unready := landscape.unready([name])), unready

    return restarted
