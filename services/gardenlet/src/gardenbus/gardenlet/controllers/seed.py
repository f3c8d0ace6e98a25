"""Reconciler of the gardenlet's own Seed: registers it, checks its health, and reports what differs in its status.

The report is a comparison with the observed Seed: a condition that was set Unknown, or a lost status, is corrected in
the next round.
"""

import structlog

from gardenbus.common.api.conditions import TRUE, condition_status, conditions_of
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.seeds import GARDENLET_READY
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import GardenbusError, Unavailable
from gardenbus.gardenlet.backend.port import StaleFencingToken, StepFailed
from gardenbus.gardenlet.controllers.backups import BackupsReconciler
from gardenbus.gardenlet.domain.backup_secret import backup_secret
from gardenbus.gardenlet.domain.seed_status import (
    SeedFindings,
    seed_gone_patch,
    seed_manifest,
    seed_status_patch,
)
from gardenbus.gardenlet.domain.shoot_status import without_times
from gardenbus.gardenlet.seed import ServedSeed

_log = structlog.stdlib.get_logger()

REPEAT_SECONDS = 10.0
MISSING_SECRET_SECONDS = 2.0
"""Period of the checks while the Secret of the backup is missing."""

REGISTER_AGAIN_SECONDS = 10.0


class SeedReconciler:
    """See the module. `certificate_expires_at`: expiry of the gardenlet's client certificate; None without one."""

    def __init__(self, seed: ServedSeed, backups: BackupsReconciler) -> None:
        self._seed = seed
        self._backups = backups
        self._key = ObjectKey("seed", "", seed.name)
        self._findings = SeedFindings(
            kubernetes_version=seed.backend.kubernetes_version, healthy_message=seed.backend.healthy_message
        )
        self._cared_at = float("-inf")
        self._missing_secret = ""
        self._registered_at = float("-inf")
        self.is_registered = False
        self._last_report: tuple[Document, str] = ({}, "")
        self._last_report_at = float("-inf")
        self._is_cleared = False

    @property
    def is_ready(self) -> bool:
        """True if the observed Seed has GardenletReady."""
        seed = self._seed.cache.seed
        return seed is not None and condition_status(conditions_of(seed), GARDENLET_READY) == TRUE

    def stand_by(self) -> None:
        """Drop all state: another holder reports from now on."""
        self._last_report = ({}, "")
        self._registered_at = self._last_report_at = self._cared_at = float("-inf")

    async def reconcile(self) -> None:
        """Register when needed, check health when due, report what differs. Called after each renewal of the Lease."""
        now = self._seed.clock.monotonic()
        if not self.is_registered or self._seed.cache.seed is None or self._seed.cache.seed_is_unconfirmed:
            await self._register(now)
        if self._seed.cache.seed is None:
            return
        if now - self._cared_at >= self._care_period_seconds:
            self._cared_at = now
            await self._care(self._seed.cache.seed)
        if section(self._seed.cache.seed, "metadata").get("deletionTimestamp") and self._seed.cache.is_complete:
            await self._delete()
        self._findings = self._findings._replace(certificate_expires_at=self._seed.certificate_expires_at())
        self._report(self._seed.cache.seed, now)

    @property
    def _care_period_seconds(self) -> float:
        period = self._seed.configuration.seed_care_period.total_seconds()
        return min(period, MISSING_SECRET_SECONDS) if self._missing_secret else period

    def request_care(self) -> None:
        """Check the seed's health in the next round (its generation changed)."""
        self._cared_at = float("-inf")

    async def _register(self, now: float) -> None:
        """Apply the Seed once per process, and again until it appears; never one that was deleted."""
        if self._seed.cache.seed_is_gone:
            return
        seed = self._seed.cache.seed
        if seed is not None and section(seed, "metadata").get("deletionTimestamp"):
            self.is_registered = True
            return
        if not self._seed.cache.is_complete or now - self._registered_at < REGISTER_AGAIN_SECONDS:
            return
        try:
            await self._seed.reporter.apply(self._key, seed_manifest(self._seed.configuration))
        except Unavailable as error:
            _log.warning("seed.registration_failed", seed=self._key.name, reason=error.message)
            return
        self.is_registered, self._registered_at = True, now
        _log.info("seed.registered", seed=self._key.name)

    async def _care(self, seed: Document) -> None:
        bucket_problem: str | None = None
        if section(seed, "spec").get("backup") and not section(seed, "metadata").get("deletionTimestamp"):
            self._missing_secret = await self._secret_problem(seed)
            bucket_problem = self._missing_secret or await self._bucket_problem()
        else:
            self._missing_secret = ""
        self._findings = self._findings._replace(
            system_problem=await self._seed.backend.seed_problem(),
            bucket_problem=bucket_problem,
            bucket_is_gone=self._backups.bucket is not None and self._backups.bucket.is_gone,
        )

    async def _secret_problem(self, seed: Document) -> str:
        """Problem of the Secret that the backup names, "" without one; the last known while nobody responds."""
        secret = backup_secret(seed)
        if secret is None:
            return ""
        try:
            return "" if await self._seed.lookup.exists(secret.key) else secret.problem
        except GardenbusError as error:
            _log.warning("backup_secret.unknown", seed=self._key.name, secret=str(secret.key), reason=error.message)
            return self._missing_secret

    async def _bucket_problem(self) -> str | None:
        """Make the backend's bucket; where extensions make one, once that is there. Its problem, as in Gardener."""
        if self._backups.is_in_use and (made := self._backups.bucket) is not None and made.problem is not None:
            return f"The following BackupBuckets have issues:\n* {made.problem}"
        if self._backups.is_in_use and (self._backups.bucket is None or not self._backups.bucket.is_ready):
            return self._findings.bucket_problem if self._backups.bucket is None else None
        try:
            await self._seed.backend.ensure_bucket(self._seed.cache.seed_uid)
        except (StepFailed, StaleFencingToken) as error:
            return error.message
        return None

    async def _delete(self) -> None:
        """Release a deleting Seed once no shoot is left: delete the bucket, then report completion."""
        shoots_left = self._seed.shoots_left
        self._is_cleared = False
        bucket_problem = self._findings.bucket_problem
        bucket = self._backups.bucket
        if not shoots_left and self._backups.is_in_use and (bucket is None or not bucket.is_gone):
            bucket_problem = f"BackupBucket {self._seed.cache.seed_uid} is still there."
        elif not shoots_left:
            try:
                await self._seed.backend.delete_bucket(self._seed.cache.seed_uid)
                bucket_problem, self._is_cleared = None, True
            except StepFailed as error:
                bucket_problem = error.message
        self._findings = self._findings._replace(shoots_left=shoots_left, bucket_problem=bucket_problem)

    def _report(self, seed: Document, now: float) -> None:
        instant = self._seed.clock.now()
        if section(seed, "metadata").get("deletionTimestamp") and self._is_cleared:
            patch = seed_gone_patch(instant)
        else:
            patch = seed_status_patch(
                seed, self._seed.configuration, self._findings, identity=self._seed.identity, now=instant
            )
        if not patch:
            return
        report = (without_times(patch), str(section(seed, "metadata").get("resourceVersion")))
        if report == self._last_report and now - self._last_report_at < REPEAT_SECONDS:
            return
        self._last_report, self._last_report_at = report, now
        self._seed.reporter.enqueue_status(self._key, self._seed.cache.seed_uid, patch)
