"""Puts a relay together."""

from prometheus_client import Counter, Gauge

from gardenbus.common.adapters.redis_outbox import RedisOutbox
from gardenbus.common.machinery.relay import Relay, RelaySettings
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.relay.settings import RelayServiceSettings

_ANNOUNCED = Counter("gardenbus_relay_announced", "Outbox entries announced and trimmed.")
_LEADING = Gauge("gardenbus_relay_leading", "1 while this relay leads.")


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
    relay.on_announced = _ANNOUNCED.inc
    _LEADING.set_function(lambda: relay.leading)
    task = context.spawn("relay", relay.run())

    async def resign() -> None:
        task.cancel()

    context.on_stop("relay", resign)
