"""What goes on beside the queues: asking for usage, and telling people of region ConfigMaps without effect."""

import asyncio

import structlog

from gardenbus.common.errors import Transient
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import EventRecord, Store
from gardenbus.common.resources.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.scheduling.current import CurrentLandscape

_log = structlog.stdlib.get_logger()


class Upkeep:
    """Runs until `stopping` is set; survives outages."""

    def __init__(self, *, store: Store, current: CurrentLandscape, clock: Clock, stopping: asyncio.Event) -> None:
        self._store = store
        self._current = current
        self._clock = clock
        self._stopping = stopping
        self._told: dict[str, str] = {}

    async def run(self, poll_seconds: float) -> None:
        """Look after usage and region ConfigMaps every `poll_seconds`."""
        while not self._stopping.is_set():
            try:
                await self.ask_usage()
                await self.tell_duplicates()
            except Transient as error:
                _log.warning("usage.unreachable", reason=error.message)
            await self._clock.sleep(poll_seconds)

    async def ask_usage(self) -> None:
        """Learn what others placed; all of it when the store has gone back to an older state."""
        known = self._current.usage_version
        usage = await self._store.usage(known)
        if usage.version < known:
            self._current.usage_lost(await self._store.usage(0))
        else:
            self._current.usage_told(usage)

    async def tell_duplicates(self) -> None:
        """Put a Warning on each region ConfigMap that an earlier one by name leaves without effect, once."""
        duplicates = dict(self._current.snapshot().landscape.duplicate_region_configmaps())
        for name, message in duplicates.items():
            if self._told.get(name) == message:
                continue
            stored = await self._store.get(ObjectKey("configmap", GARDEN_NAMESPACE, name))
            if stored is not None:
                await self._store.record_event(
                    EventRecord(
                        about=stored.key,
                        uid=stored.uid,
                        type="Warning",
                        reason="RegionConfigIgnored",
                        message=message,
                        reporter="shoot-scheduler",
                        action="Reconcile",
                    )
                )
                _log.warning("regionconfig.ignored", configmap=name, reason=message)
        self._told = duplicates
