"""The outbox in memory: `ports.outbox.Outbox` of a `MemoryStore`."""

from gardenbus.relay.adapters.redis_outbox import RedisOutbox
from tests.support.memory.connection import MemoryConnection
from tests.support.memory.store import MemoryStore


class MemoryOutbox(RedisOutbox):
    """See `ports.outbox.Outbox`. `leader` names this relay; several outboxes of one store compete."""

    def __init__(self, store: MemoryStore, *, leader: str = "relay") -> None:
        super().__init__(MemoryConnection(store.redis), store.state.clock, leader=leader)
