"""Short questions to one server, on a connection of their own that ends with them."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.exceptions import AuthenticationError, RedisError

from gardenbus.common.adapters.redis.addresses import ServerAddress

QUESTION_SECONDS = 0.7
"""Longest wait for connection and responses; a server that takes longer counts as out of reach."""


def connection_to(pool: ConnectionPool, address: ServerAddress | None) -> AbstractConnection:
    """A connection of the pool that has not been made yet, to another address than the pool's."""
    connection = pool.make_connection()
    if address is not None:
        connection.host, connection.port = address  # pyright: ignore[reportAttributeAccessIssue]  sockets have none
    return connection


async def query(
    pool: ConnectionPool,
    address: ServerAddress | None,
    commands: Sequence[Sequence[str | bytes]],
    *,
    seconds: float = QUESTION_SECONDS,
    with_rejection: bool = False,
) -> list[Any] | None:
    """Responses of one server, in order, error replies among them; None when it cannot be reached in time.

    A server that rejects the login counts as out of reach, unless `with_rejection` has its error for all responses.
    """
    connection = connection_to(pool, address)
    try:
        async with asyncio.timeout(seconds):
            await connection.connect()
            return [await _queried(connection, command) for command in commands]
    except AuthenticationError as error:
        return [error for _ in commands] if with_rejection else None
    except (RedisError, OSError, TimeoutError):
        return None
    finally:
        with suppress(RedisError, OSError):
            await connection.disconnect(nowait=True)


async def _queried(connection: AbstractConnection, command: Sequence[str | bytes]) -> Any:
    try:
        await connection.send_command(*command)  # pyright: ignore[reportUnknownMemberType]
        return cast("Any", await connection.read_response())
    except RedisError as error:
        if isinstance(error, (ConnectionError, TimeoutError)):
            raise
        return error
