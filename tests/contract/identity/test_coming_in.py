"""Connections come in by the auth callout, as who they prove to be, and get their row of the permission table."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.messages import RawMessage, decode_headers, publish_command
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.errors import Unavailable
from tests.support.eventually import eventually
from tests.support.identities import Guarded, guarded

GARDENLET = Principal("gardenlet", "aws-cork")
OPERATOR = Principal("operator", "operator")


@pytest.fixture
async def landscape(tmp_path: Path) -> AsyncIterator[Guarded]:
    """A guarded server."""
    async with guarded(tmp_path) as landscape:
        yield landscape


async def _listening(connection: Connection, subject: str) -> list[RawMessage]:
    received: list[RawMessage] = []
    await connection.listen(subject, received.append)
    await connection.flush_fully()
    return received


async def test_a_certificate_lets_a_gardenlet_in_and_the_server_says_who_sent_what(landscape: Guarded) -> None:
    received = await _listening(await landscape.connect(OPERATOR), "garden.lease.>")
    gardenlet = await landscape.connect(GARDENLET)
    await gardenlet.send([publish_command("garden.lease.aws-cork", b"{}")])

    async def arrived() -> None:
        assert len(received) == 1

    await eventually(arrived)
    sender = json.loads(decode_headers(received[0].header)["Nats-Request-Info"])
    assert sender["user"] == "seed:aws-cork"
    assert sender["acc"] == "OUT"


async def test_a_gardenlet_cannot_report_for_another_seed(landscape: Guarded) -> None:
    received = await _listening(await landscape.connect(OPERATOR), "garden.>")
    gardenlet = await landscape.connect(GARDENLET)
    for subject in ("garden.lease.aws-dublin", "garden.report.aws-dublin.shoot.dev.a", "garden.as.root.apply"):
        await gardenlet.send([publish_command(subject, b"{}")])
    await gardenlet.send([publish_command("garden.lease.aws-cork", b"{}")])

    async def arrived() -> None:
        assert [message.subject for message in received] == ["garden.lease.aws-cork"]

    await eventually(arrived)


async def test_a_session_that_ended_is_renewed_by_itself(tmp_path: Path) -> None:
    async with guarded(tmp_path, session=timedelta(seconds=2)) as landscape:
        received = await _listening(await landscape.connect(OPERATOR), "garden.lease.>")
        gardenlet = await landscape.connect(GARDENLET)

        async def ended_and_back() -> None:
            assert gardenlet.losses
            assert gardenlet.is_connected

        await eventually(ended_and_back)
        await gardenlet.send([publish_command("garden.lease.aws-cork", b"{}")])

        async def arrived() -> None:
            assert len(received) == 1

        await eventually(arrived)


async def test_whoever_has_no_credentials_stays_out(landscape: Guarded) -> None:
    nobody = Connection()
    with pytest.raises(Unavailable):
        await nobody.open(landscape.server.url, "nobody", on_reconnect=lambda: None, fails_unauthorized=True)
    await nobody.close()
