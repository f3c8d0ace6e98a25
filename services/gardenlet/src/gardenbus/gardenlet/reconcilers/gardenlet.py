"""One gardenlet of one seed: its heartbeat, its Seed, its shoots, the seeds made of them, and what it says.

It listens always, and acts only while it holds the Lease; losing that cuts whatever is in work, at any instant.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime

import structlog

from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.bus import Bus, Delivered
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.document import section
from gardenbus.common.resources.keys import ObjectKey, Subjects
from gardenbus.gardenlet.backend.children import Children
from gardenbus.gardenlet.backend.port import Backend, Fence, ShootName
from gardenbus.gardenlet.decide.configuration import GardenletConfiguration
from gardenbus.gardenlet.reconcilers.agenda import Agenda
from gardenbus.gardenlet.reconcilers.heartbeat import Heartbeat
from gardenbus.gardenlet.reconcilers.managed_seeds import BINDINGS, Elsewhere, ManagedSeedReconciler, Nursery
from gardenbus.gardenlet.reconcilers.reports import Reporter
from gardenbus.gardenlet.reconcilers.seed import SeedReconciler
from gardenbus.gardenlet.reconcilers.shoot import ShootReconciler
from gardenbus.gardenlet.reconcilers.told import MANAGED_SEED, SHOOT_STATE, Told

_log = structlog.stdlib.get_logger()

HTTPProbe = Callable[[str], Awaitable[str | None]]
"""Ask a URL; answers what is wrong, None when it says 200."""

_PASSES_AFTER_RECOVERY = 2
"""Whole reports after a recovery: the second overtakes a lifecycle that was still writing Unknown at the first."""


class Gardenlet:
    """See the module. `children` is what it deploys into its shoots, `nursery` where that runs."""

    def __init__(  # noqa: PLR0913 - the ports of one gardenlet
        self,
        configuration: GardenletConfiguration,
        *,
        bus: Bus,
        subjects: Subjects,
        clock: Clock,
        backend: Backend,
        identity: str,
        probe: HTTPProbe,
        version: str,
        children: Children,
        nursery: Nursery | None = None,
        certificate_expires_at: Callable[[], datetime | None] = lambda: None,
    ) -> None:
        self.configuration = configuration
        self.seed_name = configuration.seed_name
        self._bus = bus
        self._subjects = subjects
        self._clock = clock
        self.backend = backend
        self.told = Told(subjects, self.seed_name)
        self.reporter = Reporter(bus=bus, subjects=subjects, seed_name=self.seed_name, clock=clock)
        self.seed = SeedReconciler(
            configuration,
            told=self.told,
            backend=backend,
            reporter=self.reporter,
            clock=clock,
            version=version,
            certificate_expires_at=certificate_expires_at,
        )
        self.heartbeat = Heartbeat(
            bus=bus,
            subjects=subjects,
            seed_name=self.seed_name,
            identity=identity,
            settings=configuration.lease,
            clock=clock,
            probe=lambda: probe(backend.health_url),
            seed_uid=lambda: self.told.seed_uid,
            on_active=self._become_active,
            on_stand_by=self._stand_by,
        )
        self.shoots = ShootReconciler(
            configuration.shoot,
            seed_name=self.seed_name,
            told=self.told,
            backend=backend,
            reporter=self.reporter,
            clock=clock,
            identity=self.seed.identity,
            fitness=lambda: self.seed.fitness,
            is_active=lambda: self.is_active,
        )
        self.agenda = Agenda(self._look, clock=clock, limit=configuration.shoot.concurrent_syncs)
        self.managed_seeds = ManagedSeedReconciler(
            configuration,
            told=self.told,
            children=children,
            reporter=self.reporter,
            bus=bus,
            subjects=subjects,
            clock=clock,
            record_of=backend.load,
            is_active=lambda: self.is_active,
            nursery=nursery or Elsewhere(),
        )
        self.seed_agenda = Agenda(
            self._look_at_managed_seed,
            clock=clock,
            limit=configuration.managed_seed.concurrent_syncs,
            kind=MANAGED_SEED,
        )
        self._was_unready = False
        self._whole_reports: dict[ShootName, int] = {}
        self._care_soon = asyncio.Event()
        self._seed_has_changed = asyncio.Event()
        self._at_the_seed = asyncio.Lock()

    @property
    def is_active(self) -> bool:
        """Whether this gardenlet carries its seed, rather than standing by."""
        return self.reporter.fence is not None and self.heartbeat.is_active

    @property
    def is_healthy(self) -> bool:
        """Whether its rounds succeed; an idle one without a Seed has none to make."""
        return self.told.seed_is_gone or self.heartbeat.is_healthy

    # ------------------------------------------------------------------------------------------ listening

    def deliver(self, message: Delivered) -> None:
        """Take a message from BINDINGS that is meant for this seed."""
        fitness, ready, generation = self.seed.fitness, self.seed.is_ready, self._seed_generation
        subject = self.told.take(message)
        if isinstance(subject, ObjectKey):
            self._was_unready |= not self.seed.is_ready
            if self._seed_generation != generation:
                self.seed.look_again()
                self._seed_has_changed.set()
            if self._was_unready and self.seed.is_ready and not ready:
                self._was_unready = False
                self._report_everything(_PASSES_AFTER_RECOVERY)
            if self.seed.fitness != fitness:
                self._look_at_all()
            if subject.kind == SHOOT_STATE:
                self.agenda.add((subject.namespace, subject.name))
            elif subject.kind == MANAGED_SEED:
                self._hear_of((subject.namespace, subject.name))
        elif subject is not None:
            self.agenda.add(subject)
            self._look_at_seeds_of(subject)

    def seed_of_child_changed(self, seed: str) -> None:
        """Look at the ManagedSeed of a gardenlet that was deployed: its Seed came or goes, or it has stopped."""
        for name in self.managed_seeds.of_seed(seed) if self.is_active else ():
            self.seed_agenda.add(name)

    def replay_ended(self) -> None:
        """All that BINDINGS held has been delivered: what is kept and was not told of can be asked about."""
        self.told.replay_ended()
        self._look_at_all()
        self._look_at_managed_seeds()
        self._care_soon.set()

    def replay_began(self) -> None:
        """BINDINGS is read anew. What was told stays until the replay is over."""
        self.told.replay_began()

    @property
    def _seed_generation(self) -> object:
        return section(self.told.seed or {}, "metadata").get("generation")

    # ------------------------------------------------------------------------------------------ acting

    async def run(self) -> None:
        """Live until cancelled. Nothing that fails once ends it."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._beat(), name=f"heartbeat {self.seed_name}")
            tasks.create_task(self._take_up_changes(), name=f"seed {self.seed_name}")
            tasks.create_task(self._care(), name=f"care {self.seed_name}")
            tasks.create_task(self.agenda.run(), name=f"agenda {self.seed_name}")
            tasks.create_task(self.seed_agenda.run(), name=f"agenda of managed seeds {self.seed_name}")
            tasks.create_task(self.reporter.run(), name=f"reports {self.seed_name}")

    async def stop(self, *, hands_over: bool = False) -> None:
        """Cut what is in work, say what is left to say, release the Lease, unless the same holder goes on with it."""
        await self.agenda.clear()
        await self.seed_agenda.clear()
        if self.reporter.fence is not None:
            await self.reporter.flush(everything=True)
        if not hands_over:
            await self.heartbeat.release()
        self.reporter.stand_by()

    async def round(self) -> None:
        """One heartbeat, and what hangs on it; none while the Seed is removed, until there is one again."""
        if self.told.seed_is_gone:
            return
        if await self.heartbeat.round():
            await self._look_at_seed()

    async def care(self) -> None:
        """Check every shoot once."""
        for told in self.told.present():
            if not self.is_active:
                return
            name = (told.namespace, told.name)
            passes = self._whole_reports.pop(name, 0)
            if passes > 1:
                self._whole_reports[name] = passes - 1
            await self.shoots.care(told, everything=passes > 0)

    async def _beat(self) -> None:
        while True:
            began = self._clock.monotonic()
            await self._guarded("heartbeat", self.round)
            took = self._clock.monotonic() - began
            await self._clock.sleep(max(0.1, self.configuration.lease.resync_seconds - took))

    async def _take_up_changes(self) -> None:
        """Look after the Seed as soon as somebody changed it: until then its shoots wait, and so do those to come."""
        while True:
            await self._seed_has_changed.wait()
            self._seed_has_changed.clear()
            await self._guarded("seed", self._look_at_seed)

    async def _look_at_seed(self) -> None:
        async with self._at_the_seed:
            if self.is_active:
                await self.seed.round()

    async def _care(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.configuration.shoot_care_period.total_seconds()):
                    await self._care_soon.wait()
            self._care_soon.clear()
            await self._guarded("care", self.care)

    async def _guarded(self, loop: str, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except GardenbusError as error:
            _log.warning("round.interrupted", seed=self.seed_name, loop=loop, reason=error.message)
        except Exception:  # noqa: BLE001 - a loop that nothing may end
            _log.exception("round.crashed", seed=self.seed_name, loop=loop)

    async def _become_active(self, fence: Fence) -> None:
        await self.backend.take_over(fence)
        await self._forget_what_was_missed()
        self.reporter.fence = fence
        self.seed.stand_by()
        self._report_everything(1)
        self._look_at_all()
        self.managed_seeds.stand_by()
        self._look_at_managed_seeds()

    async def _forget_what_was_missed(self) -> None:
        """Before acting: a standby may have slept while the active one obeyed tombstones that have gone since."""
        known, known_objects = dict(self.told.shoots), dict(self.told.objects)
        if not known and not known_objects:
            return
        stream = self._subjects.stream(BINDINGS)
        held = {
            *await self._bus.subjects(stream, self._subjects.bindings_of(self.seed_name)),
            *await self._bus.subjects(stream, self._subjects.views_of(self.seed_name)),
        }
        self.told.keep_only(held, known=known, known_objects=known_objects)

    async def _stand_by(self) -> None:
        self.reporter.stand_by()
        self.seed.stand_by()
        self.managed_seeds.stand_by()
        await self.agenda.clear()
        await self.seed_agenda.clear()

    def _look_at_all(self) -> None:
        states = ((key.namespace, key.name) for key in self.told.objects if key.kind == SHOOT_STATE)
        for shoot in {*self.told.shoots, *self.backend.shoots(), *states}:
            self.agenda.add(shoot)

    def _look_at_managed_seeds(self) -> None:
        for name in self.managed_seeds.known():
            self._hear_of(name)

    def _hear_of(self, name: ShootName) -> None:
        """Look at a ManagedSeed within the time that what was told of it leaves."""
        if self.reporter.fence is None:
            return
        delay = self.managed_seeds.delay_of_news(name)
        if delay is not None:
            self.seed_agenda.add(name, delay)

    def _look_at_seeds_of(self, shoot: ShootName) -> None:
        for name in self.managed_seeds.waiting_for(shoot) if self.reporter.fence is not None else ():
            self.seed_agenda.add(name)

    def _report_everything(self, passes: int) -> None:
        """Have the whole status of every shoot reported in the next rounds of care, the first of them at once."""
        for shoot in self.backend.shoots():
            self._whole_reports[shoot] = max(passes, self._whole_reports.get(shoot, 0))
        self._care_soon.set()

    async def _look(self, shoot: ShootName) -> float | None:
        if self.reporter.fence is None:
            return None
        try:
            return await self.shoots.look(shoot)
        finally:
            self._look_at_seeds_of(shoot)

    async def _look_at_managed_seed(self, name: ShootName) -> float | None:
        return None if self.reporter.fence is None else await self.managed_seeds.look(name)
