"""Backups of all control planes of a seed: made while they run, and restored where the data of an etcd is gone.

    <backend.backups>/<bucket>/<technical id>--<uid>/       see `etcd_backup`

Shoots of a seed without a backup bucket have no backups, as with Gardener.
"""

import asyncio
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

import structlog

from gardenbus.agent.files import replace_file
from gardenbus.common.backups.catalog import Backup, Catalog, Chain
from gardenbus.common.backups.creating import read_catalog
from gardenbus.common.backups.destinations import folder_of
from gardenbus.common.errors import BadRequest, GardenbusError, SettingsInvalid
from gardenbus.common.ports.backups import BackupFolder
from gardenbus.common.ports.clock import timestamp
from gardenbus.gardenlet.backend.port import BackendEvent, MakerContext, StaleFencingToken, StepFailed
from gardenbus.gardenlet.backend.processes.backup_keeper import BackupTimes, EtcdBackupKeeper
from gardenbus.gardenlet.backend.processes.cluster import Cluster
from gardenbus.gardenlet.backend.processes.etcd_backup import EtcdBackup, Ready, restore_chain, save_snapshot
from gardenbus.gardenlet.backend.processes.etcd_client import EtcdClient

_log = structlog.stdlib.get_logger()

CHECK_INTERVAL_SECONDS = 2.0
AGAIN_SECONDS = 30.0
"""Pause after a restoration that failed."""

_AT_ONCE = 2
DEPENDENCIES = "ERR_INFRA_DEPENDENCIES"


class _BucketBackups(NamedTuple):
    """Backups of one control plane in a bucket, with the latest chain of them."""

    folder: BackupFolder
    catalog: Catalog

    @property
    def chain(self) -> Chain:
        """The latest chain."""
        return self.catalog.chains[-1]

    @property
    def version(self) -> int:
        """Revision of etcd that it leads to: one that was restored goes on far above it, on whichever seed."""
        return self.chain.last.version


class EtcdBackups:
    """See the module. `ready` starts an etcd, and waits until it responds."""

    def __init__(
        self,
        context: MakerContext,
        *,
        client: Callable[[Cluster], EtcdClient],
        ready: Ready,
        times: BackupTimes | None = None,
    ) -> None:
        place = context.settings.backups or str((context.directory.parent / ".backups").absolute())
        try:
            self._root: BackupFolder = folder_of(place)
        except BadRequest as error:
            raise SettingsInvalid((f"seed {context.seed_name}: backend.backups: {error.message}",)) from error
        self._context = context
        self._clock = context.clock
        self._client = client
        self._ready = ready
        self.times = times or BackupTimes()
        self._file = context.directory / "backup-bucket"
        self._keepers: dict[Path, EtcdBackupKeeper] = {}
        self._failures: dict[Path, str] = {}
        self._again_at: dict[Path, float] = {}

    # ------------------------------------------------------------------------------------------ bucket

    @property
    def bucket(self) -> str:
        """The seed's bucket; "" while it has none."""
        try:
            return self._file.read_text()
        except FileNotFoundError:
            return ""

    async def ensure_bucket(self, name: str) -> None:
        """Make the bucket, and back up into it from now on. Raises StepFailed, StaleFencingToken."""
        with self._context.owned():
            pass
        try:
            await self._root.folder(name).make()
        except GardenbusError as error:
            raise StepFailed(f"The bucket: {error.message}", (DEPENDENCIES,)) from error
        if self.bucket != name:
            with self._context.owned():
                replace_file(self._file, name.encode())
            self._keepers.clear()

    async def delete_bucket(self, name: str) -> None:
        """Remove the bucket. Raises StepFailed while a backup in it may be needed, and StaleFencingToken."""
        with self._context.owned():
            pass
        try:
            bucket = self._root.folder(name)
            left = [each for each in await bucket.folders() if await bucket.folder(each).list()]
            if left:
                raise StepFailed(f"The bucket has backups of {', '.join(left[:3])}.", (DEPENDENCIES,))
            await bucket.remove()
            if not await self._root.folders() and not await self._root.list():
                await self._root.remove()
        except GardenbusError as error:
            raise error if isinstance(error, StepFailed) else StepFailed(error.message) from error
        with self._context.owned():
            self._file.unlink(missing_ok=True)

    # ------------------------------------------------------------------------------------------ making

    async def keep(self, clusters: Callable[[], Collection[Cluster]]) -> None:
        """Back up what is due, and restore what is gone, until cancelled or another gardenlet acquires the seed."""
        slots = asyncio.Semaphore(_AT_ONCE)

        async def one(cluster: Cluster) -> None:
            async with slots:
                if cluster.has_lost_data or cluster.damage is not None:
                    await self._restore_lost(cluster)
                elif (keeper := self.keeper(cluster)) is not None and keeper.is_due:
                    await keeper.step()

        while True:
            try:
                with self._context.owned():
                    pass
                await asyncio.gather(*(one(each) for each in clusters()))
            except StaleFencingToken:
                return
            await self._clock.sleep(CHECK_INTERVAL_SECONDS)

    def keeper(self, cluster: Cluster) -> EtcdBackupKeeper | None:
        """Keeper of a control plane's backups; None while the seed has no bucket."""
        keeper = self._keepers.get(cluster.directory)
        if keeper is None and (bucket := self.bucket):
            folder = self._root.folder(bucket).folder(cluster.directory.name)
            keeper = EtcdBackupKeeper(cluster, folder, self._clock, self._client, self.times)
            self._keepers[cluster.directory] = keeper
        return keeper

    async def save_for_migration(self, cluster: Cluster) -> EtcdBackup:
        """Save a snapshot for another seed. Raises StepFailed, Unavailable."""
        bucket, entry = self.bucket or self._context.seed_name, cluster.directory.name
        folder = self._root.folder(bucket).folder(entry)
        backup, digest = await save_snapshot(cluster, folder, self._clock.now())
        return EtcdBackup(bucket=bucket, key=f"{entry}/{backup.name}", sha256=digest, revision=backup.version)

    async def remove(self, entry: str) -> None:
        """Remove all backups of a control plane that was deleted. Raises Unavailable, StaleFencingToken."""
        for bucket in await self._root.folders():
            with self._context.owned():
                pass
            await self._root.folder(bucket).folder(entry).remove()

    def release(self, cluster: Cluster) -> None:
        """Back up no more: the control plane is not here any more."""
        for each in (self._keepers, self._failures, self._again_at):
            each.pop(cluster.directory, None)

    # ------------------------------------------------------------------------------------------ restoring

    def problem(self, cluster: Cluster) -> str | None:
        """Problem for the condition ControlPlaneHealthy."""
        failure = self._failures.get(cluster.directory)
        if cluster.has_lost_data:
            return f"The data of etcd is gone, and is restored{f': {failure}' if failure else ''}"
        if (damage := cluster.damage) is not None:
            return failure or f"etcd cannot read its data ({damage}), which is restored"
        keeper = self._keepers.get(cluster.directory)
        return keeper.problem if keeper is not None else None

    async def restore(self, cluster: Cluster, migrated: EtcdBackup | None, *, has_moved: bool = False) -> None:
        """Restore an etcd without data from the latest backup: this seed's, or that of the seed it came from.

        `has_moved`: it comes from another seed, whose backups are copied into the bucket of this one. Does nothing for
        a new shoot, which has none. Raises StepFailed, BackupInvalid, Unavailable, StaleFencingToken.
        """
        assert cluster.state is not None
        keeper = self.keeper(cluster)
        if keeper is not None:
            await keeper.rescue()
        await cluster.end_all()
        found = None if keeper is None else await _latest(keeper.folder)
        if has_moved and (source := await self._source(cluster, migrated, found)) is not None:
            found = source if keeper is None else await self._copied(cluster, source, keeper.folder)
        if found is not None:
            snapshot = found.chain.full.name
            digest = migrated.sha256 if migrated is not None and migrated.name == snapshot else ""
            await restore_chain(cluster, found.folder, found.chain, self._ready, sha256=digest)
            if digest:
                _log.info("etcd.restored", shoot=cluster.directory.name, name=snapshot)
            else:
                self._report_restored(cluster, found.chain.last)
        elif has_moved and migrated is not None:
            raise StepFailed(
                f"The etcd snapshot is gone: no bucket has {migrated.key}. backend.backups of all seeds must be one "
                "place.",
                (DEPENDENCIES,),
            )
        elif cluster.state.has_data:
            raise StepFailed("The data of etcd is gone, and there is no backup of it.", (DEPENDENCIES,))
        elif has_moved:
            self._record(cluster, "EtcdNotRestored", "No bucket has a backup of etcd, which begins without data.")
        if keeper is not None:
            await keeper.forget()

    async def _source(
        self, cluster: Cluster, migrated: EtcdBackup | None, own: _BucketBackups | None
    ) -> _BucketBackups | None:
        """The backups that a shoot comes from, where they are later than those of this seed.

        A source that was lost has named no snapshot: its bucket is the one with the latest backup.
        """
        entry = cluster.directory.name
        if migrated is not None:
            named = await _latest(self._root.folder(migrated.bucket).folder(entry))
            if named is not None and named.version >= migrated.revision:
                return named if own is None or own.version < named.version else None
        best = own
        for bucket in await self._root.folders():
            found = None if bucket == self.bucket else await _latest(self._root.folder(bucket).folder(entry))
            if found is not None and (best is None or best.version < found.version):
                best = found
        return None if best is own else best

    async def _copied(self, cluster: Cluster, source: _BucketBackups, into: BackupFolder) -> _BucketBackups | None:
        """Copy the backups of another bucket, the latest last: cut at any point, it goes on with what is missing."""
        there = {each.name for each in await into.list()}
        scratch = cluster.directory / "copy.draft"
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            for backup in source.catalog.backups:
                if backup.name in there:
                    continue
                with self._context.owned():
                    scratch.mkdir(mode=0o700, exist_ok=True)
                await into.put(backup.name, await source.folder.fetch(backup.name, scratch))
                shutil.rmtree(scratch, ignore_errors=True)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        _log.info("etcd.backups_copied", shoot=cluster.directory.name, place=source.folder.place)
        return await _latest(into)

    async def drop_sources(self, cluster: Cluster, migrated: EtcdBackup | None) -> None:
        """Remove what a shoot came with from other seeds. Raises Unavailable, StaleFencingToken."""
        buckets = set(await self._root.folders() if self.bucket else ())
        if migrated is not None:
            buckets.add(migrated.bucket)
        for bucket in buckets - {self.bucket}:
            with self._context.owned():
                pass
            await self._root.folder(bucket).folder(cluster.directory.name).remove()

    async def _restore_lost(self, cluster: Cluster) -> None:
        if cluster.busy.locked() or self._clock.monotonic() < self._again_at.get(cluster.directory, 0.0):
            return
        async with cluster.busy:
            try:
                await self._set_damaged_aside(cluster)
                await self.restore(cluster, None)
                self._failures.pop(cluster.directory, None)
            except StaleFencingToken:
                raise
            except (GardenbusError, OSError) as error:
                text = error.message if isinstance(error, GardenbusError) else str(error)
                self._again_at[cluster.directory] = self._clock.monotonic() + AGAIN_SECONDS
                if self._failures.get(cluster.directory) != text:
                    self._record(cluster, "EtcdRestorationFailed", text)
                self._failures[cluster.directory] = text
                _log.warning("etcd.not_restored", directory=str(cluster.directory), reason=text)

    async def _set_damaged_aside(self, cluster: Cluster) -> None:
        """Make room for a backup in place of data that etcd cannot read. Raises StepFailed where there is no backup."""
        if (damage := cluster.damage) is None:
            return
        keeper = self.keeper(cluster)
        if keeper is None or not (await read_catalog(keeper.folder)).chains:
            raise StepFailed(
                f"etcd cannot read its data ({damage}), and there is no backup of it: put a good copy in the place of "
                f"{cluster.data}, or remove that directory and delete the shoot",
                (DEPENDENCIES,),
            )
        self._record(
            cluster, "EtcdDataDamaged", f"etcd cannot read its data ({damage}), which is in {cluster.damaged}."
        )
        cluster.set_data_aside()

    def _report_restored(self, cluster: Cluster, backup: Backup) -> None:
        text = (
            f"The data of etcd was gone or damaged; it was restored from {backup.name}, as it was at "
            f"{timestamp(backup.taken_at)}: what was written after that is lost."
        )
        self._record(cluster, "EtcdRestored", text)
        _log.warning("etcd.restored", shoot=cluster.directory.name, name=backup.name)

    def _record(self, cluster: Cluster, reason: str, message: str) -> None:
        state = cluster.state
        if state is not None and all(state.shoot):
            self._context.events.append(BackendEvent(state.shoot, state.uid, reason, message))


async def _latest(folder: BackupFolder) -> _BucketBackups | None:
    """The backups in a folder; None where no chain begins."""
    catalog = await read_catalog(folder)
    return _BucketBackups(folder, catalog) if catalog.chains else None
