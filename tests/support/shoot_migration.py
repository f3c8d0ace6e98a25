"""A shoot between seeds, step by step: real gardenlet, apiserver and lifecycle code, and a test that says who is next.

Nothing happens by itself: what is written waits in the outbox, what was announced waits for a gardenlet to hear it,
what was reported waits for the apiserver. Gardenlets die at any write, come back on their directory, or go on beside
the one that replaced them.
"""

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gardenbus.apiserver.domain import migration
from gardenbus.apiserver.domain.request_subjects import reported_object
from gardenbus.apiserver.messages.reports import ReportHandler
from gardenbus.apiserver.registry.read_cache import ManifestCache
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.configuration.gardenlet import GardenletConfiguration, ShootBackendSettings
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.controller.controller import ReconcileRequest
from gardenbus.common.controller.dead_letter import DeadLetter
from gardenbus.common.errors import Conflict, Forbidden, GardenbusError
from gardenbus.common.ports.bus import QueueMessage, StreamMessage, WorkQueue
from gardenbus.common.ports.connections import Connections
from gardenbus.gardenlet.backend.deployments import DeploymentStore
from gardenbus.gardenlet.backend.port import FencingToken
from gardenbus.gardenlet.controllers.shoot import ShootReconciler
from gardenbus.gardenlet.domain.operations import SeedReadiness
from gardenbus.gardenlet.domain.shoot_record import ShootRecord
from gardenbus.gardenlet.seed import ServedSeed
from gardenbus.lifecycle.controllers.migration import MigrationReconciler
from gardenbus.relay.domain.announcements import announcements
from tests.support.builders import a_condition, a_project, a_seed, a_shoot
from tests.support.clocks import FakeClock
from tests.support.crashing_files import CrashingFiles, Killed
from tests.support.memory.bus import MemoryBus
from tests.support.memory.outbox import MemoryOutbox
from tests.support.memory.store import MemoryStore
from tests.support.seed_backends import a_local_backend

NAME = ("garden-dev", "apollo")
APOLLO = ObjectKey("shoot", *NAME)
STATE = ObjectKey("shootstate", *NAME)
VERSION = "1.2.3"


class ReadySeed(ServedSeed):
    """A seed that is ready, and whose gardenlet holds the Lease as long as its process lives."""

    life: "Life"

    @property
    def is_active(self) -> bool:
        return self.life.is_alive

    @property
    def readiness(self) -> SeedReadiness:
        return SeedReadiness()


class NoDeployer:
    """Runs no gardenlets in shoots."""

    def deployments_changed(self) -> None: ...

    def remove_credentials(self, seed: str) -> None: ...

    def shoots_on(self, seed: str) -> int:
        del seed
        return 0


async def well(_url: str) -> str | None:
    """A seed's health, which is good."""
    return None


class Life:
    """One process of a seed's gardenlet, from its takeover to its end."""

    def __init__(self, simulation: "MigrationSimulation", seed: str, number: int) -> None:
        self._simulation = simulation
        self.seed = seed
        self.fencing_token = FencingToken(1, number)
        self.is_alive = True
        self.received = 0
        self.files = CrashingFiles(simulation.directory / seed)
        self.backend = a_local_backend(
            self.files.directory, ShootBackendSettings(step_seconds=0), simulation.clock, self.files
        )
        served = ReadySeed(
            configuration=GardenletConfiguration(seed_name=seed),
            bus=simulation.bus,
            subjects=simulation.subjects,
            clock=simulation.clock,
            backend=self.backend,
            deployments=DeploymentStore(self.files),
            deployer=NoDeployer(),
            holder=f"{seed}-{number}",
            probe=well,
            version=VERSION,
        )
        served.life = self
        self.cache, self.reporter = served.cache, served.reporter
        self.shoots = ShootReconciler(served)

    async def begin(self) -> None:
        """Take the directory over, hear all that the stream holds, and say what its predecessor may not have said."""
        self.files.open()
        await self.backend.acquire(self.fencing_token)
        self.reporter.fencing_token = self.fencing_token
        await self.replay()
        for observed in self.cache.present():
            await self.shoots.care(observed, everything=True)

    async def replay(self) -> None:
        """Hear all that the stream holds from its start."""
        self.received = 0
        self.cache.replay_began()
        await self.receive()
        self.cache.replay_ended()

    async def receive(self, limit: int | None = None) -> None:
        """Take in what was announced since; no more than `limit` messages."""
        stream = self._simulation.bus.server.stream("BINDINGS")
        handled = 0
        for sequence, message in sorted(stream.messages.items()):
            mine = message.subject.split(".")[2] == self.seed
            if mine and limit is not None and handled >= limit:
                return  # nothing that follows may be passed over
            if mine and sequence > self.received:
                self.cache.update(message)
                handled += 1
            self.received = max(self.received, sequence)

    def pending_version(self) -> float:
        """The version of the shoot that waits to be heard; above all others when that is none."""
        subject = self._simulation.subjects.binding(self.seed, *NAME)
        for sequence, message in self._simulation.bus.server.stream("BINDINGS").messages.items():
            if sequence > self.received and message.subject == subject:
                return int(message.headers[Header.VERSION])
        return float("inf")

    async def reconcile(self, *, dies_at: int | None = None, after_the_write: bool = False) -> float | None:
        """Look at the shoot; perhaps die over it."""
        self.files.writes_left, self.files.after_the_write = dies_at, after_the_write
        try:
            return await self.shoots.reconcile(NAME)
        except Killed:
            self.end()
        except GardenbusError:
            pass
        return None

    def end(self) -> None:
        """Be no more; what was not sent is lost."""
        self.is_alive = False
        self.files.close()

    async def send(self) -> None:
        """Send what is to be reported."""
        await self.reporter.flush(everything=True)


class MigrationSimulation:
    """The garden with some seeds. `lives` are the gardenlets that act now, `zombies` those that were replaced."""

    def __init__(self, directory: Path, seeds: Sequence[str]) -> None:
        self.directory = directory
        self.seeds = tuple(seeds)
        self.clock = FakeClock()
        self.subjects = Subjects()
        self.store = MemoryStore(self.clock)
        self.bus = MemoryBus(self.clock)
        self.outbox = MemoryOutbox(self.store)
        self.lifecycle = MigrationReconciler(self.store, self.clock, lambda _key: None)
        self.lives: dict[str, Life] = {}
        self.zombies: list[Life] = []
        self.reports: ReportHandler
        self.queue: _MortalQueue
        self._unblock_index = 0
        self._number = 0
        self._replaced: dict[str, StreamMessage] = {}

    async def begin(self) -> None:
        """Build the shoot on the first seed, and have its state saved."""
        self.queue = _MortalQueue(await self.bus.work_queue("REPORTS", "apiserver", "garden.report.>"))
        self.reports = ReportHandler(
            bus=self.bus,
            store=self.store,
            subjects=self.subjects,
            queue=self.queue,
            writer=Writer(self.store, self.clock),
            manifests=ManifestCache(self.store),
            dead_letter=DeadLetter(
                Connections(self.store, self.bus, self.subjects),
                reporter="apiserver",
                object_of=reported_object(self.subjects),
            ),
            concurrency=1,
        )
        await self.store.create(a_project())
        for seed in self.seeds:
            conditions = [a_condition("GardenletReady"), a_condition("SeedSystemComponentsHealthy")]
            await self.store.create(a_seed(seed, status={"observedGeneration": 1, "conditions": conditions}))
            await self.start(seed)
        await self.store.create(a_shoot(spec={"seedName": self.seeds[0]}))
        await self.converge()

    async def start(self, seed: str) -> Life:
        """Start a gardenlet of a seed; the one before it goes on as a zombie if it lives."""
        self._number += 1
        old = self.lives.get(seed)
        if old is not None and old.is_alive:
            self.zombies.append(old)
        self.lives[seed] = life = Life(self, seed, self._number)
        await life.begin()
        return life

    # ------------------------------------------------------------------------------------------ what goes on

    async def announce(self, limit: int = 1000) -> None:
        """Be the relay for a page of the outbox."""
        await self.outbox.lead(60)
        page = await self.outbox.head(limit)
        relayed = announcements(page, self.subjects, announced_unblock_index=self._unblock_index)
        self._unblock_index = relayed.unblock_index
        for message in relayed.bindings:
            last = self.bus.server.stream("BINDINGS").last_on(message.subject)
            if last is not None:
                self._replaced[message.subject] = last
            await self.bus.publish(message)
        await self.outbox.trim(page.entries[-1].entry if page.entries else None, {})

    async def kill_bus(self, *, replays: bool) -> None:
        """Be a nats-server that is killed: what a purged message had replaced is the last of its subject again."""
        stream = self.bus.server.stream("BINDINGS")
        for subject, message in self._replaced.items():
            if stream.last_on(subject) is None:
                stream.messages[message.sequence] = message
                stream._by_subject[subject] = deque([message.sequence])  # pyright: ignore[reportPrivateUsage]
        for life in self.lives.values():
            if replays and life.is_alive:
                await life.replay()

    async def handle_reports(self, limit: int = 100, *, dies: bool = False) -> int:
        """Be the apiserver for some reports; one that dies has taken them, and they are delivered again."""
        works: Sequence[QueueMessage] = await self.queue.fetch(limit, 0)
        self.queue.dies = dies
        await self.reports.handle(works)
        if dies:
            for work in works:
                await work.release()
        return len(works)

    async def run_lifecycle(self) -> None:
        """Be lifecycle for one look."""
        request = ReconcileRequest(
            subject="garden.queue.migration.garden-dev.apollo",
            tail="garden-dev.apollo",
            attempt=0,
            deliveries=1,
            reconcile_id="",
            queued_ms=0,
        )
        await self.lifecycle.reconcile(request)

    async def bind(self, seed: str, *, force: bool = False) -> str:
        """Be the operator; answers what the bind was, "" when it was refused."""
        stored = await self.store.get(APOLLO)
        if stored is None:
            return ""
        current = stored.document()
        try:
            course = migration.course_of(current, seed, force=force)
            if course == "unchanged":
                return ""
            if course == "restore":
                state = await self.store.get(STATE)
                migration.admit_state(current, state.document() if state else None)
                await self.store.update(stored, migration.restored_by_force(current, seed, now=self.now))
            else:
                await self.store.update(stored, migration.moved(current, seed))
        except (Forbidden, Conflict):
            return ""
        return course

    async def delete(self) -> bool:
        """Be the operator who deletes the shoot; answers whether that was admitted."""
        stored = await self.store.get(APOLLO)
        try:
            migration.admit_deletion(stored.document() if stored else {})
        except Forbidden:
            return False
        return stored is not None and bool(await self.store.delete(stored))

    async def converge(self, rounds: int = 40) -> None:
        """Let everything go on until nothing changes any more: no zombies, nobody dies."""
        for zombie in self.zombies:
            zombie.end()
        self.zombies.clear()
        for seed in self.seeds:
            if seed not in self.lives or not self.lives[seed].is_alive:
                await self.start(seed)
        quiet = 0
        for _ in range(rounds):
            before = (self.store.state.version, self.bus.server.stream("BINDINGS").last_sequence)
            await self.run_lifecycle()
            await self.announce()
            for life in self.lives.values():
                await life.receive()
                await life.reconcile()
                await life.send()
            handled = await self.handle_reports()
            await self.announce()
            after = (self.store.state.version, self.bus.server.stream("BINDINGS").last_sequence)
            quiet = quiet + 1 if before == after and not handled else 0
            if quiet >= 2:  # a second time, after a pause, to be sure
                return
            self.clock.advance(61)
        raise AssertionError(f"it does not come to rest: {await self.describe()}")

    # ------------------------------------------------------------------------------------------ what is so

    @property
    def now(self) -> str:
        return self.clock.now().isoformat()

    def kept(self, seed: str) -> ShootRecord | None:
        """What lies in a seed's directory."""
        return CrashingFiles(self.directory / seed).load(NAME)

    def running(self) -> set[str]:
        """The seeds on which a control plane runs."""
        return {seed for seed in self.seeds if "control-plane" in _resources(self.kept(seed))}

    def identities(self, seed: str) -> dict[str, str]:
        """What must stay the same wherever the control plane is."""
        return {
            f"{step}.{name}": value
            for step, made in _resources(self.kept(seed)).items()
            for name, value in made.items()
            if name not in {"operation", "at"}
        }

    async def shoot(self) -> Document | None:
        stored = await self.store.get(APOLLO)
        return stored.document() if isinstance(stored, StoredObject) else None

    async def describe(self) -> str:
        shoot = await self.shoot() or {}
        kept = {seed: (record.run, record.last_operation) for seed in self.seeds if (record := self.kept(seed))}
        return f"spec {section(shoot, 'spec').get('seedName')}, status {shoot.get('status')}, kept {kept}"


class _MortalQueue:
    """A queue whose acknowledgements never arrive when its reader `dies`."""

    def __init__(self, queue: WorkQueue) -> None:
        self._queue = queue
        self.dies = False

    @property
    def depth(self) -> int:
        return self._queue.depth

    async def fetch(self, limit: int, wait_seconds: float) -> Sequence[QueueMessage]:
        return await self._queue.fetch(limit, wait_seconds)

    async def ack_many(self, works: Sequence[QueueMessage]) -> None:
        if not self.dies:
            await self._queue.ack_many(works)


def _resources(record: ShootRecord | None) -> dict[str, dict[str, Any]]:
    return record.resources if record is not None else {}
