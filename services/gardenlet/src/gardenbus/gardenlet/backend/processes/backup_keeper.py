"""Backups of one shoot's etcd: a full one a day, deltas between them, and what is old is removed.

Source: Gardener's etcd-backup-restore, with the times that Gardener gives it: full at a minute of the maintenance
window that is drawn for each day, deltas every 5 minutes or at 100 MiB, collection every 12 hours. etcd compacts what
is older than five minutes, so its changes are written to the spool every minute; where one is missed, a full backup
follows.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from gardenbus.common.api.garden.maintenance_windows import effective_window
from gardenbus.common.backups.catalog import Backup
from gardenbus.common.backups.collecting import collect
from gardenbus.common.backups.creating import read_catalog
from gardenbus.common.backups.schedule import is_full_due
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.backups import BackupFolder
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.gardenlet.backend.processes.cluster import Cluster
from gardenbus.gardenlet.backend.processes.delta_files import DELTA_SUFFIX, Spool, pack
from gardenbus.gardenlet.backend.processes.etcd_backup import save_snapshot
from gardenbus.gardenlet.backend.processes.etcd_client import EtcdClient
from gardenbus.gardenlet.domain.control_plane import ETCD
from gardenbus.gardenlet.domain.etcd_events import Compacted
from gardenbus.gardenlet.metrics import ETCD_BACKUP_FAILURES, ETCD_BACKUPS

_log = structlog.stdlib.get_logger()


class BackupTimes(NamedTuple):
    """Times and sizes at which backups are made and removed."""

    spool_seconds: float = 60.0
    delta_seconds: float = 300.0
    delta_bytes: int = 100 * 2**20
    collection_seconds: float = 43_200.0
    retry_seconds: float = 30.0


class EtcdBackupKeeper:
    """Backups of a control plane, in a folder of their own. Nothing is done while its etcd does not run."""

    def __init__(
        self,
        cluster: Cluster,
        folder: BackupFolder,
        clock: Clock,
        client: Callable[[Cluster], EtcdClient],
        times: BackupTimes,
    ) -> None:
        self.folder = folder
        self._cluster = cluster
        self._clock = clock
        self._client = client
        self._times = times
        self._lock = asyncio.Lock()
        self._spool: Spool | None = None
        self._latest: Backup | None = None
        self._latest_full_at: datetime | None = None
        self._is_loaded = False
        self._next_at = self._delta_at = self._collect_at = 0.0
        self._began_at = clock.now()
        self._good_at: datetime | None = None
        self._failure = ""

    @property
    def is_due(self) -> bool:
        """True if there is something to be done now."""
        runs = self._cluster.child(ETCD) is not None and not self._cluster.is_empty
        return runs and self._clock.monotonic() >= self._next_at and not self._lock.locked()

    @property
    def problem(self) -> str | None:
        """Sentence for a condition: backups have failed for twice the time of a delta (etcd-druid's BackupReady)."""
        since = self._good_at or self._began_at
        if not self._failure or self._clock.now() - since < timedelta(seconds=2 * self._times.delta_seconds):
            return None
        return f"etcd has not been backed up since {timestamp(since)}: {self._failure}"

    async def step(self) -> None:
        """Do what is due; failures are logged, and tried again."""
        self._next_at = self._clock.monotonic() + self._times.spool_seconds
        try:
            await self.back_up()
        except (GardenbusError, OSError) as error:
            if self._cluster.child(ETCD) is None:
                return  # it was ended meanwhile
            self._is_loaded = False
            self._failure = error.message if isinstance(error, GardenbusError) else str(error)
            self._next_at = self._clock.monotonic() + self._times.retry_seconds
            ETCD_BACKUP_FAILURES.inc()
            _log.warning("etcd.backup_failed", directory=str(self._cluster.directory), reason=self._failure)

    async def back_up(self, *, at_once: bool = False) -> None:
        """Spool what has changed, and back it up when that is due, or `at_once`.

        Raises StepFailed, Unavailable, OSError.
        """
        async with self._lock:
            if not self._is_loaded:
                await self._load()
            spool = None if self._is_full_due() else await self._spooled()
            if spool is None:
                await self._create_full()
            elif at_once or spool.size >= self._times.delta_bytes or self._clock.monotonic() >= self._delta_at:
                await self._create_delta(spool)
            self._failure = ""
            if self._clock.monotonic() >= self._collect_at:
                self._collect_at = self._clock.monotonic() + self._times.collection_seconds
                await collect(self.folder, self._clock.now())

    async def rescue(self) -> None:
        """Back up what a spool has, and what an etcd still knows whose files are gone; as far as that goes."""
        try:
            async with self._lock:
                await self._load()
                spool = self._spool
                if spool is not None and self._cluster.child(ETCD) is not None:
                    spool = await self._spooled() or spool
                if spool is not None:
                    await self._create_delta(spool)
        except (GardenbusError, OSError) as error:
            _log.warning("etcd.rescue_failed", directory=str(self._cluster.directory), reason=str(error))

    async def forget(self) -> None:
        """Read everything anew: the data is another one by now."""
        async with self._lock:
            self._is_loaded = False
            self._next_at = 0.0

    def _is_full_due(self) -> bool:
        state, name = self._cluster.state, self._cluster.directory.name
        assert state is not None
        window = effective_window({"maintenance": state.maintenance}, name)
        return is_full_due(self._latest_full_at, self._clock.now(), window, name)

    async def _load(self) -> None:
        """Find the latest backup, and the spool that goes on from it."""
        catalog = await read_catalog(self.folder)
        self._latest = catalog.chains[-1].last if catalog.chains else None
        self._latest_full_at = catalog.chains[-1].full.taken_at if catalog.chains else None
        spool = await asyncio.to_thread(Spool.load, self._cluster.spool)
        self._spool = None
        if spool is not None and self._latest is not None and spool.after <= self._latest.version <= spool.through:
            # A gardenlet that died between a delta and its next spool has left changes that the delta has.
            self._spool = await asyncio.to_thread(spool.without, self._latest.version)
        self._delta_at = 0.0
        self._is_loaded = True

    async def _spooled(self) -> Spool | None:
        """The spool with all changes up to now; None where some are gone, so that a full backup is needed."""
        if self._spool is None:
            return None
        try:
            async for changes in self._client(self._cluster).changes(self._spool.through):
                await asyncio.to_thread(self._spool.append, changes)
        except Compacted as error:
            _log.info("etcd.full_backup_needed", directory=str(self._cluster.directory), reason=str(error))
            self._spool = None
        return self._spool

    async def _create_full(self) -> None:
        backup, _ = await save_snapshot(self._cluster, self.folder, self._clock.now())
        await self._note(backup)
        self._latest_full_at = backup.taken_at

    async def _create_delta(self, spool: Spool) -> None:
        assert self._latest is not None
        now = self._clock.now()
        if spool.through == spool.after:
            self._good_at, self._delta_at = now, self._clock.monotonic() + self._times.delta_seconds
            return
        backup = Backup(now.replace(microsecond=0), False, spool.after, spool.through, suffix=DELTA_SUFFIX)
        draft = self._cluster.directory / "delta.draft.gz"
        try:
            entry, previous = self._cluster.directory.name, self._latest.name
            await asyncio.to_thread(pack, spool, draft, entry=entry, previous=previous)
            await self.folder.put(backup.name, draft)
            backup = backup._replace(size=draft.stat().st_size)
        finally:
            draft.unlink(missing_ok=True)
        await self._note(backup)

    async def _note(self, backup: Backup) -> None:
        self._spool = await asyncio.to_thread(Spool.begin, self._cluster.spool, backup.version)
        self._latest, self._good_at = backup, self._clock.now()
        self._delta_at = self._clock.monotonic() + self._times.delta_seconds
        ETCD_BACKUPS.labels("full" if backup.is_full else "delta").inc()
        _log.info("etcd.backed_up", shoot=self._cluster.directory.name, name=backup.name, bytes=backup.size)
