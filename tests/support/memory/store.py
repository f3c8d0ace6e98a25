"""The store in memory: the store on Redis, its functions included, without a Redis.

It forgets everything at the end of the process, and serves one event loop.
"""

import uuid
from collections.abc import Callable
from typing import Any

from gardenbus.common.adapters.redis.store import RedisStore
from gardenbus.common.ports.clock import Clock, timestamp
from tests.support.memory.connection import PREFIX, MemoryConnection, MemoryRedis
from tests.support.memory.redis_data import RedisData
from tests.support.memory.state import MemoryState

_OPENER = "opener"


class MemoryStore(RedisStore):
    """See `ports.store.Store`. `reporter` signs the Events of binds and of shoots marked unschedulable.

    `is_open=False` starts it as a Redis that no relay has opened yet. The next `conflicts` updates (`math.inf`: all)
    are rejected with Conflict whatever they are based on, to test how callers retry.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        reporter: str = "gardenbus",
        is_open: bool = True,
        conflicts: float = 0,
        new_uid: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self.redis = MemoryRedis(RedisData(clock))
        super().__init__(MemoryConnection(self.redis), clock, reporter=reporter, new_uid=new_uid)
        self.state = MemoryState(self.redis, clock)
        self.redis.conflicts = conflicts
        if is_open:
            self.open()

    def open(self) -> None:
        """Open it as it is, without a relay: versions go on from the last."""
        now = timestamp(self._clock.now())
        requests = {"stream": "REQUESTS", "created": f"{0:020d}", "last": 0}
        opening = {"version": 0, "unblock_index": 0, "leap": 0, "floor": 0, "epoch": 0, "cause": "", "now": now}
        self.redis.call("lead", {"leader": _OPENER, "ttl_ms": 1000})
        opening |= {"leader": _OPENER, "token": uuid.uuid4().hex, "db": 0, "requests": requests}
        self.redis.call("open", opening)
        self.redis.call("resign", {"leader": _OPENER})

    def close_for_writes(self) -> None:
        """Close it, as a restart closes Redis."""
        self.redis.reload()

    def copied(self) -> dict[str, Any]:
        """All that is stored, as a copy of Redis' disk holds it."""
        return self.redis.data.copied()

    def restore_copy(self, copy: dict[str, Any]) -> None:
        """Start again on an older copy: closed, until a relay has compared it with the bus.

        The start takes longer than a lead.
        """
        self.redis.data.restore(copy)
        self.redis.data.execute("DEL", f"{PREFIX}:leader")
        self.redis.reload()

    async def close(self) -> None:
        """Nothing to release."""
