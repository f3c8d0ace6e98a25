"""Port to the servers' system account: who is connected, and having connections closed."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class ServerConnection(NamedTuple):
    """A connection: its server, its number there, and the user that it came in as."""

    server: str
    number: int
    user: str


class ConnectedUsers(Protocol):
    """Connections on all servers, by the users that they came in as."""

    async def connections_of(self, user: str) -> Sequence[ServerConnection]:
        """The connections of a user. Raises Unavailable."""
        ...

    async def kick(self, connection: ServerConnection) -> None:
        """Have one closed. Raises Unavailable."""
        ...
