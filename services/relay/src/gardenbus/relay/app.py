"""Puts a relay together."""

from gardenbus.common.adapters.redis.stats import store_stats
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.relay import metrics
from gardenbus.relay.adapters.library_pruner import LibraryPruner
from gardenbus.relay.adapters.redis_outbox import RedisOutbox
from gardenbus.relay.relay import Relay, RelaySettings
from gardenbus.relay.server_stats import export_server_stats, record_announced
from gardenbus.relay.settings import RelayServiceSettings


async def build(context: ServiceContext[RelayServiceSettings]) -> None:
    """Connect and start announcing whenever nobody else does."""
    connections = await connect_all(context, reporter="relay")
    outbox = RedisOutbox(connections.redis, context.clock, leader=context.instance)
    relay = Relay(
        outbox,
        connections.bus,
        connections.subjects,
        context.clock,
        RelaySettings(lead_ttl_seconds=context.settings.relay_lead_ttl_seconds),
    )
    relay.on_announced = lambda entries: record_announced(entries, context.clock.now().timestamp())
    metrics.LEADING.set_function(lambda: relay.leading)
    context.spawn(
        "observation",
        export_server_stats(
            lambda: store_stats(connections.redis),
            connections.bus.stats,
            context.clock,
            context.settings.observe_seconds,
        ),
    )
    task = context.spawn("relay", relay.run())
    context.spawn("libraries", LibraryPruner(connections.redis, context.clock).run())

    async def resign() -> None:
        task.cancel()

    context.on_stop("relay", resign)
