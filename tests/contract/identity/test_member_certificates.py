"""A member agent says when its certificate ends, and renews it in time, and when somebody demands it."""

import contextlib
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from gardenbus.agent import certificate_manager, connections
from gardenbus.agent.domain.rotation import renewal_at
from gardenbus.common.api.document import Document, section
from gardenbus.common.ports.clock import parse_timestamp
from gardenbus.credentials import certificates, secret_files
from gardenbus.credentials.certificates import issued_at, read_certificate
from tests.support.eventually import eventually
from tests.support.guarded_landscape import GuardedLandscape, guarded_landscape
from tests.support.identities import SUBJECTS
from tests.support.member_agents import a_member_cluster, agents_of, an_agent_configuration, cluster_key

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning",  # the client leaves sockets of rejected connections to the collector
    "ignore::pytest.PytestUnraisableExceptionWarning",
)

LIFE_SECONDS = 40
"""The last tenth of it is what a busy machine has for a renewal."""


class Lisbon:
    """A cluster whose agent had nothing but a token."""

    def __init__(self, landscape: GuardedLandscape, directory: Path) -> None:
        self.landscape = landscape
        self.directory = directory / "lisbon"

    @property
    def certificate(self) -> x509.Certificate:
        return read_certificate((self.directory / "credentials.pem").read_bytes())

    async def cluster(self) -> Document:
        return await self.landscape.stored(cluster_key())

    async def until_reported(self) -> x509.Certificate:
        """Wait until the MemberCluster says when the present certificate ends; returns it."""

        async def reported() -> x509.Certificate:
            ends = section(await self.cluster(), "status").get("clientCertificateExpirationTimestamp")
            assert (self.directory / "credentials.pem").exists()
            certificate = self.certificate
            assert parse_timestamp(ends) == certificate.not_valid_after_utc
            return certificate

        return await eventually(reported)


@contextlib.asynccontextmanager
async def _lisbon(directory: Path, life_seconds: int, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Lisbon]:
    monkeypatch.setattr(certificate_manager, "CHECK_INTERVAL_SECONDS", 0.1)
    monkeypatch.setattr(connections, "WATCH_SECONDS", 0.2)
    monkeypatch.setattr(certificates, "LEAST_CLIENT_LIFE", timedelta(seconds=1))
    async with guarded_landscape(directory / "landscape", certificate_seconds=life_seconds) as landscape:
        lisbon = Lisbon(landscape, directory)
        token = (await landscape.operator.request("token.create", {"member": "lisbon"}))["token"]
        secret_files.make_directory(lisbon.directory)
        secret_files.write(lisbon.directory / "bootstrap-token", token.encode())
        agents = an_agent_configuration(a_member_cluster())
        async with agents_of(landscape.nats.url, SUBJECTS, directory, agents):
            yield lisbon


async def test_it_renews_its_certificate_between_70_and_90_percent_of_its_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = [
        renewal_at(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 11, tzinfo=UTC), part) for part in (0.0, 1.0)
    ]
    assert [each.day for each in drawn] == [8, 10]
    async with _lisbon(tmp_path, LIFE_SECONDS, monkeypatch) as lisbon:
        first = await lisbon.until_reported()
        assert first.not_valid_after_utc - issued_at(first) == timedelta(seconds=LIFE_SECONDS)

        async def renewed() -> x509.Certificate:
            certificate = lisbon.certificate
            assert certificate.serial_number != first.serial_number
            return certificate

        second = await eventually(renewed)
        age = issued_at(second) - issued_at(first)
        assert age >= timedelta(seconds=0.7 * LIFE_SECONDS - 1)  # a certificate's times are whole seconds
        assert second.public_key() != first.public_key()
        await lisbon.until_reported()


async def test_it_renews_its_certificate_when_somebody_demands_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _lisbon(tmp_path, 30 * 86_400, monkeypatch) as lisbon:
        first = await lisbon.until_reported()

        async def a_moment_later() -> None:
            assert datetime.now(UTC) >= issued_at(first) + timedelta(seconds=1)

        await eventually(a_moment_later)
        operation = {"metadata": {"annotations": {"gardener.cloud/operation": "renew"}}}
        await lisbon.landscape.operator.request("patch.membercluster._.lisbon", operation)

        async def met() -> None:
            assert lisbon.certificate.serial_number != first.serial_number
            annotations = section(await lisbon.cluster(), "metadata", "annotations")
            assert "gardener.cloud/operation" not in annotations

        await eventually(met)
        await lisbon.until_reported()
