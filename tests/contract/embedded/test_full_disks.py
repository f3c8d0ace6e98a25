"""A server whose disk fills and is freed: nats-server is started anew, Redis goes on by itself."""

import asyncio
import contextlib
import shutil
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Message
from gardenbus.embedded.durability import Durability
from gardenbus.embedded.process_specs import ProcessSpec
from gardenbus.embedded.processes import ManagedProcess
from gardenbus.embedded.servers import NATS, find_server, nats_configuration
from tests.support.buses import BusUnderTest, on_jetstream
from tests.support.disks import SmallDisk, small_disk
from tests.support.eventually import eventually
from tests.support.servers import free_port


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", megabytes=24) as mounted:
        yield mounted


class SupervisedNats:
    """nats-server under a supervisor, and what that says."""

    def __init__(self, directory: Path, store: Path) -> None:
        self.reported: list[str] = []
        self.reported_writable_while_down = False
        self.port, monitor = free_port(), free_port()
        place = LandscapeDirectory(directory)
        place.prepare()
        file = place.config / "nats.conf"
        file.write_text(
            nats_configuration(port=self.port, monitor_port=monitor, store=store, durability=Durability.PROCESS)
        )
        spec = ProcessSpec(
            "nats", "nats", [str(find_server(NATS)), "-c", str(file)], {}, kind="nats", port=monitor, store=store
        )
        self.process = ManagedProcess(spec, place, notify=self._notify, changed=lambda: None)

    def _notify(self, text: str) -> None:
        self.reported.append(text)
        if "can write again" in text and not self._takes_connections():
            self.reported_writable_while_down = True

    def _takes_connections(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1.0):
            return True
        return False

    async def until(self, is_so: Callable[[ManagedProcess], bool]) -> None:
        async def seen() -> None:
            assert is_so(self.process), (self.process.entry(), self.process.trouble, self.reported)

        await eventually(seen)


@pytest.fixture
async def nats(tmp_path: Path, disk: SmallDisk) -> AsyncIterator[SupervisedNats]:
    supervised = SupervisedNats(tmp_path / "landscape", disk.path / "nats")
    supervised.process.start()
    await supervised.until(lambda process: process.state == "ready")
    yield supervised
    await supervised.process.stop()


async def filled(bus: BusUnderTest, disk: SmallDisk) -> int:
    """Publish until nothing is acknowledged any more; returns how many were."""
    disk.fill(leave=200_000)
    for number in range(1000):
        try:
            async with asyncio.timeout(1.0):
                await bus.bus.publish(Message(bus.work(f"job-{number}"), b"x" * 10_000))
        except TimeoutError:
            if shutil.disk_usage(disk.path).free < 2 * 10_000:
                return number
        except Unavailable:
            return number
    raise AssertionError("the disk did not fill")


async def stores(bus: BusUnderTest, body: bytes) -> None:
    """Wait until a message is acknowledged again."""

    async def stored() -> None:
        try:
            async with asyncio.timeout(1.0):
                await bus.bus.publish(Message(bus.work("after"), body))
        except (TimeoutError, Unavailable) as error:
            raise AssertionError("nothing is stored yet") from error

    await eventually(stored)


async def test_nats_is_started_anew_when_its_disk_has_room_again_and_has_all_that_was_acknowledged(
    nats: SupervisedNats, disk: SmallDisk
) -> None:
    bus = await on_jetstream(f"nats://127.0.0.1:{nats.port}")
    acknowledged = await filled(bus, disk)
    await nats.until(lambda process: "is full" in str(process.entry().note))
    assert nats.process.restarts == 0
    disk.free()
    await nats.until(lambda process: process.restarts == 1 and process.state == "ready")

    await stores(bus, b"x")
    await nats.until(lambda _: "nats can write again" in nats.reported)
    assert len(await bus.bus.subjects(bus.stream("QUEUES"), ">")) >= acknowledged + 1
    await bus.stack.aclose()
    announced = " | ".join(nats.reported)
    assert "is full; make room" in announced
    assert "has room again: it is restarted" in announced
    assert not nats.reported_writable_while_down


async def test_nats_that_died_on_a_full_disk_gets_its_room_back(nats: SupervisedNats, disk: SmallDisk) -> None:
    bus = await on_jetstream(f"nats://127.0.0.1:{nats.port}")
    await bus.bus.publish(Message(bus.work("first"), b"x" * 4_000_000))
    disk.fill()
    assert nats.process.pid
    process = await asyncio.create_subprocess_exec("kill", "-9", str(nats.process.pid))
    await process.wait()
    await nats.until(lambda process: process.restarts == 1)
    disk.free()

    await stores(bus, b"x" * 100_000)
    await bus.stack.aclose()
