"""Puts a relay together."""

from gardenbus.common.adapters.redis_figures import store_figures
from gardenbus.common.adapters.redis_libraries import LibraryKeeper
from gardenbus.common.adapters.redis_outbox import RedisOutbox
from gardenbus.common.machinery.relay import Relay, RelaySettings
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.relay import counters
from gardenbus.relay.observing import observe_for_ever, show_announced
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
    relay.on_announced = lambda news: show_announced(news, context.clock.now().timestamp())
    counters.LEADING.set_function(lambda: relay.leading)
    context.spawn(
        "observation",
        observe_for_ever(
            lambda: store_figures(connections.redis),
            connections.bus.figures,
            context.clock,
            context.settings.observe_seconds,
        ),
    )
    task = context.spawn("relay", relay.run())
    context.spawn("libraries", LibraryKeeper(connections.redis, context.clock).run())

    async def resign() -> None:
        task.cancel()

    context.on_stop("relay", resign)
