"""Reconciler of the BackupBucket of the gardenlet's seed and of the BackupEntries in it, where extensions make them.

The bucket has the name of the Seed's uid. It is made by `spec.backup`, and deleted with the Seed, which waits for that.
Entries are made as flows of shoots want them, and deleted with the shoots: by the garbage collector of the garden.
"""

from collections.abc import Mapping, Sequence

import structlog

from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import is_deleting, key_of_document, name_of
from gardenbus.common.api.garden.extensions import KindType
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import GardenbusError
from gardenbus.gardenlet.backend.extensions.backups import BackupReport, SeedBackups
from gardenbus.gardenlet.domain.backup_secret import backup_secret
from gardenbus.gardenlet.domain.extension_objects.backups import (
    BucketFinding,
    bucket_finding,
    core_bucket,
    has_all_of,
    is_for,
    is_responsible,
    kinds_present,
)
from gardenbus.gardenlet.domain.extension_objects.bastions import listed
from gardenbus.gardenlet.seed import ServedSeed

AT_REST_SECONDS, BUSY_SECONDS = 60.0, 60.0
"""Interval of the reads; and how long after a change one is made with each heartbeat instead."""

APPLY_AGAIN_SECONDS = 10.0
_log = structlog.stdlib.get_logger()


class BackupsReconciler:
    """See the module."""

    def __init__(self, seed: ServedSeed) -> None:
        self._seed = seed
        self._read_at = self._changed_at = self._applied_at = float("-inf")
        self._versions: Mapping[ObjectKey, str] = {}
        self._entry_applied_at: dict[ObjectKey, float] = {}
        self.bucket: BucketFinding | None = None
        """None until it was read."""
        self.present: frozenset[KindType] | None = None
        """Kinds and types of what is in the seed; None until it was read, and where no extension makes any."""

    @property
    def is_in_use(self) -> bool:
        """True if extensions make the bucket of this seed."""
        return self._seed.backend.backups is not None

    async def reconcile(self) -> bool:
        """Reconcile the bucket when that is due; true where its state differs from that of before.

        What cannot be read is read in the next round.
        """
        backups, seed, now = self._seed.backend.backups, self._seed.cache.seed, self._seed.clock.monotonic()
        interval = 0.0 if now - self._changed_at < BUSY_SECONDS else AT_REST_SECONDS
        if backups is None or seed is None or now - self._read_at < interval:
            return False
        key = ObjectKey("backupbucket", "", self._seed.cache.seed_uid)
        entries: Sequence[Document] = ()
        try:
            bucket = await self._seed.lookup.get(key)
            await self._write_core(seed, key, bucket)
            if bucket is not None:
                await self._report(bucket, await backups.reconcile_bucket(bucket))
                entries = await self._reconcile_entries(backups, bucket)
            else:
                backups.observe({})
        except GardenbusError as error:
            _log.warning("backups.unknown", seed=self._seed.name, reason=error.message)
            return False
        self._read_at = now
        found = [listed(each) for each in (*entries, *(() if bucket is None else (bucket,)))]
        versions = {each.key: each.version for each in found}
        if versions != self._versions:
            self._versions, self._changed_at = versions, now
        self.present = kinds_present(bucket, entries)
        before, self.bucket = self.bucket, bucket_finding(bucket)
        return before != self.bucket

    def request(self) -> None:
        """Reconcile in the next rounds: the Seed has changed, a shoot has gone, or a flow waits for an entry."""
        self._changed_at = self._seed.clock.monotonic()

    def stand_by(self) -> None:
        """Drop all state: another holder reports from now on."""
        self._read_at = self._applied_at = float("-inf")
        self.bucket = self.present = None

    async def _write_core(self, seed: Document, key: ObjectKey, bucket: Document | None) -> None:
        """Have the garden make the bucket as the Seed wants it, or delete it with the last shoot of a deleted Seed."""
        now = self._seed.clock.monotonic()
        if now - self._applied_at < APPLY_AGAIN_SECONDS:
            return
        if is_deleting(seed):
            if bucket is not None and not is_deleting(bucket) and not self._seed.shoots_left:
                self._applied_at = now
                await self._seed.reporter.delete(key)
            return
        secret = backup_secret(seed)
        if secret is None:
            return
        wanted = core_bucket(seed, secret.key)
        if bucket is None or not has_all_of(bucket, wanted):
            self._applied_at = self._changed_at = now
            await self._seed.reporter.apply(key, wanted)

    async def _reconcile_entries(self, backups: SeedBackups, bucket: Document) -> Sequence[Document]:
        """Have the garden keep the entries that flows want, and reconcile those that are this seed's; returns all."""
        if not backups.has_entries:
            return ()
        found = await self._seed.lookup.list("backupentry", f"spec.bucketName={name_of(bucket)}")
        entries = {listed(each).key: each for each in found}
        backups.observe(entries)
        for key, wanted in tuple(backups.wanted.items()):
            await self._apply_entry(key, entries.get(key), wanted)
        name = self._seed.name
        own = [
            each
            for key, each in entries.items()
            if is_responsible(each, name) or (key in backups.wanted and is_for(each, name))
        ]
        reports = await backups.reconcile_entries(own, bucket, self._seed.configuration.backup_entry)
        for each, report in zip(own, reports, strict=True):
            await self._report(each, report)
        return found

    async def _apply_entry(self, key: ObjectKey, entry: Document | None, wanted: Document) -> None:
        now = self._seed.clock.monotonic()
        if entry is not None and has_all_of(entry, wanted):
            self._entry_applied_at.pop(key, None)
        elif now - self._entry_applied_at.get(key, float("-inf")) >= APPLY_AGAIN_SECONDS:
            self._entry_applied_at[key] = now
            await self._seed.reporter.apply(key, wanted)

    async def _report(self, core: Document, report: BackupReport) -> None:
        key, uid, _ = listed(core)
        if report.status:
            self._changed_at = self._seed.clock.monotonic()
            self._seed.reporter.enqueue_status(key, uid, report.status)
        if report.reason:
            self._seed.reporter.enqueue_event(key, uid, kind="Warning", reason=report.reason, message=report.message)
        if report.secret is not None:
            self._changed_at = self._seed.clock.monotonic()
            await self._seed.reporter.apply(key_of_document(report.secret), report.secret)
