"""Assesses all Seeds periodically and writes the consequences of silence.

The assessment is pure (`domain.assessment`); then each silent Seed is reconciled alone: read its Lease once more, read
the Seed, decide, write, and start over at once on a conflict. Replicas do the same work side by side: the second one
finds nothing to write.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta

import structlog

from gardenbus.common.api.configuration.controller_manager import LifecycleConfiguration
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.garden.rows import condition
from gardenbus.common.api.garden.seeds import GARDENLET_READY
from gardenbus.common.api.identity.revocations import REVOCATIONS, lines_in
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.controller.event_recorder import EventRecorder
from gardenbus.common.controller.reconcile_ids import bound_reconcile_id
from gardenbus.common.controller.wait import InterruptibleSleep
from gardenbus.common.errors import BadRequest, Conflict, NotFound, Transient
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store
from gardenbus.lifecycle import metrics
from gardenbus.lifecycle.domain.assessment import (
    AssessmentPostponed,
    SeedsAssessed,
    WatchedSeed,
    assess_seeds,
    watched_seed,
)
from gardenbus.lifecycle.domain.conditions import (
    ExpireSeed,
    SeedAlreadyExpired,
    SeedNeverReported,
    decide_silent_seed,
    expire_shoot,
    with_reconcile_annotation,
)
from gardenbus.lifecycle.domain.freshness import NEVER, expires_at
from gardenbus.lifecycle.domain.outage import CircuitBreaker, is_probe_lost
from gardenbus.lifecycle.domain.silence import Silence, cause_of_silence, expired_certificate
from gardenbus.lifecycle.watch.leases import LeaseWatcher

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

REPORTER = "lifecycle"
SEED_EVENT = "GardenletNotReady"
"""Reason of the Event on a Seed that turned Unknown, as Kubernetes has NodeNotReady."""

SHOOT_EVENT = "SeedNotReady"
"""Reason of the Event on a Shoot whose seed is silent for so long that its state is unknown."""

SHORTEST_PAUSE_SECONDS = 0.1
RETRY_SECONDS = 1.0
SHOOTS_AT_ONCE = 100
_GARDEN = ObjectKey("namespace", "", GARDEN_NAMESPACE)


class GardenletLifecycleReconciler:
    """Reconciles all Seeds. `watch` keeps `seeds` current as an informer's callback."""

    def __init__(self, store: Store, leases: LeaseWatcher, clock: Clock, configuration: LifecycleConfiguration) -> None:
        self._store = store
        self._events = EventRecorder(store, REPORTER)
        self._leases = leases
        self._clock = clock
        self._configuration = configuration
        self._period = configuration.monitor_period.total_seconds()
        self._breaker = CircuitBreaker()
        self._certificates_handled: dict[str, str] = {}
        self._slots = asyncio.Semaphore(configuration.concurrent_syncs)
        self.seeds: dict[str, WatchedSeed] = {}

    def watch(self, key: ObjectKey, _old: StoredObject | None, new: StoredObject | None) -> None:
        """Handle a change of a Seed."""
        if new is None:
            self.seeds.pop(key.name, None)
            self._certificates_handled.pop(key.name, None)
        else:
            self.seeds[key.name] = watched_seed(new)

    async def run(self, alarm: InterruptibleSleep) -> None:
        """Reconcile forever: each sync period, when a seed is about to expire, and when the sleep is interrupted."""
        await self._leases.caught_up.wait()
        while True:
            try:
                with bound_reconcile_id():
                    pause_seconds = await self.reconcile()
            except Transient as error:
                log.warning("assessment.interrupted", reason=error.message)
                pause_seconds = RETRY_SECONDS
            await self._clock.sleep(SHORTEST_PAUSE_SECONDS)
            await alarm.pause(pause_seconds - SHORTEST_PAUSE_SECONDS)

    async def reconcile(self) -> float:
        """Assess all Seeds once and act; returns the seconds until the next assessment is due. Raises Transient."""
        began = self._clock.monotonic()
        await self._publish_warnings()
        assessment = assess_seeds(
            self.seeds,
            self._leases.records,
            probe=self._leases.probe,
            breaker=self._breaker,
            now=began,
            monitor_period=self._period,
        )
        sync_seconds = self._configuration.sync_period.total_seconds()
        if isinstance(assessment, AssessmentPostponed):
            metrics.ASSESSMENTS_POSTPONED.inc()
            return max(SHORTEST_PAUSE_SECONDS, min(assessment.retry_seconds, sync_seconds))
        self._breaker = assessment.breaker
        metrics.SEEDS_WATCHED.set(assessment.watched)
        metrics.SEEDS_SILENT.set(len(assessment.silent))
        metrics.SEEDS_HELD.set(assessment.held)
        if assessment.opened_now:
            await self._report_open_breaker(assessment)
        await asyncio.gather(*(self._reconcile(seed) for seed in assessment.silent))
        now = self._clock.monotonic()
        metrics.ASSESSMENT_SECONDS.set(now - began)
        return max(SHORTEST_PAUSE_SECONDS, min(assessment.next_expiry_at - now, sync_seconds))

    async def _reconcile(self, seed: str) -> None:
        async with self._slots:
            try:
                await self._reconcile_silent(seed)
            except Transient as error:
                log.warning("reconcile.finished", controller="seed", object=seed, outcome="again", reason=error.message)

    async def _reconcile_silent(self, seed: str) -> None:
        key = ObjectKey("seed", "", seed)
        while (stored := await self._store.get(key)) is not None:
            document = stored.document()
            decision = decide_silent_seed(document, self._clock.now(), self._configuration.shoot_monitor_period)
            if isinstance(decision, SeedNeverReported):
                return
            if isinstance(decision, SeedAlreadyExpired):
                await self._renew_certificate(seed, document)
                if decision.shoots_are_due:
                    await self._expire_shoots(seed, document)
                return
            if not await self._write_unless_alive(stored, document):
                return

    async def _write_unless_alive(self, stored: StoredObject, document: Document) -> bool:
        """Turn a Seed Unknown after reading its Lease once more; returns whether to read the Seed again."""
        seed = stored.key.name
        await self._leases.refresh(seed)
        if self._is_alive(seed):
            return False
        now, silence = self._clock.now(), await self._silence_of(seed, document)
        decision = decide_silent_seed(document, now, self._configuration.shoot_monitor_period, silence)
        if isinstance(decision, ExpireSeed) and await self._update(stored, decision.document):
            metrics.SEEDS_EXPIRED.inc()
            log.warning("seed.expired", seed=seed, reason=decision.message)
            await self._events.record(stored.key, stored.uid, reason=SEED_EVENT, message=decision.message)
        return True

    async def _silence_of(self, seed: str, document: Document) -> Silence:
        """Since when a seed is silent, and why, as far as it is known."""
        record = self._leases.records.get(seed)
        last: datetime | None = None
        if record is not None and record.arrived_at != NEVER:
            last = self._clock.now() - timedelta(seconds=self._clock.monotonic() - record.arrived_at)
        stored = await self._store.get(REVOCATIONS)
        revoked: Mapping[str, str] = {}
        try:
            revoked = lines_in(stored) if stored is not None else revoked
        except BadRequest as error:
            log.warning("revocations.unreadable", reason=error.message)
        return Silence(last, cause_of_silence(document, revoked, self._clock.now()))

    def _is_alive(self, seed: str) -> bool:
        now = self._clock.monotonic()
        probe = self._leases.probe
        if is_probe_lost(probe, now, self._period):
            return True
        record = self._leases.records.get(seed)
        return expires_at(record, healthy_since=probe.healthy_since, monitor_period=self._period) > now

    async def _expire_shoots(self, seed: str, document: Document) -> None:
        message = f"Seed {seed} is not ready: {condition(document, GARDENLET_READY).get('message')}"

        async def expired(shoot: StoredObject) -> None:
            metrics.SHOOTS_EXPIRED.inc()
            log.info("shoot.expired", namespace=shoot.key.namespace, shoot=shoot.key.name)
            await self._events.record(shoot.key, shoot.uid, reason=SHOOT_EVENT, message=message)

        keys = await self._store.shoots_on(seed)
        for start in range(0, len(keys), SHOOTS_AT_ONCE):
            for stored in await self._store.get_many(keys[start : start + SHOOTS_AT_ONCE]):
                if stored is not None and stored.parts.status_seed_name == seed:
                    await self._rewrite(
                        stored, lambda document: expire_shoot(document, seed, self._clock.now()), expired
                    )

    async def _renew_certificate(self, seed: str, document: Document) -> None:
        expired = expired_certificate(document, self._clock.now())
        if expired is None or self._certificates_handled.get(seed) == expired:
            return
        managed_seed = await self._store.get(ObjectKey("managedseed", GARDEN_NAMESPACE, seed))
        if managed_seed is None:
            return  # tried again: it may be created later

        async def annotated(_managed_seed: StoredObject) -> None:
            log.info("certificate.expired", seed=seed, expired_at=expired)

        await self._rewrite(managed_seed, with_reconcile_annotation, annotated, bump_generation=True)
        self._certificates_handled[seed] = expired

    async def _rewrite(
        self,
        stored: StoredObject,
        change: Callable[[Document], Document | None],
        done: Callable[[StoredObject], Awaitable[None]],
        *,
        bump_generation: bool = False,
    ) -> None:
        """Write what `change` makes of an object, retrying on conflict."""
        current: StoredObject | None = stored
        while current is not None and (document := change(current.document())) is not None:
            if await self._update(current, document, bump_generation=bump_generation):
                await done(current)
                return
            current = await self._store.get(current.key)

    async def _update(self, stored: StoredObject, document: Document, *, bump_generation: bool = False) -> bool:
        """Write; False on a conflict or when the object is gone."""
        try:
            await self._store.update(stored, document, bump_generation=bump_generation)
        except (Conflict, NotFound):
            return False
        return True

    async def _report_open_breaker(self, assessment: SeedsAssessed) -> None:
        metrics.BREAKER_OPENED.inc()
        log.warning("breaker.opened", silent=assessment.held, watched=assessment.watched, hold_s=self._period)
        message = (
            f"{assessment.held} of {assessment.watched} gardenlets fell silent together; this is believed "
            f"only if it lasts for another {self._period:g} s."
        )
        await self._events.record(_GARDEN, "", reason="SeedsSilentTogether", message=message)

    async def _publish_warnings(self) -> None:
        warnings = self._leases.warnings
        while warnings:
            lease_warning = warnings[0]
            stored = await self._store.get(ObjectKey("seed", "", lease_warning.seed))
            warnings.pop(0)
            log.warning(
                "lease.rejected", seed=lease_warning.seed, reason=lease_warning.reason, detail=lease_warning.message
            )
            if stored is not None:
                await self._events.record(
                    stored.key, stored.uid, reason=lease_warning.reason, message=lease_warning.message
                )
