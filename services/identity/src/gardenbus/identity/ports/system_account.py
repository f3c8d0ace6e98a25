"""Port to the servers' system account: who is connected, and having connections closed."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class ServerConnection(NamedTuple):
    """A connection: its server, its number there, and the user that it came in as."""

    server: str
    number: int
    user: str


class ConnectionLoad(NamedTuple):
    """A connection, what its server holds for it that it has not read, and what it has sent since it began."""

    connection: ServerConnection
    pending_bytes: int
    received_bytes: int


class ConnectionsSnapshot(NamedTuple):
    """Connections from outside the services: those that are open, and the last ones that have ended."""

    open: Sequence[ConnectionLoad]
    ended: Sequence[ConnectionLoad]


class ConnectionLists(Protocol):
    """Lists of connections on all servers."""

    async def connection_lists(self) -> ConnectionsSnapshot:
        """The connections of everybody outside the services, on the servers that respond. Raises Unavailable."""
        ...


class ConnectedUsers(Protocol):
    """Connections on all servers, by the users that they came in as."""

    async def connections_of(self, user: str) -> Sequence[ServerConnection]:
        """The connections of a user. Raises Unavailable."""
        ...

    async def kick(self, connection: ServerConnection) -> None:
        """Have one closed. Raises Unavailable."""
        ...


class ServedConnections(ConnectedUsers, ConnectionLists, Protocol):
    """The connections of all servers, listed and closed."""
