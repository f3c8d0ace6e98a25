"""The authority is rotated by the command while a gardenlet works: nothing that it sends is lost, on real servers."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from gardenbus.agent.connections import AgentConnections
from gardenbus.agent.domain.rotation import is_renewal_demanded
from gardenbus.cli.local.authority_rotation import AuthorityRotation
from gardenbus.common.adapters.nats.credentials import read_credentials
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Bus, Message
from gardenbus.credentials.certificates import is_issued_by, read_certificate
from tests.support.builders import a_seed
from tests.support.commands import gardenbus_program
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.guarded_landscape import GuardedLandscape, guarded_landscape
from tests.support.identities import SUBJECTS
from tests.support.landscape import Ended, ended

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning",  # the client leaves sockets of rejected connections to the collector
    "ignore::pytest.PytestUnraisableExceptionWarning",
)

CORK = Principal("gardenlet", "aws-cork")
SEED = ObjectKey("seed", "", "aws-cork")


async def gardenbus(landscape: GuardedLandscape, *arguments: str) -> Ended:
    """Run a command as the operator, to whom the authority's files belong."""
    file = landscape.directory / "operator.json"
    file.write_text(json.dumps({"user": "operator", "password": "the operator's"}))
    process = await asyncio.create_subprocess_exec(
        str(gardenbus_program()),
        *arguments,
        *("--identity-dir", str(landscape.directory)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "GARDENBUS_NATS_URL": landscape.nats.url, "GARDENBUS_NATS_CREDENTIALS": str(file)},
    )
    return await ended(process)


class Sending:
    """Heartbeats, one after the other, each sent again until JetStream has acknowledged it."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self.again = 0

    async def run(self, bus: Bus) -> None:
        while True:
            body = json.dumps(
                {"kind": "Lease", "metadata": {"name": "aws-cork"}, "spec": {"renewTime": self.acknowledged}}
            )
            try:
                await bus.publish(Message("garden.lease.aws-cork", body.encode()))
                self.acknowledged += 1
            except Unavailable:
                self.again += 1
            await asyncio.sleep(0.01)


async def test_the_authority_is_rotated_under_a_gardenlet_that_works(tmp_path: Path) -> None:
    async with guarded_landscape(tmp_path / "landscape", replicas=2) as landscape:
        await landscape.operator.request("apply", a_seed("aws-cork"))
        made = await landscape.operator.request("token.create", {"seed": "aws-cork"})
        directory = landscape.directory / "agents" / "aws-cork"
        directory.mkdir(parents=True)
        (directory / "bootstrap-token").write_text(made["token"])
        own = AgentConnections(landscape.nats.url, SUBJECTS).own(CORK, directory)
        assert own is not None
        seed: dict[str, object] = {}
        own.is_renewal_demanded = lambda: is_renewal_demanded(seed)
        own.start()
        await asyncio.wait_for(own.opened(), HANG_SECONDS)
        file, sending = directory / "credentials.pem", Sending()
        old = tmp_path / "old.pem"
        old.write_bytes(file.read_bytes())
        task = asyncio.create_task(sending.run(own.bus))
        try:
            begun = await gardenbus(landscape, "ca", "rotate")
            assert begun.code == 0, begun
            assert "of the old one are those of seed:aws-cork" in begun.stdout
            early = await gardenbus(landscape, "ca", "rotate", "--finish")
            assert (early.code, "seed:aws-cork" in early.stderr) == (1, True), early
            seed = await landscape.stored(SEED)
            assert is_renewal_demanded(seed)
            rotation = AuthorityRotation(landscape.directory / "ca.crt", landscape.directory / "ca.key")

            async def renewed() -> None:
                assert is_issued_by(read_certificate(file.read_bytes()), rotation.read().signing)

            await eventually(renewed)
            await landscape.connect(read_credentials(old, ""), CORK.user)
            again = await gardenbus(landscape, "ca", "rotate")
            assert "everybody has a certificate of the new one" in again.stdout, again
            finished = await gardenbus(landscape, "ca", "rotate", "--finish")
            assert finished.code == 0, finished
            with pytest.raises(Unavailable, match="does not accept this user"):
                await landscape.connect(read_credentials(old, ""), CORK.user)
            await landscape.connect(read_credentials(file, ""), CORK.user)
            at = sending.acknowledged

            async def goes_on() -> None:
                assert sending.acknowledged > at + 50

            await eventually(goes_on)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await own.close()
        assert task.cancelled(), task
        nothing = await gardenbus(landscape, "ca", "rotate", "--finish")
        assert (nothing.code, "no rotation has begun" in nothing.stderr) == (2, True), nothing
