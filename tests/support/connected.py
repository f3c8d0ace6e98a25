"""A store and a bus on real servers, as services of one landscape have them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.store import RedisStore
from gardenbus.common.ports.bus import Bus
from gardenbus.common.runtime.clock import SystemClock
from tests.support.servers import Server


@asynccontextmanager
async def connected_adapters(nats: Server, redis: Server, prefix: str) -> AsyncGenerator[tuple[RedisStore, Bus]]:
    """A store and a bus of a landscape, closed in the end."""
    connection = RedisConnection(redis.url, prefix)
    try:
        async with jetstream.connect(nats.url, "test", prefix) as bus:
            yield RedisStore(connection, SystemClock(), reporter="tester"), bus
    finally:
        await connection.close()
