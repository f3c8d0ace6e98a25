"""Looks at all Seeds again and again, and writes what silence means.

A look is pure (`decide.verdict`); then each silent Seed is worked on alone: look for a live Lease once more, read,
decide, write, and again at once when somebody else wrote in between. Replicas do the same work side by side: whoever
comes second finds nothing to write.
"""

import asyncio
from collections.abc import Callable

import structlog

from gardenbus.common.errors import Conflict, NotFound, Transient
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import EventRecord, Store
from gardenbus.common.resources.document import Document, StoredObject
from gardenbus.common.resources.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.lifecycle.decide.conditions import (
    LeaveAlone,
    SeedStands,
    WriteSeed,
    decide_silent_seed,
    expired_certificate,
    marked_for_reconciliation,
    silent_shoot,
)
from gardenbus.lifecycle.decide.configuration import LifecycleConfiguration
from gardenbus.lifecycle.decide.freshness import expires_at
from gardenbus.lifecycle.decide.outage import Brake, is_deaf
from gardenbus.lifecycle.decide.verdict import Looked, Postponed, WatchedSeed, look, watched_seed
from gardenbus.lifecycle.reconcilers import counters
from gardenbus.lifecycle.reconcilers.alarm import Alarm
from gardenbus.lifecycle.reconcilers.leases import LeaseWatch

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

REPORTER = "lifecycle"
SHORTEST_PAUSE_SECONDS = 0.1
RETRY_SECONDS = 1.0
SHOOTS_AT_ONCE = 100
_GARDEN = ObjectKey("namespace", "", GARDEN_NAMESPACE)


class SeedReconciler:
    """Judges all Seeds. `watch` keeps `seeds` current from an informer's callbacks."""

    def __init__(self, store: Store, leases: LeaseWatch, clock: Clock, configuration: LifecycleConfiguration) -> None:
        self._store = store
        self._leases = leases
        self._clock = clock
        self._configuration = configuration
        self._period = configuration.monitor_period.total_seconds()
        self._brake = Brake()
        self._certificates_handled: dict[str, str] = {}
        self._slots = asyncio.Semaphore(configuration.concurrent_syncs)
        self.seeds: dict[str, WatchedSeed] = {}

    def watch(self, key: ObjectKey, _old: StoredObject | None, new: StoredObject | None) -> None:
        """Take up a change of a Seed."""
        if new is None:
            self.seeds.pop(key.name, None)
            self._certificates_handled.pop(key.name, None)
        else:
            self.seeds[key.name] = watched_seed(new)

    async def run(self, alarm: Alarm) -> None:
        """Look for ever: each sync period, when a seed is about to expire, and when the alarm rings."""
        await self._leases.caught_up.wait()
        while True:
            try:
                pause_seconds = await self.look()
            except Transient as error:
                log.warning("look.interrupted", reason=error.message)
                pause_seconds = RETRY_SECONDS
            await self._clock.sleep(SHORTEST_PAUSE_SECONDS)
            await alarm.pause(pause_seconds - SHORTEST_PAUSE_SECONDS)

    async def look(self) -> float:
        """Look at all Seeds once and act; answer after how many seconds to look again. Raises Transient."""
        began = self._clock.monotonic()
        await self._publish_complaints()
        outlook = look(
            self.seeds,
            self._leases.records,
            hearing=self._leases.hearing,
            brake=self._brake,
            now=began,
            monitor_period=self._period,
        )
        sync_seconds = self._configuration.sync_period.total_seconds()
        if isinstance(outlook, Postponed):
            counters.LOOKS_POSTPONED.inc()
            return max(SHORTEST_PAUSE_SECONDS, min(outlook.again_in, sync_seconds))
        self._brake = outlook.brake
        counters.SEEDS_WATCHED.set(outlook.watched)
        counters.SEEDS_SILENT.set(len(outlook.silent))
        counters.SEEDS_HELD.set(outlook.held)
        if outlook.engaged_now:
            await self._tell_of_brake(outlook)
        await asyncio.gather(*(self._reconcile(seed) for seed in outlook.silent))
        now = self._clock.monotonic()
        counters.LOOK_SECONDS.set(now - began)
        return max(SHORTEST_PAUSE_SECONDS, min(outlook.next_expiry_at - now, sync_seconds))

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
            if isinstance(decision, LeaveAlone):
                return
            if isinstance(decision, SeedStands):
                await self._renew_certificate(seed, document)
                if decision.shoots_are_due:
                    await self._expire_shoots(seed)
                return
            if not await self._write_unless_alive(stored, decision):
                return

    async def _write_unless_alive(self, stored: StoredObject, decision: WriteSeed) -> bool:
        """Turn a Seed Unknown, after one more look for a live Lease; answer whether to read it again."""
        seed = stored.key.name
        await self._leases.look_once_more(seed)
        if self._is_alive(seed):
            return False
        if await self._update(stored, decision.document):
            counters.SEEDS_EXPIRED.inc()
            log.warning("seed.expired", seed=seed)
        return True

    def _is_alive(self, seed: str) -> bool:
        now = self._clock.monotonic()
        hearing = self._leases.hearing
        if is_deaf(hearing, now, self._period):
            return True
        record = self._leases.records.get(seed)
        return expires_at(record, well_since=hearing.well_since, monitor_period=self._period) > now

    async def _expire_shoots(self, seed: str) -> None:
        keys = await self._store.shoots_on(seed)
        for start in range(0, len(keys), SHOOTS_AT_ONCE):
            for stored in await self._store.get_many(keys[start : start + SHOOTS_AT_ONCE]):
                if stored is not None and stored.parts.status_seed_name == seed:
                    await self._rewrite(
                        stored, lambda document: silent_shoot(document, seed, self._clock.now()), self._shoot_expired
                    )

    def _shoot_expired(self, key: ObjectKey) -> None:
        counters.SHOOTS_EXPIRED.inc()
        log.info("shoot.expired", namespace=key.namespace, shoot=key.name)

    async def _renew_certificate(self, seed: str, document: Document) -> None:
        expired = expired_certificate(document, self._clock.now())
        if expired is None or self._certificates_handled.get(seed) == expired:
            return
        managed_seed = await self._store.get(ObjectKey("managedseed", GARDEN_NAMESPACE, seed))
        if managed_seed is None:
            return  # looked for again, as it may yet come
        await self._rewrite(
            managed_seed,
            marked_for_reconciliation,
            lambda _key: log.info("certificate.expired", seed=seed, expired_at=expired),
            bump_generation=True,
        )
        self._certificates_handled[seed] = expired

    async def _rewrite(
        self,
        stored: StoredObject,
        change: Callable[[Document], Document | None],
        done: Callable[[ObjectKey], None],
        *,
        bump_generation: bool = False,
    ) -> None:
        """Write what `change` makes of an object, reading again for as long as others write in between."""
        current: StoredObject | None = stored
        while current is not None and (document := change(current.document())) is not None:
            if await self._update(current, document, bump_generation=bump_generation):
                done(current.key)
                return
            current = await self._store.get(current.key)

    async def _update(self, stored: StoredObject, document: Document, *, bump_generation: bool = False) -> bool:
        """Write; False when somebody else was faster or the object is gone."""
        try:
            await self._store.update(stored, document, bump_generation=bump_generation)
        except (Conflict, NotFound):
            return False
        return True

    async def _tell_of_brake(self, outlook: Looked) -> None:
        counters.BRAKE_ENGAGED.inc()
        log.warning("brake.engaged", silent=outlook.held, watched=outlook.watched, hold_s=self._period)
        message = (
            f"{outlook.held} of {outlook.watched} gardenlets fell silent together; this is believed "
            f"only if it lasts for another {self._period:g} s."
        )
        await self._record(_warning(_GARDEN, "", "SeedsSilentTogether", message))

    async def _publish_complaints(self) -> None:
        complaints = self._leases.complaints
        while complaints:
            complaint = complaints[0]
            stored = await self._store.get(ObjectKey("seed", "", complaint.seed))
            complaints.pop(0)
            log.warning("lease.refused", seed=complaint.seed, reason=complaint.reason, detail=complaint.message)
            if stored is not None:
                await self._record(_warning(stored.key, stored.uid, complaint.reason, complaint.message))

    async def _record(self, warning: EventRecord) -> None:
        try:
            await self._store.record_event(warning)
        except Transient as error:
            log.warning("event.lost", reason=error.message)


def _warning(about: ObjectKey, uid: str, reason: str, message: str) -> EventRecord:
    return EventRecord(about=about, uid=uid, type="Warning", reason=reason, message=message, reporter=REPORTER)
