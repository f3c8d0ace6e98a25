"""Gardenlets renew certificates of less than a minute again and again while shoots are placed: no message is lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from gardenbus.agent import certificate_manager, connections
from gardenbus.agent.connections import AgentConnections
from gardenbus.agent.host import HostPorts
from gardenbus.common.adapters.nats.jetstream import JetStreamBus
from gardenbus.common.api.configuration.gardenlet import parse_configurations
from gardenbus.common.api.document import encode
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.credentials import certificates, secret_files
from gardenbus.credentials.certificates import read_certificate, serial_of
from gardenbus.gardenlet.app import gardenlet_of
from gardenbus.gardenlet.host import GardenletHost
from tests.support.builders import a_cloudprofile, a_gardenlet_configuration, a_project, a_shoot
from tests.support.eventually import eventually
from tests.support.guarded_landscape import GuardedLandscape, guarded_landscape
from tests.support.identities import SUBJECTS

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning",  # the client leaves sockets of rejected connections to the collector
    "ignore::pytest.PytestUnraisableExceptionWarning",
)

LIFE_SECONDS = 40
"""Some seconds of it are left when a certificate is renewed, which takes some on a busy machine."""
SEEDS = ("seed-a", "seed-b")
RENEWALS = 2
"""Of each gardenlet, at the least."""


class Fleet:
    """Two gardenlets with nothing but a token each, and shoots that are bound to them in turn."""

    def __init__(self, landscape: GuardedLandscape, host: GardenletHost, directory: Path) -> None:
        self.landscape = landscape
        self.host = host
        self._directory = directory
        self.serials: dict[str, set[str]] = {seed: set() for seed in SEEDS}
        self.placed: list[str] = []

    def observe(self) -> None:
        """Note the certificates that there are now."""
        for seed, seen in self.serials.items():
            with contextlib.suppress(FileNotFoundError):
                seen.add(serial_of(read_certificate((self._directory / seed / "credentials.pem").read_bytes())))

    async def place(self) -> None:
        """Order one more shoot, and bind it."""
        name, seed = f"shoot-{len(self.placed)}", SEEDS[len(self.placed) % len(SEEDS)]
        await self.landscape.operator.request("apply", a_shoot(name))
        await self.landscape.operator.request("bind", {"namespace": "garden-dev", "name": name, "seed": seed})
        self.placed.append(name)

    async def unfinished(self) -> list[str]:
        """Shoots whose gardenlet has not reported them as done."""
        listed = await self.landscape.operator.request("list.shoot.garden-dev", {"limit": 500})
        states = {
            shoot["metadata"]["name"]: shoot.get("status", {}).get("lastOperation", {}).get("state")
            for shoot in listed["items"]
        }
        return [name for name in self.placed if states.get(name) != "Succeeded"]


@pytest.fixture
async def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fleet]:
    """Everything runs, and looks at its certificates more often than with lives of days."""
    monkeypatch.setattr(certificate_manager, "CHECK_INTERVAL_SECONDS", 0.2)
    monkeypatch.setattr(connections, "WATCH_SECONDS", 0.2)
    monkeypatch.setattr(certificates, "LEAST_CLIENT_LIFE", timedelta(seconds=1))
    async with guarded_landscape(tmp_path / "landscape", certificate_seconds=LIFE_SECONDS) as landscape:
        for document in (a_project(), a_cloudprofile()):
            await landscape.operator.request("apply", document)
        directory = tmp_path / "gardenlets"
        for seed in SEEDS:
            token = (await landscape.operator.request("token.create", {"seed": seed}))["token"]
            secret_files.make_directory(directory / seed)
            secret_files.write(directory / seed / "bootstrap-token", token.encode())
        configurations = [
            one for seed in SEEDS for one in parse_configurations(encode(a_gardenlet_configuration(seed, 200)).decode())
        ]
        ports = HostPorts(
            JetStreamBus(SUBJECTS), SUBJECTS, SystemClock(), directory, AgentConnections(landscape.nats.url, SUBJECTS)
        )
        host = GardenletHost(configurations, ports, gardenlet_of)
        await host.start()
        running = asyncio.create_task(host.run())
        try:
            yield Fleet(landscape, host, directory)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await host.stop()
            await host.close()


@pytest.mark.long
async def test_no_message_is_lost_while_certificates_are_renewed(fleet: Fleet) -> None:
    async def ready() -> None:
        seeds = (await fleet.landscape.operator.request("list.seed", {}))["items"]
        assert {seed["metadata"]["name"] for seed in seeds} == set(SEEDS)

    await eventually(ready)

    async def renewed() -> None:
        fleet.observe()
        await fleet.place()
        assert all(len(seen) > RENEWALS for seen in fleet.serials.values()), fleet.serials

    await eventually(renewed, within=20 * LIFE_SECONDS, every=0.5)

    async def done() -> None:
        assert await fleet.unfinished() == []

    await eventually(done, every=0.5)
    assert fleet.host.unhealthy() == []
    for seed in SEEDS:
        connection = fleet.host.connection_of(seed)
        assert connection is not None
        assert connection.problem is None
