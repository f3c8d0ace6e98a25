"""Closes connections whose credentials were revoked; clients with other credentials reconnect by themselves.

Twice, since another replica may have let one in that had not heard of it yet.
"""

from collections.abc import Callable, Sequence

import structlog

from gardenbus.common.controller.delaying_queue import DelayingQueue
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.clock import Clock
from gardenbus.identity import metrics
from gardenbus.identity.ports.system_account import ConnectedUsers

AGAIN_SECONDS = 1.0
ATTEMPTS = 2
REMOVED_SECONDS = 2.0
"""Time between the removal of a Seed, or MemberCluster, and the end of its agent's connection."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class RevokedConnectionsController:
    """`withdraw` enqueues users and serial numbers; the queue has their connections closed.

    `users_of` find the user of a serial number: the server does not say who came in by which certificate.
    """

    def __init__(self, system: ConnectedUsers, clock: Clock, *users_of: Callable[[str], str | None]) -> None:
        self._system = system
        self._users_of = users_of
        self._left: dict[str, int] = {}
        """Attempts that are left, by what was enqueued."""
        self.queue: DelayingQueue[str] = DelayingQueue(self.reconcile, clock=clock, controller="revoked-connections")

    def withdraw(self, names: Sequence[str]) -> None:
        """Enqueue users, or serial numbers of certificates, that were revoked or lost a credential."""
        self._left.update(dict.fromkeys(names, ATTEMPTS))
        for name in names:
            self.queue.add(name)

    def withdraw_soon(self, names: Sequence[str]) -> None:
        """Enqueue users whose object is being removed: their agents hear that it has gone, and why, before they are."""
        self._left.update(dict.fromkeys(names, ATTEMPTS))
        for name in names:
            self.queue.add(name, REMOVED_SECONDS)

    async def reconcile(self, name: str) -> float | None:
        """Close the connections of one; returns the seconds until the next attempt.

        An attempt without a response does not count.
        """
        self._left[name] -= 1
        try:
            await self._kick(name)
        except Unavailable as error:
            log.warning("connection.kept", user=name, reason=error.message)
            self._left[name] += 1
        if self._left[name] > 0:
            return AGAIN_SECONDS
        del self._left[name]
        return None

    async def _kick(self, name: str) -> None:
        for user in sorted({name, *filter(None, (find(name) for find in self._users_of))}):
            for connection in await self._system.connections_of(user):
                await self._system.kick(connection)
                metrics.KICKED.inc()
                log.warning("connection.kicked", user=connection.user, connection=connection.number)
