"""Controllers that an informer feeds: every replica has them, and what one has done the others find done."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.delaying_queue import DelayingQueue
from gardenbus.common.controller.wait import RETRY_SECONDS
from gardenbus.common.errors import Conflict, Transient
from gardenbus.common.ports.clock import Clock

REJECTED_RETRY_SECONDS = 60.0
"""Before another attempt of what was rejected, unless something changes first."""


class InformerController(ABC):
    """A delaying queue of keys, whose one worker reconciles what is due in their order.

    After a conflict an object is due again at once: another replica was faster. After an outage nothing is tried for
    as long as `RETRY_SECONDS`.
    """

    KINDS: tuple[str, ...]
    NAMESPACES: Mapping[str, str] = {}

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._paused_until = 0.0
        self._queue: DelayingQueue[ObjectKey] = DelayingQueue(
            self._reconcile_one,
            clock=clock,
            controller=type(self).__name__,
            retry_seconds=RETRY_SECONDS,
            is_sorted=True,
        )

    @abstractmethod
    def on_change(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None, /) -> None:
        """Enqueue what a changed object affects: the informer's callback for `KINDS`."""

    @abstractmethod
    async def reconcile(self, key: ObjectKey) -> bool:
        """Reconcile one object by its state in the store; returns True when it was rejected. Raises Transient."""

    def enqueue(self, *keys: ObjectKey) -> None:
        """Have objects reconciled."""
        for key in keys:
            self._queue.add(key)

    async def run(self, start: Callable[[], Awaitable[None]]) -> None:
        """Start the informer, then reconcile for ever."""
        await start()
        await self._queue.run()

    async def reconcile_due(self) -> bool:
        """Reconcile all that are due; returns True when none is to be retried."""
        return await self._queue.reconcile_due()

    async def _reconcile_one(self, key: ObjectKey) -> float | None:
        if (pause_seconds := self._paused_until - self._clock.monotonic()) > 0:
            return pause_seconds
        try:
            return REJECTED_RETRY_SECONDS if await self.reconcile(key) else None
        except Conflict:
            return 0.0
        except Transient:
            self._paused_until = self._clock.monotonic() + RETRY_SECONDS
            raise
