"""Landscape of a schedule: the twins of both servers, the actors, and the journal of what truly happened."""

from collections.abc import Callable, Coroutine, Mapping
from functools import cache, partial
from random import Random
from typing import Any

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.controller.informer import Callback, Informer
from tests.simulation.actor import Actor, ActorDied, note_task
from tests.simulation.connections import SimulatedBus, SimulatedStore, SimulationClock, connected_outbox
from tests.simulation.event_loop import SimulationLoop
from tests.simulation.gardenlet import Disk, Gardenlet
from tests.simulation.journal import InvariantBroken, Journal
from tests.simulation.network import Network, Request
from tests.simulation.services import NEVER_SECONDS, Parts, run_apiserver, run_relay, run_scheduler, run_watcher
from tests.support.builders import a_cloudprofile, a_project, a_seed
from tests.support.memory.bus import MemoryBus, MemoryServer
from tests.support.memory.state import origin_of
from tests.support.memory.store import MemoryStore

Main = Callable[[Actor], Coroutine[Any, Any, None]]
_WRITES = frozenset({"bind", "create", "create_many", "update", "restore", "restore_many", "adopt"})


class Landscape:
    """See the module. `capacities`: shoots that each seed has room for."""

    def __init__(self, random: Random, capacities: tuple[int, ...]) -> None:
        self.random = random
        self.capacities = {f"s{number}": capacity for number, capacity in enumerate(capacities, 1)}
        self.loop = SimulationLoop()
        self.loop.on_task = note_task
        self.clock = SimulationClock(self.loop)
        self.network = Network(random, self.loop)
        self.network.after_work = self._after_work
        self.journal = Journal()
        self.subjects = Subjects()
        self.server = MemoryServer(self.clock)
        self.retry_seconds = NEVER_SECONDS
        self.uids = 0
        self.store = MemoryStore(self.clock, reporter="scheduler", is_open=False, new_uid=self._new_uid)
        self.mains: dict[str, Main] = {}
        self.actors: dict[str, Actor] = {}
        self.informers: dict[str, Informer] = {}
        self.gardenlets: dict[str, Gardenlet] = {}
        self.disks = {seed: Disk(seed, self.journal.on_begin, self.journal.on_end) for seed in self.capacities}
        self._watch_removals()
        self.watch_streams()

    def _new_uid(self) -> str:
        self.uids += 1
        return f"uid-{self.uids:04}"

    # ------------------------------------------------------------------------------------------ actors

    def add(self, name: str, main: Main) -> None:
        """Start an actor that is started again whenever it died."""
        self.mains[name] = main
        self.start(name)

    def start(self, name: str) -> None:
        """A new life of an actor."""
        before = self.actors.get(name)
        actor = self.actors[name] = Actor(name, self.mains[name], self.loop, before.life + 1 if before else 1)
        actor.on_death = self._on_death
        actor.start()

    def _on_death(self, death: ActorDied) -> None:
        self.broken = self.broken or death

    def kill(self, name: str) -> None:
        """End an actor in the middle of whatever it does."""
        actor = self.actors[name]
        self.network.abandon(actor)
        actor.kill()
        self.informers.pop(name, None)
        self.gardenlets.pop(name, None)

    def parts(self, actor: Actor) -> Parts:
        """Connections of an actor."""
        bus = SimulatedBus(actor, self.network, MemoryBus(self.clock, server=self.server), self.loop)
        bus.on_delivery = self.journal.on_delivery
        return Parts(actor, SimulatedStore(actor, self.network, self.store), bus, self.clock, self.subjects)

    async def relay(self, actor: Actor) -> None:
        """Run a relay."""
        await run_relay(self.parts(actor), connected_outbox(actor, self.network, self.store))

    async def scheduler(self, actor: Actor) -> None:
        """Run a scheduler."""
        keep = partial(self.informers.__setitem__, actor.name)
        await run_scheduler(self.parts(actor), self._observed(actor), keep, self.retry_seconds)

    async def apiserver(self, actor: Actor) -> None:
        """Run an apiserver."""
        await run_apiserver(self.parts(actor), self.journal.on_impatience)

    async def watcher(self, actor: Actor) -> None:
        """Run somebody who only watches."""
        await run_watcher(self.parts(actor), self._observed(actor), partial(self.informers.__setitem__, actor.name))

    def gardenlet_of(self, seed: str) -> Main:
        """Runs the gardenlet of a seed."""

        async def run(actor: Actor) -> None:
            gardenlet = self.gardenlets[actor.name] = Gardenlet(self.parts(actor).bus, self.subjects, self.disks[seed])
            await gardenlet.run(actor)

        return run

    def _observed(self, actor: Actor) -> Callback:
        name = f"{actor.name} {actor.life}"

        def observed(key: ObjectKey, _old: StoredObject | None, new: StoredObject | None) -> None:
            self.guarded(self.journal.on_observed, name, key, new.version if new else None)

        return observed

    # ------------------------------------------------------------------------------------------ what happens

    def guarded(self, note: Callable[..., None], *values: Any) -> None:
        """Write into the journal; what it objects to is raised by the next step, past all handlers."""
        try:
            note(*values)
        except InvariantBroken as broken:
            self.broken = self.broken or broken

    broken: Exception | None = None

    def _watch_removals(self) -> None:
        """Write down what requests remove, or mark for deletion."""
        redis = self.store.redis

        def written(hash_key: bytes, fields: Mapping[bytes, bytes]) -> None:
            if redis.called not in ("put", "delete") or hash_key.count(b":") < 2:
                return
            _, what, key = hash_key.decode().split(":", 2)
            if what == "dead":
                self.journal.on_removal(
                    fields[b"uid"].decode(), ObjectKey.from_stored(key), origin_of(fields.get(b"req"))
                )
            if what == "o" and fields.get(b"del"):
                self.journal.marked.add(redis.data.execute("HGET", hash_key, "uid").decode())

        redis.data.on_hash = written

    def watch_streams(self) -> None:
        """Write down what the streams store: to be called again for streams that were replaced."""
        for name, note in (
            ("REQUESTS", self.journal.on_request),
            ("REPORTS", self.journal.on_report),
            ("REJECTED", self.journal.on_rejection),
            ("OBJECTS", self.journal.on_announcement),
            ("BINDINGS", self.journal.on_announcement),
        ):
            self.server.stream(name).taps.insert(0, partial(self.guarded, note))

    def _after_work(self, request: Request) -> None:
        if request.label in _WRITES:
            self.check_capacity()

    def check_capacity(self) -> None:
        """No seed has more shoots than it has room for."""
        for seed, capacity in self.capacities.items():
            taken = self.store.state.usage(seed)
            if taken > capacity and self.broken is None:
                self.broken = InvariantBroken(f"{seed} has {taken} shoots and room for {capacity}")


@cache
def beginnings(capacities: tuple[int, ...]) -> tuple[Any, Any]:
    """Copies of both servers with a profile, a project and seeds, all of it announced."""
    landscape = Landscape(Random(0), capacities)
    landscape.store.open()
    seeds = [a_seed(seed, shoots=str(capacity)) for seed, capacity in landscape.capacities.items()]

    async def fill(actor: Actor) -> None:
        for document in (a_cloudprofile(), a_project(), *seeds):
            await landscape.store.create(document)
        await actor.loop.create_future()

    landscape.add("relay", landscape.relay)
    landscape.add("filler", fill)
    with landscape.loop.current():
        for _ in range(400):
            landscape.loop.run_ready()
            if landscape.network.in_flight:
                landscape.network.deliver()
            else:
                landscape.loop.advance(landscape.loop.next_timer_at() or landscape.loop.now)
        assert not landscape.store.state.outbox
        landscape.kill("relay")
        landscape.kill("filler")
    return landscape.store.copied(), landscape.server.copy_streams()


def begun(random: Random, capacities: tuple[int, ...]) -> Landscape:
    """A landscape with seeds and without shoots; nobody runs yet."""
    store, streams = beginnings(capacities)
    landscape = Landscape(random, capacities)
    landscape.store.restore_copy(store)
    landscape.store.open()
    landscape.server.restore_streams(streams)
    landscape.watch_streams()
    landscape.journal.reread(landscape.server)
    landscape.uids = 100
    return landscape
