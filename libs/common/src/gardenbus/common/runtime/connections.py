"""What every service connects to, the same way: the store on Redis and the bus on NATS."""

from typing import NamedTuple

from gardenbus.common.adapters.jetstream import JetStreamBus
from gardenbus.common.adapters.redis_connection import RedisConnection
from gardenbus.common.adapters.redis_store import RedisStore
from gardenbus.common.errors import Unavailable
from gardenbus.common.resources.keys import Subjects
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.common.runtime.settings import CommonSettings


class Connections(NamedTuple):
    """Open connections; the context closes them at the stop."""

    redis: RedisConnection
    store: RedisStore
    bus: JetStreamBus
    subjects: Subjects


async def connect_bus(context: ServiceContext[CommonSettings]) -> tuple[JetStreamBus, Subjects]:
    """Connect to NATS (waiting for it), bring its streams about, and watch it in `/readyz`."""
    settings = context.settings
    subjects = Subjects(settings.prefix)
    bus = await JetStreamBus.connect(settings.nats_url, subjects, name=f"{context.name}-{context.instance}")
    context.stack.push_async_callback(bus.close)
    await context.wait_for("jetstream", bus.ensure_streams)
    context.health.add_readiness("nats", lambda: None if bus.connected else "not connected")
    return bus, subjects


async def connect_all(context: ServiceContext[CommonSettings], *, reporter: str) -> Connections:
    """Connect to both servers; `reporter` signs the Events of this service."""
    bus, subjects = await connect_bus(context)
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
