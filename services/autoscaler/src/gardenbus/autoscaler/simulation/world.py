"""A set of seeds and its shoots in virtual time, event by event, with the service's decisions at its sync period.

The set follows its orders as the real one does: one replica at a time, built or removed; empty seeds go, and with
`drain` the one with the fewest shoots is emptied first if they fit on the others. Shoots go to the least used seed.
A look whose answer cannot differ from the last one is left out.
"""

import heapq
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import msgspec

from gardenbus.autoscaler.decide.autoscaling import Decision, Pace, decide
from gardenbus.autoscaler.decide.landscape import Replica, SetOfSeeds
from gardenbus.autoscaler.simulation.hindsight import Step
from gardenbus.autoscaler.simulation.load import DAY, Load, stays_of
from gardenbus.common.resources.seed_autoscalers import SeedAutoscalerSpec, SeedAutoscalerStatus
from gardenbus.common.resources.seeds import SHOOTS

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Set(msgspec.Struct, frozen=True, kw_only=True):
    """What the set is like. Times are whole seconds."""

    capacity: int = 20
    """Shoots on one seed."""

    build_seconds: int = 600
    """From the order to a seed that takes shoots: its shoot, its gardenlet, its registration."""

    removal_seconds: int = 300
    """From the decision to remove an empty seed until nothing of it has to be paid for."""

    drain: bool = True
    """Whether seeds in use are emptied when the set shrinks."""

    move_seconds: int = 60
    """How long one shoot takes to move; one moves at a time."""


class Moment(NamedTuple):
    """The world at one time: shoots wanted, shoots that wait, seeds that are paid for, and those that take shoots."""

    at: int
    wanted: int
    waiting: int
    paid: int
    ready: int


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. `waits` are seconds of each shoot that got a seed or left before; `changes` those of the set."""

    end: int
    waits: list[int]
    changes: list[Step]
    moments: list[Moment]
    hosted: list[Step]
    paid_seconds: int


class _Seed(msgspec.Struct, eq=False):
    name: str
    since: int
    is_ready: bool = False
    is_leaving: bool = False
    is_cordoned: bool = False
    shoots: set[int] = msgspec.field(default_factory=set[int])


class World:
    """Runs once: `World(…).run()`."""

    def __init__(self, load: Load, spec: SeedAutoscalerSpec, seeds: Set, pace: Pace, sync_seconds: int) -> None:
        self._end = load.days * DAY
        self._spec, self._set, self._pace, self._sync = spec, seeds, pace, sync_seconds
        self._memory = SeedAutoscalerStatus()
        self._now = 0
        self._order = 0
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._ordered = spec.min_replicas
        self._made = 0
        self._seeds: list[_Seed] = []
        self._place_of: dict[int, _Seed] = {}
        self._waiting: deque[tuple[int, int]] = deque()
        self._gone: set[int] = set()
        self._wanted = self._hosted = 0
        self._look_at: int | None = None
        self._waits: list[int] = []
        self._changes: list[Step] = []
        self._moments: list[Moment] = []
        self._hosted_steps: list[Step] = []
        self._paid = 0
        self._new_seed = {SHOOTS: Fraction(seeds.capacity)}
        self._stays = stays_of(load)

    def run(self) -> Course:
        """Let the time pass."""
        for _ in range(self._ordered):
            self._seeds.append(_Seed(self._next_name(), 0, is_ready=True))
        for number, stay in enumerate(self._stays):
            self._at(stay.arrives_at, lambda number=number: self._arrive(number))
            self._at(stay.leaves_at, lambda number=number: self._leave(number))
        self._look_again(0)
        while self._agenda and self._agenda[0][0] < self._end:
            self._now, _, happens = heapq.heappop(self._agenda)
            happens()
            self._record()
        for seed in self._seeds:
            self._paid += self._end - seed.since
        self._waits += [self._end - since for number, since in self._waiting if number not in self._gone]
        return Course(
            end=self._end,
            waits=self._waits,
            changes=self._changes,
            moments=self._moments,
            hosted=self._hosted_steps,
            paid_seconds=self._paid,
        )

    # ------------------------------------------------------------------------------------------ time

    def _at(self, moment: int, happens: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._agenda, (moment, self._order, happens))

    def _look_again(self, moment: int) -> None:
        """Have a look at the first sync at or after a moment, unless one comes earlier."""
        due = -(-moment // self._sync) * self._sync
        if self._look_at is None or due < self._look_at:
            self._look_at = due
            self._at(due, lambda: self._look(due))

    def _record(self) -> None:
        waiting = self._wanted - self._hosted
        ready = sum(seed.is_ready and not seed.is_leaving for seed in self._seeds)
        moment = Moment(self._now, self._wanted, waiting, len(self._seeds), ready)
        if self._moments and self._moments[-1].at == self._now:
            self._moments.pop()
        if not self._moments or self._moments[-1][1:] != moment[1:]:
            self._moments.append(moment)
        if not self._hosted_steps or self._hosted_steps[-1].number != self._hosted:
            self._hosted_steps.append(Step(self._now, self._hosted))

    # ------------------------------------------------------------------------------------------ shoots

    def _arrive(self, number: int) -> None:
        self._wanted += 1
        self._waiting.append((number, self._now))
        self._place()
        self._changed()

    def _leave(self, number: int) -> None:
        self._wanted -= 1
        self._gone.add(number)
        seed = self._place_of.pop(number, None)
        if seed is None:
            self._waits.append(self._now - self._stays[number].arrives_at)
        else:
            seed.shoots.discard(number)
            self._hosted -= 1
            self._place()
        self._follow()
        self._changed()

    def _place(self) -> None:
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
            self._place_of[number] = seed
            self._hosted += 1
            self._waits.append(self._now - since)

    def _least_used(self) -> _Seed | None:
        taking = [
            seed
            for seed in self._seeds
            if seed.is_ready and not seed.is_leaving and not seed.is_cordoned and len(seed.shoots) < self._set.capacity
        ]
        return min(taking, key=lambda seed: (len(seed.shoots), seed.name), default=None)

    # ------------------------------------------------------------------------------------------ the set

    def _follow(self) -> None:
        """One step towards what is ordered, unless one is under way."""
        staying = [seed for seed in self._seeds if not seed.is_leaving]
        if len(staying) <= self._ordered:
            for seed in staying:
                seed.is_cordoned = False
            self._place()
        if len(staying) < len(self._seeds):
            return  # one is being removed
        building = next((seed for seed in staying if not seed.is_ready), None)
        if len(staying) < self._ordered and building is None:
            seed = _Seed(self._next_name(), self._now)
            self._seeds.append(seed)
            self._at(self._now + self._set.build_seconds, lambda: self._built(seed))
        elif len(staying) > self._ordered:
            self._shrink(staying, building)

    def _shrink(self, staying: list[_Seed], building: _Seed | None) -> None:
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

    def _built(self, seed: _Seed) -> None:
        if not seed.is_leaving:
            seed.is_ready = True
            self._place()
            self._follow()
            self._changed()

    def _removed(self, seed: _Seed) -> None:
        self._seeds.remove(seed)
        self._paid += self._now - seed.since
        self._follow()
        self._changed()

    def _move_from(self, seed: _Seed) -> None:
        if not seed.is_cordoned or seed.is_leaving:
            return
        target = self._least_used()
        if seed.shoots and target is not None:
            number = min(seed.shoots)
            seed.shoots.discard(number)
            target.shoots.add(number)
            self._place_of[number] = target
        elif seed.shoots:
            seed.is_cordoned = False
            self._place()
        if seed.is_cordoned and seed.shoots:
            self._at(self._now + self._set.move_seconds, lambda: self._move_from(seed))
        self._follow()
        self._changed()

    def _next_name(self) -> str:
        self._made += 1
        return f"seed-{self._made:05}"

    # ------------------------------------------------------------------------------------------ the autoscaler

    def _changed(self) -> None:
        self._look_again(self._now)

    def _look(self, due: int) -> None:
        if self._look_at != due:
            return  # an earlier one took its place
        self._look_at = None
        decision = self._decide()
        if decision.rescale is not None:
            self._ordered = decision.desired
            self._changes.append(Step(self._now, self._ordered))
            self._follow()
            decision = self._decide()
        if decision.again_at is not None:
            self._look_again(ceil((decision.again_at - EPOCH).total_seconds()))

    def _decide(self) -> Decision:
        seeds = SetOfSeeds(
            ordered=self._ordered,
            replicas=[
                Replica(
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
        decision = decide(self._spec, self._memory, seeds, now, self._pace)
        self._memory = decision.memory
        return decision
