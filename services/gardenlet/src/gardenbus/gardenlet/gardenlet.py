"""One gardenlet of one seed: its Lease heartbeat, controllers, work queues and reporter.

Events are always observed; controllers act only while the Lease is held. Losing it cancels all work in flight.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import structlog

from gardenbus.agent.activity import Activity
from gardenbus.agent.work_loop import WorkLoop
from gardenbus.common.api.configuration.gardenlet import GardenletConfiguration
from gardenbus.common.api.document import section
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.delaying_queue import DelayingQueue
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import StreamMessage
from gardenbus.common.ports.recovery import InventoryItem
from gardenbus.gardenlet.backend.port import FencingToken
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.clients.lease_heartbeat import LeaseHeartbeat
from gardenbus.gardenlet.clients.reporter import SeedReporter
from gardenbus.gardenlet.controllers.backups import BackupsReconciler
from gardenbus.gardenlet.controllers.bastions import BastionsReconciler
from gardenbus.gardenlet.controllers.installations import InstallationsReconciler
from gardenbus.gardenlet.controllers.managed_seeds import ManagedSeedReconciler
from gardenbus.gardenlet.controllers.seed import SeedReconciler
from gardenbus.gardenlet.controllers.shoot import ShootReconciler
from gardenbus.gardenlet.domain.shoot_record import ShootName
from gardenbus.gardenlet.seed import ServedSeed
from gardenbus.gardenlet.watch.binding_cache import BINDINGS, MANAGED_SEED, SHOOT_STATE, BindingCache

_log = structlog.stdlib.get_logger()

_PASSES_AFTER_RECOVERY = 2
"""Full status reports after a recovery: the second overrides a lifecycle that still wrote Unknown at the first."""


class Reconcilers(NamedTuple):
    """The reconcilers of one seed."""

    seed: SeedReconciler
    installations: InstallationsReconciler
    bastions: BastionsReconciler
    backups: BackupsReconciler
    shoots: ShootReconciler
    managed_seeds: ManagedSeedReconciler


class Gardenlet:
    """See the module.

    A seed that `follows_alone` has consumers with names, so that one process follows at a time: the one that holds the
    Lease (`activity`), from the start each time.
    """

    def __init__(self, seed: ServedSeed, reconcilers: Reconcilers) -> None:
        self.seed = seed
        self.reconcilers = reconcilers
        self.activity = Activity()
        self.heartbeat = LeaseHeartbeat(
            bus=seed.bus,
            subjects=seed.subjects,
            seed_name=seed.name,
            identity=seed.holder,
            settings=seed.configuration.lease,
            clock=seed.clock,
            lease=seed.lease,
            probe=seed.probe_health,
            seed_uid=lambda: seed.cache.seed_uid,
            on_active=self._become_active,
            on_stand_by=self._stand_by,
        )
        configuration = seed.configuration
        self.queue = self._work_queue("shoot", self._reconcile_shoot, configuration.shoot.concurrent_syncs)
        self._managed_seed_queue = self._work_queue(
            MANAGED_SEED, self._reconcile_managed_seed, configuration.managed_seed.concurrent_syncs
        )
        self._was_unready = False
        self._inventory_due = ""
        self._whole_reports: dict[ShootName, int] = {}
        self._round_began = seed.clock.monotonic()
        self._seed_lock = asyncio.Lock()
        self._heartbeat_loop, self._seed_loop, self._care_loop = self._work_loops()
        if seed.backend.backups is not None:
            seed.backend.backups.request = self._request_backups

    # ------------------------------------------------------------------------------------------ parts

    def _work_loops(self) -> tuple[WorkLoop, WorkLoop, WorkLoop]:
        name, care_period = self.seed.name, self.configuration.shoot_care_period.total_seconds()
        return (
            WorkLoop("heartbeat", self.round, self._until_next_round, seed=name),
            WorkLoop("seed", self._reconcile_seed, lambda: None, starts_idle=True, seed=name),
            WorkLoop("care", self.care, lambda: care_period, starts_idle=True, seed=name),
        )

    def _work_queue(
        self, controller: str, reconcile: Callable[[ShootName], Awaitable[float | None]], limit: int
    ) -> DelayingQueue[ShootName]:
        return DelayingQueue(reconcile, clock=self.seed.clock, limit=limit, controller=controller, describe="/".join)

    # ------------------------------------------------------------------------------------------ state

    @property
    def configuration(self) -> GardenletConfiguration:
        """Configuration of this gardenlet."""
        return self.seed.configuration

    @property
    def backend(self) -> SeedBackend:
        """Backend of its seed."""
        return self.seed.backend

    @property
    def cache(self) -> BindingCache:
        """Cache of what is announced to its seed."""
        return self.seed.cache

    @property
    def reporter(self) -> SeedReporter:
        """Reporter of what happens on its seed."""
        return self.seed.reporter

    @property
    def is_active(self) -> bool:
        """True while this gardenlet holds the Lease, false on standby."""
        return self.seed.is_active

    @property
    def is_healthy(self) -> bool:
        """True while heartbeat rounds succeed; also after the Seed was deleted, when there are none."""
        return self.cache.seed_is_gone or self.heartbeat.is_healthy

    @property
    def has_begun(self) -> bool:
        """True once a heartbeat round succeeded; also after the Seed was deleted, when there are none."""
        return self.cache.seed_is_gone or self.heartbeat.has_succeeded

    # ------------------------------------------------------------------------------------------ events

    def deliver(self, message: StreamMessage) -> None:
        """Update the cache from a BINDINGS message of this seed, and enqueue what depends on it."""
        readiness, ready, generation = self.seed.readiness, self.reconcilers.seed.is_ready, self._seed_generation
        extensions = self.reconcilers.installations.trigger
        subject = self.cache.update(message)
        if isinstance(subject, ObjectKey):
            if subject.kind == "seed" and self.cache.recovery_id:
                self._inventory_due = self.cache.recovery_id
                self._seed_loop.trigger()
            self._was_unready |= not self.reconcilers.seed.is_ready
            if self._seed_generation != generation:
                self.reconcilers.seed.request_care()
                self.reconcilers.backups.request()
                self._seed_loop.trigger()
            if self.reconcilers.installations.trigger != extensions:
                self._seed_loop.trigger()
            if self._was_unready and self.reconcilers.seed.is_ready and not ready:
                self._was_unready = False
                self._report_everything(_PASSES_AFTER_RECOVERY)
            if self.seed.readiness != readiness:
                self._enqueue_all()
            if subject.kind == SHOOT_STATE:
                self.queue.add((subject.namespace, subject.name))
            elif subject.kind == MANAGED_SEED:
                self._enqueue_managed_seed((subject.namespace, subject.name))
        elif subject is not None:
            self.queue.add(subject)
            self._enqueue_dependents(subject)

    def deployed_seed_changed(self, seed: str) -> None:
        """Enqueue the ManagedSeed of a deployed gardenlet: its Seed came or is going, or it stopped."""
        for name in self.reconcilers.managed_seeds.of_seed(seed) if self.is_active else ():
            self._managed_seed_queue.add(name)

    def replay_ended(self) -> None:
        """Handle the end of a replay of BINDINGS: records without a binding may be queried from now on."""
        self.cache.replay_ended()
        self._enqueue_all()
        self._enqueue_managed_seeds()
        self._care_loop.trigger()
        if self.seed.follows_alone:
            self._seed_loop.trigger()  # what was replayed after the Lease was acquired decides on the registration

    def replay_began(self) -> None:
        """Handle the start of a replay of BINDINGS; the cache keeps its content until the end."""
        self.cache.replay_began()

    @property
    def _seed_generation(self) -> object:
        return section(self.cache.seed or {}, "metadata").get("generation")

    # ------------------------------------------------------------------------------------------ rounds

    async def run(self) -> None:
        """Run until cancelled; a failed round does not end it."""
        async with asyncio.TaskGroup() as tasks:
            for loop in (self._heartbeat_loop, self._seed_loop, self._care_loop):
                tasks.create_task(loop.run(), name=f"{loop.name} {self.seed.name}")
            tasks.create_task(self.queue.run(), name=f"shoots of {self.seed.name}")
            tasks.create_task(self._managed_seed_queue.run(), name=f"managed seeds of {self.seed.name}")
            tasks.create_task(self.reporter.run(), name=f"reports of {self.seed.name}")

    async def stop(self, *, hands_over: bool = False) -> None:
        """Cancel work in flight, flush reports, and release the Lease unless the same holder restarts with it."""
        await self.queue.clear()
        await self._managed_seed_queue.clear()
        if self.reporter.fencing_token is not None:
            await self.reporter.flush(everything=True)
        if not hands_over:
            await self.heartbeat.release()
        self.reporter.stand_by()

    async def round(self) -> None:
        """Run one heartbeat and the Seed's reconciliation; nothing while the Seed is deleted."""
        self._round_began = self.seed.clock.monotonic()
        if not self.cache.seed_is_gone and await self.heartbeat.round():
            await self._reconcile_seed()
        elif self.seed.follows_alone and self.reporter.fencing_token is None:
            await self._observe_seed()

    async def _observe_seed(self) -> None:
        """On standby, read what the active gardenlet follows: whether the Seed is there, or was deleted."""
        if (announced := await self.seed.lookup.announced_seed()) is not None:
            self.cache.observe_seed(announced.seed)

    async def care(self) -> None:
        """Check the health of every shoot once, and record what has happened to some besides."""
        while self.seed.events and self.is_active:
            found = self.seed.events.popleft()
            key = ObjectKey("shoot", *found.shoot)
            self.reporter.enqueue_event(key, found.uid, kind="Warning", reason=found.reason, message=found.message)
        for observed in self.cache.present():
            if not self.is_active:
                return
            name = observed.full_name
            passes = self._whole_reports.pop(name, 0)
            if passes > 1:
                self._whole_reports[name] = passes - 1
            await self.reconcilers.shoots.care(observed, everything=passes > 0)

    def _until_next_round(self) -> float:
        took = self.seed.clock.monotonic() - self._round_began
        return max(0.1, self.configuration.lease.resync_seconds - took)

    async def _reconcile_seed(self) -> None:
        async with self._seed_lock:
            if self.is_active:
                await self._send_inventory()
                await self.reconcilers.seed.reconcile()
                if await self.reconcilers.backups.reconcile():
                    self.reconcilers.seed.request_care()
                if await self.reconcilers.installations.reconcile():
                    self._enqueue_all()
                await self.reconcilers.bastions.reconcile()

    def _request_backups(self) -> None:
        self.reconcilers.backups.request()
        self._seed_loop.trigger()

    async def _send_inventory(self) -> None:
        """Answer a recovery of the store with all that runs here. One that was not sent is tried in the next round."""
        recovery_id, self._inventory_due = self._inventory_due, ""
        if not recovery_id:
            return
        records = (self.backend.load(shoot) for shoot in self.backend.shoots())
        items = [
            InventoryItem(ObjectKey("shoot", record.namespace, record.name), record.uid)
            for record in records
            if record is not None
        ]
        items += [
            InventoryItem(ObjectKey(MANAGED_SEED, each.namespace, each.managed_seed), each.uid)
            for each in self.seed.deployments.all()
        ]
        try:
            await self.reporter.inventory(recovery_id, items)
        except Unavailable as error:
            self._inventory_due = self._inventory_due or recovery_id
            _log.warning("inventory.delayed", seed=self.seed.name, reason=error.message)
            return
        _log.info("inventory.sent", seed=self.seed.name, items=len(items))

    async def _become_active(self, fencing_token: FencingToken) -> None:
        await self.backend.acquire(fencing_token)
        await self._drop_missed_deletions()
        self.reporter.fencing_token = fencing_token
        self._inventory_due = self.cache.recovery_id
        self.reconcilers.seed.stand_by()
        self.reconcilers.installations.stand_by()
        self.reconcilers.bastions.stand_by()
        self.reconcilers.backups.stand_by()
        self._report_everything(1)
        self._enqueue_all()
        self.reconcilers.managed_seeds.stand_by()
        self._enqueue_managed_seeds()
        self.activity.begin()

    async def _drop_missed_deletions(self) -> None:
        """Drop cached objects whose tombstones were handled by another replica while this one was paused."""
        if self.seed.follows_alone:
            self.cache.clear()
            return
        cached, cached_objects = dict(self.cache.shoots), dict(self.cache.objects)
        if not cached and not cached_objects:
            return
        stream = self.seed.subjects.stream(BINDINGS)
        held = {
            *await self.seed.bus.subjects(stream, self.seed.subjects.bindings_of(self.seed.name)),
            *await self.seed.bus.subjects(stream, self.seed.subjects.views_of(self.seed.name)),
        }
        self.cache.retain(held, cached=cached, cached_objects=cached_objects)

    async def _stand_by(self) -> None:
        self.activity.end()
        self.reporter.stand_by()
        self.reconcilers.seed.stand_by()
        self.reconcilers.installations.stand_by()
        self.reconcilers.bastions.stand_by()
        self.reconcilers.backups.stand_by()
        self.reconcilers.managed_seeds.stand_by()
        await self.queue.clear()
        await self._managed_seed_queue.clear()

    def _enqueue_all(self) -> None:
        states = ((key.namespace, key.name) for key in self.cache.objects if key.kind == SHOOT_STATE)
        for shoot in {*self.cache.shoots, *self.backend.shoots(), *states}:
            self.queue.add(shoot)

    def _enqueue_managed_seeds(self) -> None:
        for name in self.reconcilers.managed_seeds.cached():
            self._enqueue_managed_seed(name)

    def _enqueue_managed_seed(self, name: ShootName) -> None:
        """Enqueue a ManagedSeed with its jittered delay."""
        if self.reporter.fencing_token is None:
            return
        delay = self.reconcilers.managed_seeds.enqueue_delay(name)
        if delay is not None:
            self._managed_seed_queue.add(name, delay)

    def _enqueue_dependents(self, shoot: ShootName) -> None:
        for name in (
            self.reconcilers.managed_seeds.dependents_of(shoot) if self.reporter.fencing_token is not None else ()
        ):
            self._managed_seed_queue.add(name)

    def _report_everything(self, passes: int) -> None:
        """Report the full status of every shoot in the next `passes` rounds of care, the first of them at once."""
        for shoot in self.backend.shoots():
            self._whole_reports[shoot] = max(passes, self._whole_reports.get(shoot, 0))
        self._care_loop.trigger()

    async def _reconcile_shoot(self, shoot: ShootName) -> float | None:
        if self.reporter.fencing_token is None:
            return None
        try:
            return await self.reconcilers.shoots.reconcile(shoot)
        finally:
            self._enqueue_dependents(shoot)
            if shoot not in self.cache.shoots:
                self.reconcilers.backups.request()  # what is left of its backups is deleted with it, or later

    async def _reconcile_managed_seed(self, name: ShootName) -> float | None:
        return None if self.reporter.fencing_token is None else await self.reconcilers.managed_seeds.reconcile(name)
