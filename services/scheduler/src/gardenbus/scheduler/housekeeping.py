"""Housekeeping beside the queues: refreshes usage, and warns of region ConfigMaps without effect."""

import asyncio

import structlog

from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.errors import Transient
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import EventRecord, Store
from gardenbus.scheduling.cache import SchedulingCache

_log = structlog.stdlib.get_logger()

EXPIRE_SECONDS = 60.0
"""Interval of looking for annotations that have expired."""


class Housekeeping:
    """Runs until `stopping` is set; survives outages."""

    def __init__(self, *, store: Store, cache: SchedulingCache, clock: Clock, stopping: asyncio.Event) -> None:
        self._store = store
        self._cache = cache
        self._clock = clock
        self._stopping = stopping
        self._reported: dict[str, str] = {}
        self._expired_at = clock.monotonic()

    async def run(self, poll_seconds: float) -> None:
        """Refresh usage and check region ConfigMaps every `poll_seconds`."""
        while not self._stopping.is_set():
            try:
                await self.refresh_usage()
                await self.warn_of_ignored()
                self._expire_annotations()
            except Transient as error:
                _log.warning("usage.unreachable", reason=error.message)
            await self._clock.sleep(poll_seconds)

    def _expire_annotations(self) -> None:
        """Look once a minute for annotations of Seeds that are valid no longer."""
        if self._clock.monotonic() - self._expired_at >= EXPIRE_SECONDS:
            self._expired_at = self._clock.monotonic()
            self._cache.expire_annotations(self._clock.now())

    async def refresh_usage(self) -> None:
        """Read what other replicas assigned."""
        await self._cache.refresh_usage(self._store)

    async def warn_of_ignored(self) -> None:
        """Put a Warning on each region ConfigMap that an earlier one by name leaves without effect, once."""
        duplicates = dict(self._cache.snapshot().landscape.duplicate_region_configmaps())
        for name, message in duplicates.items():
            if self._reported.get(name) == message:
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
        self._reported = duplicates
