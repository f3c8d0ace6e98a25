"""Closes connections whose credentials were revoked; clients with other credentials reconnect by themselves.

Twice, since another replica may have let one in that had not heard of it yet.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from gardenbus.common.adapters.nats.system_account import ServerConnection
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.clock import Clock
from gardenbus.identity import metrics

AGAIN_SECONDS = 1.0
ATTEMPTS = 2

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Connected(Protocol):
    """Port to the servers' system account."""

    async def connections_of(self, user: str) -> Sequence[ServerConnection]:
        """The connections of a user. Raises Unavailable."""
        ...

    async def kick(self, connection: ServerConnection) -> None:
        """Have one closed. Raises Unavailable."""
        ...


class KickingController:
    """`withdraw` enqueues users and serial numbers; `run` has their connections closed.

    `users_of` find the user of a serial number: the server does not say who came in by which certificate.
    """

    def __init__(self, system: Connected, clock: Clock, *users_of: Callable[[str], str | None]) -> None:
        self._system = system
        self._users_of = users_of
        self._clock = clock
        self._due: dict[str, int] = {}
        self._is_due = asyncio.Event()

    def withdraw(self, names: Sequence[str]) -> None:
        """Enqueue users, or serial numbers of certificates, that were revoked or lost a credential."""
        self._due.update(dict.fromkeys(names, ATTEMPTS))
        self._is_due.set()

    async def run(self) -> None:
        """Close connections for ever."""
        while True:
            await self._is_due.wait()
            self._is_due.clear()
            while self._due:
                await self.kick_due()
                await self._clock.sleep(AGAIN_SECONDS)

    async def kick_due(self) -> None:
        """Close what is due once; what no server responded to stays due."""
        for name in tuple(self._due):
            try:
                await self._kick(name)
            except Unavailable as error:
                log.warning("connection.kept", user=name, reason=error.message)
                continue
            left = self._due.get(name, 0) - 1
            if left > 0:
                self._due[name] = left
            else:
                self._due.pop(name, None)

    async def _kick(self, name: str) -> None:
        for user in sorted({name, *filter(None, (find(name) for find in self._users_of))}):
            for connection in await self._system.connections_of(user):
                await self._system.kick(connection)
                metrics.KICKED.inc()
                log.warning("connection.kicked", user=connection.user, connection=connection.number)
