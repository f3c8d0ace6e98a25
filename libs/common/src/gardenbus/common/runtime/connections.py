"""Connections of services that keep objects: the store on Redis, and the bus on NATS.

Services that need the bus only use `bus_connection` and save importing the client of Redis, a third of their start.
"""

from dataclasses import dataclass

from gardenbus.common.adapters.nats.jetstream import JetStreamBus
from gardenbus.common.adapters.nats.streams import StreamSettings
from gardenbus.common.adapters.redis.access import RedisAccess
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.store import RedisStore
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.bus_connection import AnySettings, connect_bus
from gardenbus.common.runtime.service import ServiceContext


@dataclass(frozen=True)
class ServerConnections(Connections):
    """Open connections; the context closes them at the stop."""

    store: RedisStore
    bus: JetStreamBus
    redis: RedisConnection


async def connect_all(
    context: ServiceContext[AnySettings], *, reporter: str, streams: StreamSettings | None = None
) -> ServerConnections:
    """Connect to both servers; `reporter` signs the Events of this service."""
    bus, subjects = await connect_bus(context, streams=streams)
    settings = context.settings
    access = RedisAccess(settings.redis_password_file, settings.redis_ca, settings.redis_sentinel_password_file)
    redis = RedisConnection(settings.redis_url, settings.prefix, access=access, replicas=settings.redis_replicas)
    context.stack.push_async_callback(redis.close)
    await context.wait_for("redis", redis.ensure_ready)

    async def reachable() -> str | None:
        try:
            await redis.ensure_ready()
        except Unavailable as error:
            return error.message
        return None

    context.health.add_readiness("redis", reachable)
    return ServerConnections(RedisStore(redis, context.clock, reporter=reporter), bus, subjects, redis)
