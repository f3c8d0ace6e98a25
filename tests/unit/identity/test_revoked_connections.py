"""Who lost a credential is disconnected, twice, and again when no server responded."""

import pytest

from gardenbus.common.errors import Unavailable
from gardenbus.identity.controllers.revoked_connections import AGAIN_SECONDS, RevokedConnectionsController
from gardenbus.identity.ports.system_account import ServerConnection
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
    clock = FakeClock()
    controller = RevokedConnectionsController(servers, clock, users_of)
    controller.withdraw([name])
    for expected in (2, 4, 4):
        await controller.queue.reconcile_due()
        assert servers.kicked == ["seed:aws-cork"] * expected
        clock.advance(AGAIN_SECONDS)


async def test_who_could_not_be_disconnected_is_tried_again() -> None:
    servers = Servers("seed:aws-cork")
    servers.is_away = True
    clock = FakeClock()
    controller = RevokedConnectionsController(servers, clock, users_of)
    controller.withdraw(["seed:aws-cork"])
    for _ in range(10):
        await controller.queue.reconcile_due()
        clock.advance(AGAIN_SECONDS)
    assert not servers.kicked
    servers.is_away = False
    for _ in range(3):
        await controller.queue.reconcile_due()
        clock.advance(AGAIN_SECONDS)
    assert len(servers.kicked) == 2


async def test_who_loses_another_credential_meanwhile_is_disconnected_twice_once_more() -> None:
    servers = Servers("seed:aws-cork")
    clock = FakeClock()
    controller = RevokedConnectionsController(servers, clock, users_of)
    controller.withdraw(["seed:aws-cork"])
    await controller.queue.reconcile_due()
    controller.withdraw(["seed:aws-cork"])
    for expected in (2, 3, 3):
        await controller.queue.reconcile_due()
        assert len(servers.kicked) == expected
        clock.advance(AGAIN_SECONDS)
