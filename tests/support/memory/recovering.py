"""A store in memory that recovers, as one that was restored does."""

from gardenbus.relay.ports.outbox import RecoveryStart
from tests.support.memory.outbox import MemoryOutbox
from tests.support.memory.store import MemoryStore


async def begin_recovery(store: MemoryStore) -> MemoryOutbox:
    """Have a relay open the store as one that went back; returns its outbox."""
    outbox = MemoryOutbox(store)
    store.close_for_writes()
    await outbox.lead(86_400)
    await outbox.open(0, 0, RecoveryStart("it lacked what the bus had"))
    return outbox
