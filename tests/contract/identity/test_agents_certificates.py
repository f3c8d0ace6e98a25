"""An agent's own connection comes up by a token, takes renewed certificates over, and comes back after a revocation."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gardenbus.agent.connections import AgentConnections, OwnConnection
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.revocations import revocation
from gardenbus.credentials.certificates import read_certificate, serial_of
from tests.support.eventually import eventually
from tests.support.guarded_landscape import GuardedLandscape, guarded_landscape
from tests.support.identities import SUBJECTS

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning",  # the client leaves sockets of rejected connections to the collector
    "ignore::pytest.PytestUnraisableExceptionWarning",
)

CORK = Principal("gardenlet", "aws-cork")


@pytest.fixture
async def landscape(tmp_path: Path) -> AsyncIterator[GuardedLandscape]:
    """The services on guarded servers."""
    async with guarded_landscape(tmp_path / "landscape") as landscape:
        yield landscape


class Cork:
    """A gardenlet's directory, and its connection."""

    def __init__(self, landscape: GuardedLandscape) -> None:
        self.landscape = landscape
        self.directory = landscape.directory / "aws-cork"
        self.directory.mkdir()

    async def give_token(self) -> None:
        made = await self.landscape.operator.request("token.create", {"seed": "aws-cork"})
        (self.directory / "bootstrap-token").write_text(made["token"])

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncGenerator[OwnConnection]:
        own = AgentConnections(self.landscape.nats.url, SUBJECTS).own(CORK, self.directory)
        assert own is not None
        own.start()
        try:
            yield own
        finally:
            await own.close()

    @property
    def serial(self) -> str:
        return serial_of(read_certificate((self.directory / "credentials.pem").read_bytes()))


async def _connected(own: OwnConnection) -> None:
    async def connected() -> None:
        assert own.problem is None

    await eventually(connected)


async def test_a_connection_comes_up_by_a_token_and_takes_a_demanded_certificate_over(
    landscape: GuardedLandscape,
) -> None:
    cork = Cork(landscape)
    await cork.give_token()
    async with cork.connection() as own:
        await _connected(own)
        first, ends = cork.serial, own.certificate_expires_at
        assert ends is not None
        assert not (cork.directory / "bootstrap-token").exists()
        is_demanded = True
        own.is_renewal_demanded = lambda: is_demanded

        async def renewed() -> None:
            assert cork.serial != first
            assert own.bus.connection.losses == 1  # renewed by itself, once the new one was tried

        await eventually(renewed)
        await _connected(own)


async def test_a_revoked_gardenlet_comes_back_by_a_token_that_is_laid_before_it(landscape: GuardedLandscape) -> None:
    cork = Cork(landscape)
    await cork.give_token()
    async with cork.connection() as own:
        await _connected(own)
        await landscape.operator.request("apply", revocation(cork.serial, datetime.now(UTC), "stolen"))

        async def out() -> None:
            assert own.problem is not None

        await eventually(out)
        await cork.give_token()
        await _connected(own)
