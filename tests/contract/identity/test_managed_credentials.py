"""Gardenlets that a gardenlet deploys, and their certificates: ended, revoked, and those of Seeds that were removed."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gardenbus.agent import certificate_manager, connections
from gardenbus.agent.connections import AgentConnections
from gardenbus.agent.host import HostPorts
from gardenbus.common.adapters.nats.credentials import read_credentials
from gardenbus.common.adapters.nats.jetstream import JetStreamBus
from gardenbus.common.api.configuration.gardenlet import parse_configurations
from gardenbus.common.api.confirmation import CONFIRMING_PATCH
from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.revocations import REVOCATIONS, revocation
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.clock import timestamp
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.credentials import secret_files
from gardenbus.credentials.certificates import issued_at, read_certificate, serial_of
from gardenbus.gardenlet import host as host_module
from gardenbus.gardenlet.app import gardenlet_of
from gardenbus.gardenlet.domain import managed_seeds
from gardenbus.gardenlet.host import GardenletHost
from tests.support.builders import a_cloudprofile, a_gardenlet_configuration, a_managed_seed, a_shoot, merged
from tests.support.eventually import eventually
from tests.support.guarded_landscape import GuardedLandscape, guarded_landscape
from tests.support.identities import SUBJECTS

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning",  # the client leaves sockets of rejected connections to the collector
    "ignore::pytest.PytestUnraisableExceptionWarning",
)

PARENT, GROWN = "seed-a", "grown"
MANAGED = ObjectKey("managedseed", "garden", GROWN)
SEED = ObjectKey("seed", "", GROWN)
VALIDITY = timedelta(minutes=2)


class Grown:
    """A gardenlet with a token, and one that it has deployed into a shoot."""

    def __init__(self, landscape: GuardedLandscape, directory: Path) -> None:
        self.landscape = landscape
        self.directory = directory
        self.host: GardenletHost | None = None
        self._stack = contextlib.AsyncExitStack()

    @property
    def file(self) -> Path:
        return self.directory / GROWN / "credentials.pem"

    async def start(self) -> None:
        self.host = await self._stack.enter_async_context(self._running())

    async def stop(self) -> None:
        await self._stack.aclose()

    @contextlib.asynccontextmanager
    async def _running(self) -> AsyncGenerator[GardenletHost]:
        own = AgentConnections(self.landscape.nats.url, SUBJECTS)
        ports = HostPorts(JetStreamBus(SUBJECTS), SUBJECTS, SystemClock(), self.directory, own)
        host = GardenletHost(parse_configurations(encode(_parent_configuration())), ports, gardenlet_of)
        await host.start()
        running = asyncio.create_task(host.run())
        try:
            yield host
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await host.stop()
            await host.close()

    async def request(self, tail: str, body: object) -> Any:
        return await self.landscape.operator.request(tail, body)

    async def seed(self) -> Document:
        return await self.landscape.stored(SEED)

    def serial(self) -> str:
        return serial_of(read_certificate(self.file.read_bytes()))

    async def until_up(self) -> None:
        """Wait until the managed gardenlet is connected, and its Seed is as it says."""

        async def up() -> None:
            assert self.host is not None
            connection = self.host.connection_of(GROWN) if GROWN in self.host.gardenlets else None
            assert connection is not None
            assert connection.problem is None
            ends = section(await self.seed(), "status").get("clientCertificateExpirationTimestamp")
            certificate = read_certificate(self.file.read_bytes())
            assert ends
            assert datetime.fromisoformat(ends) == certificate.not_valid_after_utc

        await eventually(up)

    async def until_gone(self, key: ObjectKey) -> None:
        async def gone() -> None:
            assert not await self.landscape.stored(key)

        await eventually(gone)

    async def set_end(self, at: datetime) -> None:
        """Have the Seed say that its gardenlet's certificate has ended."""
        stored = await self.landscape.store.get(SEED)
        assert stored is not None
        document = stored.document()
        status = {**document["status"], "clientCertificateExpirationTimestamp": timestamp(at)}
        await self.landscape.store.update(stored, {**document, "status": status})

    async def delete(self) -> None:
        """Delete the ManagedSeed."""
        await self.request(f"patch.{MANAGED.tail}", CONFIRMING_PATCH)
        await self.request(f"delete.{MANAGED.tail}", {})

    async def revoke(self) -> None:
        await self.request("apply", revocation(f"seed:{GROWN}", datetime.now(UTC), "stolen"))

    async def until_rejected(self) -> None:
        async def rejected() -> None:
            assert self.host is not None
            connection = self.host.connection_of(GROWN)
            assert connection is not None
            assert connection.is_rejected

        await eventually(rejected)

    async def connects_by(self, file: Path) -> bool:
        """True when somebody comes in by a file."""
        try:
            connection = await self.landscape.connect(read_credentials(file, ""), "somebody")
        except Unavailable:
            return False
        await connection.close()
        return True


def _parent_configuration() -> Document:
    waits = {"controllers": {"managedSeed": {"waitSyncPeriod": "1s"}}}
    return merged(a_gardenlet_configuration(PARENT, 50), waits)


def _managed_seed() -> Document:
    validity = {"kubeconfigValidity": {"validity": f"{VALIDITY.seconds}s"}}
    spec = {"provider": {"type": "aws", "region": "eu-west-1", "zones": ["eu-west-1a"]}}
    config = {"seedConfig": {"spec": spec}, "gardenClientConnection": validity}
    return a_managed_seed(GROWN, "field", spec={"gardenlet": {"config": config}})


@pytest.fixture
async def grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Grown]:
    """Both run, and look at their certificates more often than with lives of days."""
    monkeypatch.setattr(certificate_manager, "CHECK_INTERVAL_SECONDS", 0.2)
    monkeypatch.setattr(connections, "WATCH_SECONDS", 0.2)
    monkeypatch.setattr(host_module, "TOKEN_SECONDS", 1.0)
    monkeypatch.setattr(managed_seeds, "HELPER_AFTER", timedelta(seconds=5))
    async with guarded_landscape(tmp_path / "landscape") as landscape:
        grown = Grown(landscape, tmp_path / "gardenlets")
        garden = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": {"name": "garden"}}
        for document in ({**garden, "spec": {"namespace": "garden"}}, a_cloudprofile()):
            await grown.request("apply", document)
        token = (await grown.request("token.create", {"seed": PARENT}))["token"]
        secret_files.make_directory(grown.directory / PARENT)
        secret_files.write(grown.directory / PARENT / "bootstrap-token", token.encode())
        await grown.start()
        try:
            await _grow(grown)
            yield grown
        finally:
            await grown.stop()


async def _grow(grown: Grown) -> None:
    async def bound() -> None:
        assert await grown.landscape.stored(ObjectKey("seed", "", PARENT))
        await grown.request("apply", a_shoot("field", "garden", spec={"dns": {"domain": "field.example.org"}}))
        await grown.request("bind", {"namespace": "garden", "name": "field", "seed": PARENT})

    await eventually(bound)
    await grown.request("apply", _managed_seed())
    await grown.until_up()


async def test_the_validity_of_the_configuration_is_that_of_the_certificate(grown: Grown) -> None:
    certificate = read_certificate(grown.file.read_bytes())
    assert certificate.not_valid_after_utc - issued_at(certificate) == VALIDITY


async def test_a_gardenlet_whose_certificate_ended_while_it_was_stopped_comes_back(grown: Grown) -> None:
    await grown.stop()
    ended = grown.landscape.keys.authority.client(
        Principal("gardenlet", GROWN), datetime.now(UTC), timedelta(seconds=-5)
    )
    secret_files.write(grown.file, ended.certificate + ended.key)
    await grown.set_end(datetime.now(UTC) - timedelta(seconds=5))
    serial = grown.serial()

    await grown.start()

    await grown.until_up()
    assert grown.serial() != serial


async def test_a_revoked_gardenlet_comes_back_by_a_reconcile_request_and_not_before(grown: Grown) -> None:
    serial = grown.serial()
    await grown.revoke()
    await grown.until_rejected()
    await asyncio.sleep(2)
    assert grown.serial() == serial, "a revocation means what it says"

    patch = {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}}
    await grown.request(f"patch.{MANAGED.tail}", patch)

    await grown.until_up()
    assert grown.serial() != serial


async def test_a_managed_seed_whose_certificate_was_revoked_goes(grown: Grown) -> None:
    await grown.revoke()
    await grown.until_rejected()

    await grown.delete()

    await grown.until_gone(MANAGED)
    assert not await grown.seed()


async def test_credentials_of_a_removed_seed_end_with_it(grown: Grown, tmp_path: Path) -> None:
    copy = tmp_path / "stolen.pem"
    secret_files.write(copy, grown.file.read_bytes())
    assert await grown.connects_by(copy)
    token = (await grown.request("token.create", {"seed": GROWN}))["id"]

    await grown.delete()
    await grown.until_gone(MANAGED)

    assert not grown.file.exists()
    assert not await grown.landscape.stored(ObjectKey("secret", "kube-system", f"bootstrap-token-{token}"))
    assert (await grown.landscape.stored(REVOCATIONS))["data"][f"seed:{GROWN}"].endswith(" removed")
    assert not await grown.connects_by(copy)
