"""One credential that floods the bus is cut off: others' messages are stored, and the server's memory is bounded."""

import asyncio
import contextlib
import re
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.nats.api import call
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.messages import publish_command
from gardenbus.common.adapters.nats.own_follower import BATCH
from gardenbus.common.adapters.nats.streams import MAX_BYTES
from gardenbus.common.api.budgets import Budget
from gardenbus.common.api.identity.permissions import OUTSIDER_PAYLOAD
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import GardenbusError, Unavailable
from gardenbus.common.ports.bus import Message
from tests.support.identities import SUBJECTS, Guarded, guarded

EVE, ANN, OPERATOR = Principal("user", "eve"), Principal("user", "ann"), Principal("operator", "operator")
STOLEN, CORK = Principal("gardenlet", "aws-stolen"), Principal("gardenlet", "aws-cork")
ZEUS = ObjectKey("shoot", "garden-dev", "zeus")
BODY = bytes(OUTSIDER_PAYLOAD - 1024)
FLOOD_SECONDS = 15.0
MEMORY_OF_COMPOSE = 1024 * 1024 * 1024
MEMORY_OF_GO = "870MiB"
ROOT = Path(__file__).parents[3]


@pytest.fixture
async def landscape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Guarded]:
    """The server with its streams and the memory limit of compose, and nobody who takes anything from them."""
    monkeypatch.setenv("GOMEMLIMIT", MEMORY_OF_GO)
    async with guarded(tmp_path / "landscape") as landscape:
        credentials = landscape.credentials(Principal("service", "relay"))
        async with jetstream.connect(landscape.server.url, "relay", credentials=credentials):
            yield landscape


async def _flood(landscape: Guarded, principal: Principal, number: int, deadline: float) -> int:
    """Publish large messages without a pause, coming back whenever the connection is closed; how many were sent."""
    sent = 0
    while time.monotonic() < deadline:
        connection = Connection()
        try:
            await connection.open(
                landscape.server.url,
                f"flood-{number}",
                credentials=landscape.credentials(principal),
                on_reconnect=lambda: None,
            )
            while time.monotonic() < deadline:
                key = ObjectKey("shoot", "garden-dev", f"z{number}-{sent}")
                subject = (
                    SUBJECTS.report(principal.name, key)
                    if principal.role == "gardenlet"
                    else SUBJECTS.as_user(principal.user, "apply")
                )
                await connection.send([publish_command(subject, BODY)])
                sent += 1
                await asyncio.sleep(0)
        except (GardenbusError, OSError):
            await asyncio.sleep(0.05)
        finally:
            with contextlib.suppress(Exception):
                await connection.close()
    return sent


async def _publish_steadily(landscape: Guarded, principal: Principal, subject: str, deadline: float) -> int:
    """Publish small messages until each is acknowledged, as all clients of the library do; how many."""
    acknowledged = 0
    async with jetstream.connect(
        landscape.server.url, principal.user, credentials=landscape.credentials(principal), manages_streams=False
    ) as bus:
        while time.monotonic() < deadline:
            attempts = 0
            while True:
                attempts += 1
                try:
                    await bus.publish(Message(subject, b"{}"))
                    break
                except Unavailable:
                    assert attempts < 10
            acknowledged += 1
            await asyncio.sleep(0.02)
    return acknowledged


def _peak_memory(landscape: Guarded) -> int:
    """The most memory that the server has had, bytes."""
    assert landscape.server.process is not None
    status = Path(f"/proc/{landscape.server.process.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def test_agents_connections_that_do_not_read_hold_less_than_half_of_the_servers_memory() -> None:
    files = ("deploy/compose/nats.conf", "tools/embedded/src/gardenbus/embedded/servers.py", "tests/support/servers.py")
    found = {file: re.findall(r"max_pending: (\d+)MB", (ROOT / file).read_text()) for file in files}
    (pending,) = {int(each) for stated in found.values() for each in stated}
    assert all(found.values()), found
    assert MEMORY_OF_GO in (ROOT / "deploy/compose/compose.yaml").read_text()
    assert Budget().agents_connections * pending * 1_000_000 < int(MEMORY_OF_GO.removesuffix("MiB")) * 1024 * 1024 / 2


@pytest.mark.parametrize("flooder", [EVE, STOLEN], ids=lambda each: each.role)
async def test_while_one_credential_floods_everybody_elses_messages_are_stored(
    landscape: Guarded, flooder: Principal
) -> None:
    deadline = time.monotonic() + FLOOD_SECONDS
    quiet = (
        (ANN, SUBJECTS.as_user("ann", "apply")),
        (CORK, SUBJECTS.report("aws-cork", ZEUS)),
        (OPERATOR, SUBJECTS.apply),
    )
    floods = [asyncio.create_task(_flood(landscape, flooder, number, deadline)) for number in range(2)]
    acknowledged = await asyncio.gather(*(_publish_steadily(landscape, *each, deadline) for each in quiet))
    sent = sum(await asyncio.gather(*floods))
    assert all(acknowledged), acknowledged
    async with jetstream.connect(
        landscape.server.url, "operator", credentials=landscape.credentials(OPERATOR), manages_streams=False
    ) as bus:
        for stream, size in MAX_BYTES.items():
            state = await call(bus.connection, f"STREAM.INFO.{stream}")
            assert state["state"]["bytes"] < size / 2, (stream, sent)
    assert _peak_memory(landscape) < MEMORY_OF_COMPOSE


async def _peak_beside_silent_connections(directory: Path) -> int:
    """The most memory of a server, bytes, while one gardenlet requests much and reads nothing."""
    async with guarded(directory) as landscape:
        credentials = landscape.credentials(Principal("service", "relay"))
        async with jetstream.connect(landscape.server.url, "relay", credentials=credentials):
            await landscape.serve_consumers()
            relay = await landscape.connect(Principal("service", "relay"))
            for number in range(BATCH):
                subject = SUBJECTS.binding("aws-stolen", "garden-dev", f"z{number}")
                await relay.request_raw(subject, BODY, timeout_seconds=60)
            command = (sys.executable, "-m", "tests.support.silent_connections", landscape.server.url)
            file = str(landscape.certificate_file(STOLEN))
            silent = await asyncio.create_subprocess_exec(
                *command, file, STOLEN.name, stderr=asyncio.subprocess.DEVNULL
            )
            try:
                deadline = time.monotonic() + FLOOD_SECONDS
                await _publish_steadily(landscape, CORK, SUBJECTS.report("aws-cork", ZEUS), deadline)
            finally:
                silent.kill()
                await silent.wait()
            return _peak_memory(landscape)


async def test_connections_that_do_not_read_fill_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By all that has the server send a gardenlet something: messages of its consumer, its Lease, what is refused."""
    monkeypatch.setenv("GOMEMLIMIT", MEMORY_OF_GO)
    assert await _peak_beside_silent_connections(tmp_path) < MEMORY_OF_COMPOSE
