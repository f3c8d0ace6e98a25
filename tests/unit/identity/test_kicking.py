"""Who lost a credential is disconnected, twice, and again when no server responded."""

import asyncio

import pytest

from gardenbus.common.adapters.nats.system_account import ServerConnection
from gardenbus.common.errors import Unavailable
from gardenbus.identity.handlers.kicking import KickingController
from tests.support.clocks import FakeClock


class Servers:
    """A system account with connections."""

    def __init__(self, *users: str) -> None:
        self.connections = [ServerConnection("N", number, user) for number, user in enumerate(users)]
        self.kicked: list[str] = []
        self.is_away = False

    async def connections_of(self, user: str) -> list[ServerConnection]:
        if self.is_away:
            raise Unavailable("nobody answers")
        return [each for each in self.connections if each.user == user]

    async def kick(self, connection: ServerConnection) -> None:
        self.kicked.append(connection.user)


def users_of(serial: str) -> str | None:
    return {"ab": "seed:aws-cork"}.get(serial)


@pytest.mark.parametrize("name", ["seed:aws-cork", "ab"])
async def test_a_user_or_the_user_of_a_certificate_is_disconnected_twice(name: str) -> None:
    servers = Servers("seed:aws-cork", "seed:aws-dublin", "seed:aws-cork")
    controller = KickingController(servers, FakeClock(), users_of)
    controller.withdraw([name])
    for expected in (2, 4, 4):
        await controller.kick_due()
        assert servers.kicked == ["seed:aws-cork"] * expected


async def test_who_could_not_be_disconnected_is_tried_again() -> None:
    servers = Servers("seed:aws-cork")
    servers.is_away = True
    controller = KickingController(servers, FakeClock(), users_of)
    controller.withdraw(["seed:aws-cork"])
    running = asyncio.create_task(controller.run())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not servers.kicked
    servers.is_away = False
    while len(servers.kicked) < 2:
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
