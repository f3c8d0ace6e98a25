"""A history: a landscape, what is ordered in it, and in which order everything happens, all from one number.

It consists of schedules, one after the other: orders, choice points in disorder, rest, and whether everything holds.
Only the first begins with processes that start; the others find them at work.
"""

import random as global_random
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from tests.simulation.actor import ActorDied
from tests.simulation.client import GARBAGE, Client, Order, Vandal, plan
from tests.simulation.connections import NATS, REDIS, START
from tests.simulation.event_loop import Livelock
from tests.simulation.faults import Faults, advance
from tests.simulation.invariants import unrest, violations
from tests.simulation.journal import InvariantBroken
from tests.simulation.landscape import Main, begun
from tests.simulation.services import RETRY_SECONDS

CAPACITIES = ((1, 1), (2, 1), (2, 2))
RESTORES = ((), (), (REDIS,), (NATS,), (REDIS, NATS))
FAULT_RATES = (0.0, 0.01, 0.03, 0.08)
SCHEDULES = 3
"""Schedules of a history."""

REST_SECONDS = 900.0
REST_STEPS = 20_000
TICK = 0.001
"""Virtual seconds that a request takes, so that no two messages are of the same time."""


class Failure(NamedTuple):
    """What went wrong in a schedule, and where."""

    seed: int
    schedule: int
    reason: str
    step: int
    faults: tuple[str, ...]


class Outcome(NamedTuple):
    """Of a history: how many schedules and choice points it had, and its failure if there is one."""

    schedules: int
    steps: int
    failure: Failure | None
    trace: tuple[str, ...]


class History:
    """See the module. `is_traced` keeps what happened at each choice point.

    `restores`: the servers that may go back in time (None: drawn); where they are given, much goes wrong besides.
    `is_strict`: also judged by what is not promised after restores.
    """

    def __init__(
        self, seed: int, *, is_traced: bool = False, restores: Sequence[str] | None = None, is_strict: bool = False
    ) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.steps = self.schedules = 0
        self.trace: list[str] = []
        self._is_traced = is_traced
        self._is_strict = is_strict
        global_random.seed(seed)  # backoff of consumers
        self.landscape = begun(self.random, self.random.choice(CAPACITIES))
        drawn = self.random.choice(RESTORES)
        self.faults = Faults(self.landscape, self.random, drawn if restores is None else restores)
        self._rates = FAULT_RATES if restores is None else FAULT_RATES[-2:]
        if REDIS in self.faults.restores:
            self.landscape.retry_seconds = RETRY_SECONDS

    def _populate(self) -> None:
        landscape, random = self.landscape, self.random
        for name in ("relay-1", "relay-2")[: random.choice((1, 1, 2))]:
            landscape.add(name, landscape.relay)
        for name in ("scheduler-1", "scheduler-2")[: random.choice((1, 1, 2))]:
            landscape.add(name, landscape.scheduler)
        for name in ("apiserver-1", "apiserver-2")[: random.choice((1, 1, 2))]:
            landscape.add(name, landscape.apiserver)
        if random.random() < 0.5:
            landscape.add("watcher", landscape.watcher)
        for seed in landscape.capacities:
            landscape.add(f"gardenlet-{seed}", landscape.gardenlet_of(seed))
        if random.random() < 0.25:
            messages = random.sample(GARBAGE, random.randint(1, 3))
            landscape.add("vandal", lambda actor: Vandal(landscape.parts(actor).bus, messages).run(actor))

    def _add_orders(self) -> None:
        """Clients with orders anew, in place of those who have placed theirs."""
        landscape, random = self.landscape, self.random
        for number, names in enumerate((("a", "b"), ("c",)), 1):
            name = f"client-{number}"
            if name in landscape.actors:
                landscape.kill(name)
            orders = plan(random, names, random.randint(1, 4), number * 100 + self.schedules * 10)
            landscape.journal.orders |= {order.number: order for order in orders}
            landscape.add(name, self._ordering(orders))

    def _ordering(self, orders: list[Order]) -> Main:
        landscape = self.landscape
        return lambda actor: Client(landscape.parts(actor).bus, landscape.subjects, orders, self.random).run(actor)

    # ------------------------------------------------------------------------------------------ running

    def run(self) -> Outcome:
        """Run it to its end."""
        with self.landscape.loop.current():
            return self._run()

    def _run(self) -> Outcome:
        failure: Failure | None = None
        try:
            self._populate()
            for _ in range(SCHEDULES):
                self.schedules += 1
                self._add_orders()
                self._disturb(self.random.randint(20, 200))
                self._rest()
                self._check()
        except (InvariantBroken, ActorDied, Livelock) as error:
            failure = Failure(self.seed, self.schedules, str(error), self.steps, tuple(self.faults.log))
        finally:
            self._close()
        return Outcome(self.schedules, self.steps, failure, tuple(self.trace))

    def _disturb(self, points: int) -> None:
        """Choice points at which anything may happen."""
        fault_rate = self.random.choice(self._rates)
        self.faults.begin()
        self.landscape.network.begin(has_faults=fault_rate > 0)
        for _ in range(points):
            if self.random.random() < fault_rate:
                self.faults.strike()
                self._note(self.faults.log[-1] if self.faults.log else "")
            self._step(passing=0.02)

    def _rest(self) -> None:
        """Nothing bad happens any more: everything comes to its end."""
        landscape = self.landscape
        landscape.network.end()
        self.faults.end()
        landscape.loop.run_ready()
        for name, gardenlet in landscape.gardenlets.items():
            landscape.actors[name].spawn(gardenlet.report_again())
        until = landscape.loop.now + REST_SECONDS
        steps = REST_STEPS
        while steps > 0:
            while landscape.network.in_flight:
                self._step(passing=0.0)
                steps -= 1
            landscape.loop.run_ready()
            if landscape.network.in_flight:
                continue
            if self._is_at_rest() or landscape.loop.now > until:
                return
            self._pass_time()
            steps -= 1
        raise InvariantBroken(f"it does not come to rest within {REST_STEPS} steps: {unrest(landscape)}")

    def _is_at_rest(self) -> bool:
        return not unrest(self.landscape) and next(self._violations(), None) is None

    def _violations(self) -> Iterator[str]:
        return violations(self.landscape, is_strict=self._is_strict)

    def _step(self, *, passing: float) -> None:
        landscape = self.landscape
        landscape.loop.run_ready()
        self.steps += 1
        if landscape.network.in_flight and self.random.random() >= passing:
            landscape.loop.advance(landscape.loop.now + TICK)
            request = landscape.network.deliver()
            if self._is_traced:
                self._note(f"{request.actor.name}: {request.label}")
        else:
            self._pass_time()
        self._raise_broken()

    def _pass_time(self) -> None:
        landscape = self.landscape
        due = landscape.server.next_due_at()
        times = [at for at in (landscape.loop.next_timer_at(), (due - START).total_seconds() if due else None) if at]
        advance(landscape, max(min(times, default=landscape.loop.now + 1), landscape.loop.now + TICK))
        landscape.loop.run_ready()
        self._note("time passes")

    def _note(self, text: str) -> None:
        if self._is_traced:
            self.trace.append(f"{self.steps} {self.landscape.loop.now:.3f} {text}")

    def _raise_broken(self) -> None:
        if self.landscape.broken is not None:
            raise self.landscape.broken

    def _check(self) -> None:
        self._raise_broken()
        problem = unrest(self.landscape) or next(self._violations(), "")
        if problem:
            raise InvariantBroken(problem)

    def _close(self) -> None:
        for name in self.landscape.mains:
            if self.landscape.actors[name].is_alive:
                self.landscape.kill(name)


def run_history(
    seed: int, *, is_traced: bool = False, restores: Sequence[str] | None = None, is_strict: bool = False
) -> Outcome:
    """Run the history of a number."""
    return History(seed, is_traced=is_traced, restores=restores, is_strict=is_strict).run()
