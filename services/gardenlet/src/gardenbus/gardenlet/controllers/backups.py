"""Reconciler of the BackupBucket of the gardenlet's seed, where extensions make it.

The bucket has the name of the Seed's uid. It is made by `spec.backup`, and deleted with the Seed, which waits for that.
"""

import structlog

from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import is_deleting, key_of_document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import GardenbusError
from gardenbus.gardenlet.backend.extensions.backups import BackupReport, SeedBackups
from gardenbus.gardenlet.domain.backup_secret import backup_secret
from gardenbus.gardenlet.domain.extension_objects.backups import (
    BucketFinding,
    bucket_finding,
    core_bucket,
    has_spec_of,
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
        self._version = ""
        self.bucket: BucketFinding | None = None
        """None until it was read."""

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
        try:
            bucket = await self._seed.lookup.get(key)
            await self._write_core(seed, key, bucket)
            if bucket is not None:
                await self._reconcile_bucket(backups, bucket)
        except GardenbusError as error:
            _log.warning("backups.unknown", seed=self._seed.name, reason=error.message)
            return False
        self._read_at = now
        version: str = "" if bucket is None else listed(bucket).version
        if version != self._version:
            self._version = version
            self._changed_at = now
        before, self.bucket = self.bucket, bucket_finding(bucket)
        return before != self.bucket

    def request(self) -> None:
        """Reconcile in the next rounds, as the Seed has changed."""
        self._changed_at = self._seed.clock.monotonic()

    def stand_by(self) -> None:
        """Drop all state: another holder reports from now on."""
        self._read_at = self._applied_at = float("-inf")
        self.bucket = None

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
        if bucket is None or not has_spec_of(bucket, wanted):
            self._applied_at = self._changed_at = now
            await self._seed.reporter.apply(key, wanted)

    async def _reconcile_bucket(self, backups: SeedBackups, bucket: Document) -> None:
        await self._report(bucket, await backups.reconcile_bucket(bucket))

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
