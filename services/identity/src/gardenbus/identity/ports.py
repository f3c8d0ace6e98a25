"""Port to the servers' system account."""

from collections.abc import Sequence
from typing import Protocol

from gardenbus.common.adapters.nats.system_account import ServerConnection


class Connected(Protocol):
    """See the module."""

    async def connections_of(self, user: str) -> Sequence[ServerConnection]:
        """The connections of a user. Raises Unavailable."""
        ...

    async def kick(self, connection: ServerConnection) -> None:
        """Have one closed. Raises Unavailable."""
        ...
