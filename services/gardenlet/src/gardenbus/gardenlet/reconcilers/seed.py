"""Keeps one Seed: registers it, finds out how it is, and reports whatever of its status is not as it should be.

What to report is a comparison with the Seed as it was seen last, so a condition that somebody turned Unknown, or a
status that was lost, is put right by the next round.
"""

from collections.abc import Callable
from datetime import datetime

import structlog

from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.conditions import TRUE, condition_status, conditions_of
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.seeds import GARDENLET_READY
from gardenbus.gardenlet.backend.port import Backend, FencedOff, StepFailed
from gardenbus.gardenlet.decide.configuration import GardenletConfiguration
from gardenbus.gardenlet.decide.operations import SeedFitness
from gardenbus.gardenlet.decide.seed_status import (
    SeedFindings,
    fitness,
    gardener_identity,
    seed_gone_patch,
    seed_manifest,
    seed_status_patch,
)
from gardenbus.gardenlet.decide.status import without_times
from gardenbus.gardenlet.reconcilers.reports import Reporter
from gardenbus.gardenlet.reconcilers.told import Told

_log = structlog.stdlib.get_logger()

REPEAT_SECONDS = 10.0
REGISTER_AGAIN_SECONDS = 10.0


class SeedReconciler:
    """See the module. `certificate_expires_at`: when the gardenlet's client certificate ends; None without one."""

    def __init__(  # noqa: PLR0913 - the ports of one reconciler
        self,
        configuration: GardenletConfiguration,
        *,
        told: Told,
        backend: Backend,
        reporter: Reporter,
        clock: Clock,
        version: str,
        certificate_expires_at: Callable[[], datetime | None] = lambda: None,
    ) -> None:
        self._configuration = configuration
        self._told = told
        self._backend = backend
        self._reporter = reporter
        self._clock = clock
        self._certificate_expires_at = certificate_expires_at
        self._key = ObjectKey("seed", "", configuration.seed_name)
        self.identity = gardener_identity(configuration.seed_name, version)
        self._findings = SeedFindings(kubernetes_version=backend.kubernetes_version)
        self._cared_at = float("-inf")
        self._registered_at = float("-inf")
        self.is_registered = False
        self._said: tuple[Document, str] = ({}, "")
        self._said_at = float("-inf")
        self._is_cleared = False

    @property
    def fitness(self) -> SeedFitness:
        """Whether shoots may be worked on."""
        return fitness(self._told.seed, self.identity)

    @property
    def is_ready(self) -> bool:
        """Whether everybody sees that this gardenlet is ready."""
        seed = self._told.seed
        return seed is not None and condition_status(conditions_of(seed), GARDENLET_READY) == TRUE

    def stand_by(self) -> None:
        """Forget what was said: another one speaks now."""
        self._said = ({}, "")
        self._registered_at = self._said_at = self._cared_at = float("-inf")

    async def round(self) -> None:
        """Register when needed, look after the seed when due, report what is wrong. Called after each renewal."""
        now = self._clock.monotonic()
        if not self.is_registered or self._told.seed is None:
            await self._register(now)
        if self._told.seed is None:
            return
        if now - self._cared_at >= self._configuration.seed_care_period.total_seconds():
            self._cared_at = now
            await self._care(self._told.seed)
        if section(self._told.seed, "metadata").get("deletionTimestamp") and self._told.is_complete:
            await self._delete()
        self._findings = self._findings._replace(certificate_expires_at=self._certificate_expires_at())
        self._report(self._told.seed, now)

    def look_again(self) -> None:
        """Look after the seed in the next round (its generation changed)."""
        self._cared_at = float("-inf")

    async def _register(self, now: float) -> None:
        """Apply the Seed once in the life of this process, and again until it appears; never one that was removed."""
        if self._told.seed_is_gone:
            return
        seed = self._told.seed
        if seed is not None and section(seed, "metadata").get("deletionTimestamp"):
            self.is_registered = True
            return
        if not self._told.is_complete or now - self._registered_at < REGISTER_AGAIN_SECONDS:
            return
        try:
            await self._reporter.apply(self._key, seed_manifest(self._configuration))
        except Unavailable as error:
            _log.warning("seed.unregistered", seed=self._key.name, reason=error.message)
            return
        self.is_registered, self._registered_at = True, now
        _log.info("seed.registered", seed=self._key.name)

    async def _care(self, seed: Document) -> None:
        bucket_problem: str | None = None
        if section(seed, "spec").get("backup") and not section(seed, "metadata").get("deletionTimestamp"):
            try:
                await self._backend.ensure_bucket(self._told.seed_uid)
            except (StepFailed, FencedOff) as error:
                bucket_problem = error.message
        self._findings = self._findings._replace(
            system_problem=await self._backend.seed_problem(), bucket_problem=bucket_problem
        )

    async def _delete(self) -> None:
        """Let a deleting Seed go once no shoot is left: remove the bucket, then report that all is done."""
        shoots_left = max(len(self._told.present()), len(self._backend.shoots()))
        self._is_cleared = False
        bucket_problem = self._findings.bucket_problem
        if not shoots_left:
            try:
                await self._backend.delete_bucket(self._told.seed_uid)
                bucket_problem, self._is_cleared = None, True
            except StepFailed as error:
                bucket_problem = error.message
        self._findings = self._findings._replace(shoots_left=shoots_left, bucket_problem=bucket_problem)

    def _report(self, seed: Document, now: float) -> None:
        instant = self._clock.now()
        if section(seed, "metadata").get("deletionTimestamp") and self._is_cleared:
            patch = seed_gone_patch(instant)
        else:
            patch = seed_status_patch(seed, self._configuration, self._findings, identity=self.identity, now=instant)
        if not patch:
            return
        saying = (without_times(patch), str(section(seed, "metadata").get("resourceVersion")))
        if saying == self._said and now - self._said_at < REPEAT_SECONDS:
            return
        self._said, self._said_at = saying, now
        self._reporter.status(self._key, self._told.seed_uid, patch)
