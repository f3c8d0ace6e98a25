"""What services connect to that keep objects: the store on Redis, and the bus on NATS.

Who speaks to the bus only takes `bus_connection` and is spared the client of Redis, a third of the start of a process.
"""

from typing import NamedTuple

from gardenbus.common.adapters.jetstream import JetStreamBus
from gardenbus.common.adapters.jetstream_streams import StreamSettings
from gardenbus.common.adapters.redis_connection import RedisConnection
from gardenbus.common.adapters.redis_store import RedisStore
from gardenbus.common.errors import Unavailable
from gardenbus.common.resources.keys import Subjects
from gardenbus.common.runtime.bus_connection import AnySettings, connect_bus
from gardenbus.common.runtime.service import ServiceContext


class Connections(NamedTuple):
    """Open connections; the context closes them at the stop."""

    redis: RedisConnection
    store: RedisStore
    bus: JetStreamBus
    subjects: Subjects


async def connect_all(
    context: ServiceContext[AnySettings], *, reporter: str, streams: StreamSettings | None = None
) -> Connections:
    """Connect to both servers; `reporter` signs the Events of this service."""
    bus, subjects = await connect_bus(context, streams=streams)
    redis = RedisConnection(context.settings.redis_url, context.settings.prefix)
    context.stack.push_async_callback(redis.close)
    await context.wait_for("redis", redis.reach)

    async def reachable() -> str | None:
        try:
            await redis.reach()
        except Unavailable as error:
            return error.message
        return None

    context.health.add_readiness("redis", reachable)
    return Connections(redis, RedisStore(redis, context.clock, reporter=reporter), bus, subjects)
