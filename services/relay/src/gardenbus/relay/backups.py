"""Backs the store up by itself: a full backup a day, deltas between them, and what is old is removed.

The leading relay does it, so that there is one. It goes on from the latest backup at the destination, whoever made it;
where a delta cannot (the store was opened anew, the backup is unreadable), it makes a full one; of another store, none.
"""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

import structlog

from gardenbus.common.api.garden.maintenance_windows import MaintenanceWindow
from gardenbus.common.backups.catalog import Catalog
from gardenbus.common.backups.collecting import collect
from gardenbus.common.backups.creating import (
    BackupSource,
    Created,
    LatestBackup,
    create_delta,
    latest_of,
    read_catalog,
)
from gardenbus.common.backups.files import BackupInvalid
from gardenbus.common.backups.schedule import is_full_due
from gardenbus.common.errors import GardenbusError, NotFound
from gardenbus.common.ports.backups import BackupDestination
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.relay import metrics
from gardenbus.relay.backup_continuity import create_next_full

_log = structlog.stdlib.get_logger()

CHECK_INTERVAL_SECONDS = 5.0
RETRY_SECONDS = 30.0
RECORD_BYTES = 1024.0
"""Bytes of a record in a backup, until one was made."""


class BackupPlan(NamedTuple):
    """Times and sizes at which backups are made and removed."""

    window: MaintenanceWindow
    delta_seconds: float = 300.0
    delta_bytes: float = 100 * 2**20
    """Size that a delta would have at which it is made before its time."""
    collection_seconds: float = 43_200.0


class BackupKeeper:
    """See the module. `run` ends only when it is cancelled; `leads` is true while this relay leads."""

    def __init__(
        self,
        source: BackupSource,
        destination: BackupDestination,
        clock: Clock,
        plan: BackupPlan,
        leads: Callable[[], bool],
    ) -> None:
        self._source = source
        self._destination = destination
        self._clock = clock
        self._plan = plan
        self._leads = leads
        self._latest: LatestBackup | None = None
        self._latest_full_at: datetime | None = None
        self._is_loaded = False
        self._record_bytes = RECORD_BYTES
        self._delta_at = self._collect_at = 0.0

    async def run(self) -> None:
        """Back up while this relay leads."""
        while True:
            pause = CHECK_INTERVAL_SECONDS
            if self._leads():
                try:
                    await self.step()
                except (GardenbusError, OSError) as error:
                    metrics.BACKUP_FAILURES.inc()
                    reason = error.message if isinstance(error, GardenbusError) else str(error)
                    _log.error("backup.failed", destination=self._destination.place, reason=reason)
                    self._is_loaded = False
                    pause = RETRY_SECONDS
            else:
                self._is_loaded = False
            await self._clock.sleep(pause)

    async def step(self) -> None:
        """Do what is due. Raises the destination's and the store's errors."""
        if is_delta_due := await self._is_delta_due():
            await self._load()
        now = self._clock.now()
        if self._latest is None or is_full_due(self._latest_full_at, now, self._plan.window, self._source.prefix):
            self._note(await create_next_full(self._source, self._destination, self._clock.now))
        elif is_delta_due:
            await self._create_delta(self._latest, now)
        if self._clock.monotonic() >= self._collect_at:
            self._collect_at = self._clock.monotonic() + self._plan.collection_seconds
            if collected := await collect(self._destination, now):
                _log.info("backups.collected", count=len(collected))

    async def _load(self) -> None:
        """Find the latest backup, which another relay or an operator may have made."""
        catalog: Catalog = await read_catalog(self._destination)
        self._latest_full_at = catalog.chains[-1].full.taken_at if catalog.chains else None
        try:
            self._latest = await latest_of(self._destination, catalog, self._source.prefix, self._latest)
        except (BackupInvalid, NotFound) as error:
            _log.warning("backup.unreadable", reason=error.message)
            self._latest = None
        self._is_loaded = True

    async def _create_delta(self, latest: LatestBackup, now: datetime) -> None:
        try:
            created = await create_delta(self._source, self._destination, self._clock.now, latest)
        except NotFound as error:
            _log.info("backup.full_needed", reason=error.message)
            created = await create_next_full(self._source, self._destination, self._clock.now)
        if created is not None:
            self._note(created)
            return
        metrics.BACKUP_TAKEN_AT.set(now.timestamp())  # nothing has changed: the latest one is of now, too
        self._delta_at = self._clock.monotonic() + self._plan.delta_seconds

    async def _is_delta_due(self) -> bool:
        if not self._is_loaded or self._latest is None or self._clock.monotonic() >= self._delta_at:
            return True
        _, changes = await self._source.store.changes(self._latest.backup.version)
        return changes * self._record_bytes >= self._plan.delta_bytes

    def _note(self, created: Created) -> None:
        backup = created.latest.backup
        self._latest = created.latest
        self._delta_at = self._clock.monotonic() + self._plan.delta_seconds
        if backup.is_full:
            self._latest_full_at = backup.taken_at
        if created.records:
            self._record_bytes = backup.size / created.records
        metrics.BACKUPS.labels("full" if backup.is_full else "delta").inc()
        metrics.BACKUP_TAKEN_AT.set(backup.taken_at.timestamp())
        _log.info(
            "backup.created",
            name=backup.name,
            records=created.records,
            waiting=backup.waiting,
            bytes=backup.size,
            taken_at=timestamp(backup.taken_at),
        )
