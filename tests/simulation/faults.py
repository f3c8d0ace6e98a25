"""Faults that a schedule may have at any choice point, besides those of the network."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.simulation.connections import NATS, REDIS
from tests.simulation.landscape import Landscape
from tests.support.memory.store import MemoryStore

LOSSES = 0.25
"""Probability that a schedule in which a server goes back in time may have it come back empty."""


@dataclass
class Faults:
    """What may happen in one schedule: drawn from its random numbers when it begins."""

    landscape: Landscape
    random: Random
    restores: Sequence[str]
    copies: dict[str, Any] = field(default_factory=dict[str, Any])
    dead: list[str] = field(default_factory=list[str])
    log: list[str] = field(default_factory=list[str])
    _kinds: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    def begin(self) -> None:
        """A schedule begins: draw which faults it has, as many would hide what one of them alone breaks."""
        kinds: list[Callable[[], None]] = [
            *(self.kill_one, self.restart_one, self.restart_redis, self.restart_nats, self.let_time_pass)
        ]
        self._kinds = self.random.sample(kinds, self.random.randint(1, len(kinds)))
        if self.restores:
            self._kinds += [self.copy, self.restore, self.restore][: self.random.randint(0, 3)]
        if len(self.restores) == 1 and self.random.random() < LOSSES:
            self._kinds += [self.lose]
        if self.kill_one in self._kinds:
            self._kinds += [self.start_one]

    def strike(self) -> None:
        """One fault."""
        self.random.choice(self._kinds)()

    def end(self) -> None:
        """No more of them: everybody is there again."""
        while self.dead:
            self.start_one()

    def kill_one(self) -> None:
        """An actor dies."""
        alive = [name for name in self.landscape.mains if name not in self.dead]
        if not alive:
            return
        name = self.random.choice(alive)
        self.log.append(f"kill {name}")
        self.landscape.kill(name)
        self.dead.append(name)

    def start_one(self) -> None:
        """One that is dead comes back."""
        if self.dead:
            name = self.dead.pop(self.random.randrange(len(self.dead)))
            self.log.append(f"start {name}")
            self.landscape.start(name)

    def restart_one(self) -> None:
        """An actor dies, and is there again at once."""
        alive = [name for name in self.landscape.mains if name not in self.dead]
        if alive:
            name = self.random.choice(alive)
            self.log.append(f"restart {name}")
            self.landscape.kill(name)
            self.landscape.start(name)

    def let_time_pass(self) -> None:
        """Everybody is slow: leads and acknowledgements run out."""
        self.log.append("12 s pass")
        advance(self.landscape, self.landscape.loop.now + 12)

    def restart_redis(self) -> None:
        """Redis restarts with all that it had."""
        self.log.append("restart redis")
        self.landscape.network.drop(REDIS)
        self.landscape.store.restore_copy(self.landscape.store.copied())

    def restart_nats(self) -> None:
        """NATS restarts with all that it had."""
        self.log.append("restart nats")
        self.landscape.network.drop(NATS)
        self.landscape.server.restart()
        self._reconnect()

    def copy(self) -> None:
        """Somebody takes a copy of a server's disk."""
        what = self.random.choice(self.restores)
        self.log.append(f"copy {what}")
        source = self.landscape.store.copied if what == REDIS else self.landscape.server.copy_streams
        self.copies[what] = source()

    def restore(self) -> None:
        """A server comes back from its copy."""
        what = self.random.choice(self.restores)
        if what not in self.copies:
            self.copy()
            return
        self.log.append(f"restore {what}")
        self._go_back(what, self.copies[what])

    def lose(self) -> None:
        """A server comes back with an empty disk, NATS with its streams in another incarnation."""
        (what,) = self.restores
        self.log.append(f"lose {what}")
        self._go_back(what, MemoryStore(self.landscape.clock).copied() if what == REDIS else None)

    def _go_back(self, what: str, copy: Any) -> None:
        landscape = self.landscape
        landscape.network.drop(what)
        if what == REDIS:
            landscape.store.restore_copy(copy)
        else:
            if copy is None:
                for name in landscape.server.copy_streams():
                    landscape.server.recreate(name)
            else:
                landscape.server.restore_streams(copy)
            self._reconnect()
        landscape.journal.on_restore(what, landscape.store.state, landscape.server)

    def _reconnect(self) -> None:
        self.landscape.watch_streams()
        for name, actor in self.landscape.actors.items():
            if name not in self.dead:
                actor.reconnect()


def advance(landscape: Landscape, until: float) -> None:
    """Let time pass, for actors and servers."""
    landscape.loop.advance(until)
    landscape.server.tick()
