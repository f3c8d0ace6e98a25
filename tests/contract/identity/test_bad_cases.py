"""Clocks that differ, requests for another's certificate, and refusals without end, on real servers."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gardenbus.common.adapters.nats import connection
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import Credentials, read_credentials
from gardenbus.common.adapters.nats.messages import publish_command
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.signing_requests import new_signing_request
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Unavailable
from gardenbus.credentials import secret_files
from gardenbus.credentials.certificates import new_key, new_request
from tests.support.builders import a_seed
from tests.support.eventually import eventually
from tests.support.guarded_landscape import CLOCK, guarded_landscape
from tests.support.identities import Guarded, guarded

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning",  # the client leaves sockets of rejected connections to the collector
    "ignore:loop is closed:ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)

CORK, DUBLIN = Principal("gardenlet", "aws-cork"), Principal("gardenlet", "aws-dublin")


@pytest.fixture
async def landscape(tmp_path: Path) -> AsyncIterator[Guarded]:
    """A guarded server."""
    async with guarded(tmp_path) as landscape:
        yield landscape


def _issued_by_a_clock(landscape: Guarded, ahead: timedelta, file: Path) -> Credentials:
    """Credentials whose certificate was signed where the clock is ahead of ours."""
    issued = landscape.keys.authority.client(CORK, datetime.now(UTC) + ahead)
    secret_files.write(file, issued.certificate + issued.key)
    return read_credentials(file, "")


async def _come_in(landscape: Guarded, credentials: Credentials) -> Connection:
    opened = Connection()
    await opened.open(
        landscape.server.url, "cork", credentials=credentials, on_reconnect=lambda: None, fails_unauthorized=True
    )
    return opened


async def test_clocks_may_be_almost_five_minutes_apart_and_beyond_the_refusal_names_the_clock(
    landscape: Guarded, tmp_path: Path
) -> None:
    near = _issued_by_a_clock(landscape, timedelta(minutes=4, seconds=50), tmp_path / "near.pem")
    let_in = await _come_in(landscape, near)
    assert let_in.is_connected
    await let_in.close()
    far = _issued_by_a_clock(landscape, timedelta(minutes=6), tmp_path / "far.pem")
    with capture_logs() as logs, pytest.raises(Unavailable):
        await _come_in(landscape, far)
    assert any("a clock is wrong" in line.get("reason", "") for line in logs), logs


async def test_a_subject_that_is_refused_again_and_again_is_one_line_and_another_is_its_own(landscape: Guarded) -> None:
    gardenlet = await landscape.connect(CORK)
    with capture_logs() as logs:
        for _ in range(20):
            for subject in ("garden.lease.aws-dublin", "garden.as.root.apply"):
                await gardenlet.send([publish_command(subject, b"{}")])
        await gardenlet.flush_fully()
    complaints = [line["error"] for line in logs if line["event"] == "server.complained"]
    assert len(complaints) == 2, complaints
    assert gardenlet.losses == 0


async def test_pauses_between_refusals_grow(
    landscape: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 1 s to 5 min; here from 20 ms to 100 ms."""
    monkeypatch.setattr(connection, "FIRST_REJECTION_SECONDS", 0.02)
    monkeypatch.setattr(connection, "MOST_REJECTION_SECONDS", 0.1)
    expired = landscape.keys.authority.client(CORK, datetime.now(UTC) - timedelta(days=2), timedelta(days=1))
    file = tmp_path / "cork.pem"
    secret_files.write(file, expired.certificate + expired.key)
    gardenlet = Connection()
    with capture_logs() as logs:
        opening = asyncio.create_task(
            gardenlet.open(
                landscape.server.url, "cork", credentials=read_credentials(file, ""), on_reconnect=lambda: None
            )
        )

        async def five_times() -> list[float]:
            pauses = [line["retry_s"] for line in logs if line["event"] == "credentials.rejected"]
            assert len(pauses) >= 5
            return pauses

        try:
            pauses = await eventually(five_times)
        finally:
            opening.cancel()
            await asyncio.gather(opening, gardenlet.close(), return_exceptions=True)
    assert pauses[:5] == [0.02, 0.04, 0.08, 0.1, 0.1]


async def test_a_certificate_of_another_seed_is_denied_said_on_that_seed_and_written_down(tmp_path: Path) -> None:
    async with guarded_landscape(tmp_path / "landscape") as landscape:
        await landscape.operator.request("apply", a_seed("aws-dublin"))
        issued = landscape.keys.authority.client(CORK, CLOCK.now())
        file = tmp_path / "cork.pem"
        secret_files.write(file, issued.certificate + issued.key)
        with capture_logs() as logs:
            async with landscape.send_as(read_credentials(file, ""), CORK.user) as send:
                await send("csr.create", new_signing_request("greedy", new_request(DUBLIN, new_key())))

                async def denied() -> None:
                    (condition,) = (await send("csr.get", {"name": "greedy"}))["status"]["conditions"]
                    assert (condition["type"], condition["reason"]) == ("Denied", "NotOwnName")

                await eventually(denied)

            async def reported() -> None:
                query = {"fieldSelector": "involvedObject.name=aws-dublin"}
                events = (await landscape.operator.request("list.event", query))["items"]
                assert "CertificateNotOwnName" in [each["reason"] for each in events]

            await eventually(reported)
        (line,) = [line for line in logs if line["event"] == "certificate.denied"]
        assert (line["reason"], "seed:aws-cork" in str(line)) == ("NotOwnName", True), line
        assert not (await landscape.stored(ObjectKey("certificatesigningrequest", "", "greedy")))["status"].get(
            "certificate"
        )
