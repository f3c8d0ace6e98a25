"""Controllers that an informer feeds: every replica has them, and what one has done the others find done."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping

import structlog

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.reconcile_ids import bound_reconcile_id
from gardenbus.common.errors import Conflict, Transient
from gardenbus.common.ports.clock import Clock

_log = structlog.stdlib.get_logger()

RETRY_SECONDS = 0.5
"""Before another attempt when a server is away or another replica was faster."""

REJECTED_RETRY_SECONDS = 60.0
"""Before another attempt of what was rejected, unless something changes first."""


class InformerController(ABC):
    """A work queue of keys and its worker, which reconciles them one after another in their order."""

    KINDS: tuple[str, ...]
    NAMESPACES: Mapping[str, str] = {}

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: set[ObjectKey] = set()
        self._rejected: set[ObjectKey] = set()
        self._is_due = asyncio.Event()

    @abstractmethod
    def on_change(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None, /) -> None:
        """Enqueue what a changed object affects: the informer's callback for `KINDS`."""

    @abstractmethod
    async def reconcile(self, key: ObjectKey) -> bool:
        """Reconcile one object by its state in the store; returns True when it was rejected. Raises Transient."""

    def enqueue(self, *keys: ObjectKey) -> None:
        """Have objects reconciled."""
        self._due.update(keys)
        if self._due:
            self._is_due.set()

    async def run(self, start: Callable[[], Awaitable[None]]) -> None:
        """Start the informer, then reconcile for ever."""
        await start()
        retry_at: float | None = None
        while True:
            if not self._rejected:
                retry_at = None
            elif retry_at is None:
                retry_at = asyncio.get_running_loop().time() + REJECTED_RETRY_SECONDS
            try:
                async with asyncio.timeout_at(retry_at):
                    await self._is_due.wait()
            except TimeoutError:
                self._due |= self._rejected
                retry_at = None
            self._is_due.clear()
            if not await self.reconcile_due():
                await self._clock.sleep(RETRY_SECONDS)
                self._is_due.set()

    async def reconcile_due(self) -> bool:
        """Reconcile all that are due; returns True when none is due again."""
        due, self._due = self._due, set()
        for key in sorted(due):
            self._rejected.discard(key)
            try:
                with bound_reconcile_id():
                    if await self.reconcile(key):
                        self._rejected.add(key)
            except Conflict:
                self._due.add(key)
            except Transient as error:
                _log.warning("reconcile.interrupted", controller=type(self).__name__, reason=error.message)
                self._due |= due
                return False
        return not self._due
