"""Discrete-event simulation of a set of seeds and its shoots, with the autoscaler's decisions at its sync period.

The set follows its orders as the real one does: one replica at a time, built or removed; empty seeds go, and with
`drain` the one with the fewest shoots is emptied first if they fit on the others. Shoots go to the least used seed.
A sync whose decision cannot differ from the last one is left out.
"""

import heapq
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import msgspec

from gardenbus.autoscaling.decision import ScalingDecision, decide
from gardenbus.autoscaling.seed_set import ReplicaState, SeedSetState
from gardenbus.cli.simulate.autoscaling.oracle import CountChange
from gardenbus.cli.simulate.autoscaling.workload import DAY, ShootWorkload, generate_lifetimes
from gardenbus.common.api.configuration.seed_autoscaler import Pace
from gardenbus.common.api.garden.seed_autoscalers import SeedAutoscalerSpec, SeedAutoscalerStatus
from gardenbus.common.api.garden.seeds import SHOOTS

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class SeedSetModel(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of the set. Times are whole seconds."""

    capacity: int = 20
    """Shoots on one seed."""

    build_seconds: int = 600
    """From the order to a ready seed: its shoot, its gardenlet, its registration."""

    removal_seconds: int = 300
    """From the removal of an empty seed until nothing of it has to be paid for."""

    drain: bool = True
    """Seeds in use are emptied when the set shrinks."""

    move_seconds: int = 60
    """Duration of one shoot's migration; one migrates at a time."""


class SimulationSample(NamedTuple):
    """Shoots wanted and waiting, and seeds paid for and ready, at one time."""

    at: int
    wanted: int
    waiting: int
    paid: int
    ready: int


class SimulationTrace(msgspec.Struct, frozen=True, kw_only=True):
    """Record of a run. `waits` are seconds of each shoot that got a seed or left before; `changes` those of the set."""

    end: int
    waits: list[int]
    changes: list[CountChange]
    samples: list[SimulationSample]
    hosted: list[CountChange]
    paid_seconds: int


class _SimulatedSeed(msgspec.Struct, eq=False):
    name: str
    since: int
    is_ready: bool = False
    is_leaving: bool = False
    is_cordoned: bool = False
    shoots: set[int] = msgspec.field(default_factory=set[int])


class SeedSetSimulator:
    """One run: `SeedSetSimulator(…).run()`."""

    def __init__(
        self, load: ShootWorkload, spec: SeedAutoscalerSpec, seeds: SeedSetModel, pace: Pace, sync_seconds: int
    ) -> None:
        self._end = load.days * DAY
        self._spec, self._set, self._pace, self._sync_seconds = spec, seeds, pace, sync_seconds
        self._status = SeedAutoscalerStatus()
        self._now = 0
        self._order = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._ordered = spec.min_replicas
        self._made = 0
        self._seeds: list[_SimulatedSeed] = []
        self._seed_of: dict[int, _SimulatedSeed] = {}
        self._waiting: deque[tuple[int, int]] = deque()
        self._gone: set[int] = set()
        self._wanted = self._hosted = 0
        self._next_sync_at: int | None = None
        self._waits: list[int] = []
        self._changes: list[CountChange] = []
        self._samples: list[SimulationSample] = []
        self._hosted_steps: list[CountChange] = []
        self._paid = 0
        self._new_seed = {SHOOTS: Fraction(seeds.capacity)}
        self._lifetimes = generate_lifetimes(load)

    def run(self) -> SimulationTrace:
        """Process events until the end of the workload."""
        for _ in range(self._ordered):
            self._seeds.append(_SimulatedSeed(self._next_name(), 0, is_ready=True))
        for number, lifetime in enumerate(self._lifetimes):
            self._at(lifetime.arrives_at, lambda number=number: self._arrive(number))
            self._at(lifetime.leaves_at, lambda number=number: self._leave(number))
        self._schedule_sync(0)
        while self._events and self._events[0][0] < self._end:
            self._now, _, happens = heapq.heappop(self._events)
            happens()
            self._record()
        for seed in self._seeds:
            self._paid += self._end - seed.since
        self._waits += [self._end - since for number, since in self._waiting if number not in self._gone]
        return SimulationTrace(
            end=self._end,
            waits=self._waits,
            changes=self._changes,
            samples=self._samples,
            hosted=self._hosted_steps,
            paid_seconds=self._paid,
        )

    # ------------------------------------------------------------------------------------------ time

    def _at(self, instant: int, happens: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._events, (instant, self._order, happens))

    def _schedule_sync(self, instant: int) -> None:
        """Schedule a decision for the first sync at or after an instant, unless one comes earlier."""
        due = -(-instant // self._sync_seconds) * self._sync_seconds
        if self._next_sync_at is None or due < self._next_sync_at:
            self._next_sync_at = due
            self._at(due, lambda: self._sync_due(due))

    def _record(self) -> None:
        waiting = self._wanted - self._hosted
        ready = sum(seed.is_ready and not seed.is_leaving for seed in self._seeds)
        instant = SimulationSample(self._now, self._wanted, waiting, len(self._seeds), ready)
        if self._samples and self._samples[-1].at == self._now:
            self._samples.pop()
        if not self._samples or self._samples[-1][1:] != instant[1:]:
            self._samples.append(instant)
        if not self._hosted_steps or self._hosted_steps[-1].number != self._hosted:
            self._hosted_steps.append(CountChange(self._now, self._hosted))

    # ------------------------------------------------------------------------------------------ shoots

    def _arrive(self, number: int) -> None:
        self._wanted += 1
        self._waiting.append((number, self._now))
        self._schedule()
        self._changed()

    def _leave(self, number: int) -> None:
        self._wanted -= 1
        self._gone.add(number)
        seed = self._seed_of.pop(number, None)
        if seed is None:
            self._waits.append(self._now - self._lifetimes[number].arrives_at)
        else:
            seed.shoots.discard(number)
            self._hosted -= 1
            self._schedule()
        self._scale_towards_order()
        self._changed()

    def _schedule(self) -> None:
        while self._waiting:
            number, since = self._waiting[0]
            if number in self._gone:
                self._waiting.popleft()
                continue
            seed = self._least_used()
            if seed is None:
                return
            self._waiting.popleft()
            seed.shoots.add(number)
            self._seed_of[number] = seed
            self._hosted += 1
            self._waits.append(self._now - since)

    def _least_used(self) -> _SimulatedSeed | None:
        available = [
            seed
            for seed in self._seeds
            if seed.is_ready and not seed.is_leaving and not seed.is_cordoned and len(seed.shoots) < self._set.capacity
        ]
        return min(available, key=lambda seed: (len(seed.shoots), seed.name), default=None)

    # ------------------------------------------------------------------------------------------ the set

    def _scale_towards_order(self) -> None:
        """Take one step towards the ordered size, unless one is under way."""
        staying = [seed for seed in self._seeds if not seed.is_leaving]
        if len(staying) <= self._ordered:
            for seed in staying:
                seed.is_cordoned = False
            self._schedule()
        if len(staying) < len(self._seeds):
            return  # one is being removed
        building = next((seed for seed in staying if not seed.is_ready), None)
        if len(staying) < self._ordered and building is None:
            seed = _SimulatedSeed(self._next_name(), self._now)
            self._seeds.append(seed)
            self._at(self._now + self._set.build_seconds, lambda: self._built(seed))
        elif len(staying) > self._ordered:
            self._shrink(staying, building)

    def _shrink(self, staying: list[_SimulatedSeed], building: _SimulatedSeed | None) -> None:
        empty = building or next((seed for seed in staying if not seed.shoots), None)
        if empty is not None:
            empty.is_leaving = True
            self._at(self._now + self._set.removal_seconds, lambda: self._removed(empty))
        elif self._set.drain and not any(seed.is_cordoned for seed in staying):
            least = min(staying, key=lambda seed: (len(seed.shoots), seed.name))
            free = sum(self._set.capacity - len(seed.shoots) for seed in staying if seed is not least)
            if free >= len(least.shoots):
                least.is_cordoned = True
                self._at(self._now + self._set.move_seconds, lambda: self._move_from(least))

    def _built(self, seed: _SimulatedSeed) -> None:
        if not seed.is_leaving:
            seed.is_ready = True
            self._schedule()
            self._scale_towards_order()
            self._changed()

    def _removed(self, seed: _SimulatedSeed) -> None:
        self._seeds.remove(seed)
        self._paid += self._now - seed.since
        self._scale_towards_order()
        self._changed()

    def _move_from(self, seed: _SimulatedSeed) -> None:
        if not seed.is_cordoned or seed.is_leaving:
            return
        target = self._least_used()
        if seed.shoots and target is not None:
            number = min(seed.shoots)
            seed.shoots.discard(number)
            target.shoots.add(number)
            self._seed_of[number] = target
        elif seed.shoots:
            seed.is_cordoned = False
            self._schedule()
        if seed.is_cordoned and seed.shoots:
            self._at(self._now + self._set.move_seconds, lambda: self._move_from(seed))
        self._scale_towards_order()
        self._changed()

    def _next_name(self) -> str:
        self._made += 1
        return f"seed-{self._made:05}"

    # ------------------------------------------------------------------------------------------ the autoscaler

    def _changed(self) -> None:
        self._schedule_sync(self._now)

    def _sync_due(self, due: int) -> None:
        if self._next_sync_at != due:
            return  # superseded by an earlier one
        self._next_sync_at = None
        decision = self._decide()
        if decision.rescale is not None:
            self._ordered = decision.desired
            self._changes.append(CountChange(self._now, self._ordered))
            self._scale_towards_order()
            decision = self._decide()
        if decision.recheck_at is not None:
            self._schedule_sync(ceil((decision.recheck_at - EPOCH).total_seconds()))

    def _decide(self) -> ScalingDecision:
        seeds = SeedSetState(
            ordered=self._ordered,
            replicas=[
                ReplicaState(
                    name=seed.name,
                    is_built=seed.is_ready and not seed.is_cordoned,
                    is_leaving=seed.is_leaving,
                    allocatable=self._new_seed if seed.is_ready else None,
                )
                for seed in self._seeds
            ],
            new_seed=self._new_seed,
            shoots=self._hosted,
            pending=self._wanted - self._hosted,
        )
        now = EPOCH + timedelta(seconds=self._now)
        decision = decide(self._spec, self._status, seeds, now, self._pace)
        self._status = decision.memory
        return decision
