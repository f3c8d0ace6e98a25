"""While no replica of the identity service runs, sessions go on and services get in; others wait until it is back."""

from pathlib import Path

import pytest

from gardenbus.common.adapters.nats.credentials import read_credentials
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.errors import CredentialsRejected
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.credentials import secret_files
from tests.support.eventually import HANG_SECONDS
from tests.support.guarded_landscape import GuardedLandscape, guarded_landscape

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning",  # the client leaves sockets of rejected connections to the collector
    "ignore::pytest.PytestUnraisableExceptionWarning",
)

CORK = Principal("gardenlet", "aws-cork")


async def test_sessions_go_on_services_get_in_and_others_wait(tmp_path: Path) -> None:
    async with guarded_landscape(tmp_path / "landscape", replicas=0) as landscape:
        stop = await landscape.start_identity()
        issued = landscape.keys.authority.client(CORK, SystemClock().now())
        file = tmp_path / "cork.pem"
        secret_files.write(file, issued.certificate + issued.key)
        gardenlet = await landscape.connect(read_credentials(file, ""), CORK.user)
        await stop()

        acknowledged = await gardenlet.request_raw("garden.lease.aws-cork", b"{}", timeout_seconds=HANG_SECONDS)
        assert b'"LEASES"' in acknowledged.body
        service = await landscape.connect(read_credentials(landscape.directory / "relay.service.nk", "relay"), "relay")
        await service.flush_fully()
        with pytest.raises(CredentialsRejected, match="Authorization Violation"):
            await _come_in(landscape, file)
        assert (gardenlet.losses, gardenlet.is_connected) == (0, True)

        await landscape.start_identity()
        await _come_in(landscape, file)


async def _come_in(landscape: GuardedLandscape, file: Path) -> None:
    """Connect and be answered."""
    connection = await landscape.connect(read_credentials(file, ""), CORK.user)
    await connection.request_raw("garden.lease.aws-cork", b"{}", timeout_seconds=HANG_SECONDS)
