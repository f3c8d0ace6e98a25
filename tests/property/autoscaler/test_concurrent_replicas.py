"""Two replicas of the service on one autoscaler, either of which may end between any two of its writes."""

from datetime import timedelta
from typing import NamedTuple

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gardenbus.autoscaling.decision import ScalingDecision, decide
from gardenbus.autoscaling.seed_set import SeedSetState
from gardenbus.common.api.garden.seed_autoscalers import (
    Rescale,
    SeedAutoscalerSpec,
    SeedAutoscalerStatus,
    persisted_status,
)
from tests.support.autoscaling import START, a_set, a_spec

PLACES, MOST, PERIOD, BATCH_SIZE = 10, 8, 60, 2
replica_names = st.sampled_from(["one", "other"])


class Read(NamedTuple):
    """A replica's reads, with their versions."""

    memory: SeedAutoscalerStatus
    memory_version: int
    seeds: SeedSetState
    set_version: int


class TwoReplicas(RuleBasedStateMachine):
    """A store with versions, a set that builds one seed at a time, varying shoots, and two service replicas."""

    @initialize(window=st.sampled_from([0, 120]))
    def begin(self, window: int) -> None:
        up = {"policies": [{"type": "Replicas", "value": BATCH_SIZE, "periodSeconds": PERIOD}]}
        down = {"stabilizationWindowSeconds": window}
        self.window = window
        self.spec: SeedAutoscalerSpec = a_spec(maxReplicas=MOST, behavior={"scaleUp": up, "scaleDown": down})
        self.now = START
        self.memory, self.memory_version = SeedAutoscalerStatus(), 1
        self.ordered, self.built, self.set_version = 1, 1, 1
        self.shoots = self.pending = 0
        self.reads: dict[str, Read] = {}
        self.decisions: dict[str, tuple[ScalingDecision, Read, int]] = {}
        self.changes: list[tuple[float, int]] = []
        self.reported: list[Rescale] = []

    def seeds(self) -> SeedSetState:
        building = max(self.ordered - self.built, 0)
        return msgspec.structs.replace(
            a_set(self.built, building=building, places=PLACES, shoots=self.shoots, pending=self.pending),
            ordered=self.ordered,
        )

    @rule(seconds=st.integers(1, 90))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(count=st.integers(1, 25))
    def shoots_come(self, count: int) -> None:
        self.pending = min(self.pending + count, 60)
        self.place()

    @rule(count=st.integers(1, 40))
    def shoots_go(self, count: int) -> None:
        self.shoots = max(self.shoots - count, 0)
        self.place()

    def place(self) -> None:
        placed = min(self.pending, max(self.built * PLACES - self.shoots, 0))
        self.shoots, self.pending = self.shoots + placed, self.pending - placed

    @precondition(lambda self: self.built < self.ordered)
    @rule()
    def a_seed_is_built(self) -> None:
        self.built += 1
        self.place()

    @precondition(lambda self: self.built > self.ordered)
    @rule()
    def a_seed_is_removed(self) -> None:
        """As the set does it: only when the shoots fit on the others."""
        if self.shoots <= (self.built - 1) * PLACES:
            self.built -= 1

    @rule(driver=replica_names)
    def reads_all(self, driver: str) -> None:
        read_again = msgspec.convert(persisted_status(self.memory), SeedAutoscalerStatus)
        kept = msgspec.structs.replace(read_again, last_scale_time=self.memory.last_scale_time)
        self.reads[driver] = Read(kept, self.memory_version, self.seeds(), self.set_version)
        self.decisions.pop(driver, None)

    @rule(driver=replica_names)
    def decides_and_writes_the_status(self, driver: str) -> None:
        read = self.reads.pop(driver, None)
        if read is None:
            return
        decision = decide(self.spec, read.memory, read.seeds, self.now)
        if read.memory_version != self.memory_version:
            return  # a conflict: reconcile again
        if decision.completed is not None:
            self.reported.append(decision.completed)
        if persisted_status(decision.memory) != persisted_status(self.memory):
            self.memory_version += 1
        self.memory = decision.memory
        self.decisions[driver] = decision, read, self.memory_version

    @rule(driver=replica_names)
    def has_the_set_scaled(self, driver: str) -> None:
        decision, read, memory_version = self.decisions.pop(driver, (None, None, 0))
        if decision is None or read is None or decision.rescale is None:
            return
        if read.set_version != self.set_version or memory_version != self.memory_version:
            return  # 409
        assert self.ordered == decision.rescale.from_replicas
        self.changes.append(((self.now - START).total_seconds(), decision.desired - self.ordered))
        self.ordered = decision.desired
        self.set_version += 1

    @rule(driver=replica_names)
    def ends(self, driver: str) -> None:
        self.reads.pop(driver, None)
        self.decisions.pop(driver, None)

    @invariant()
    def the_bounds_are_kept(self) -> None:
        if hasattr(self, "ordered"):
            assert 1 <= self.ordered <= MOST

    @invariant()
    def every_change_is_announced_once_after_it_was_made(self) -> None:
        if hasattr(self, "changes"):
            made = [change for _, change in self.changes]
            reported = [each.to_replicas - each.from_replicas for each in self.reported]
            assert reported in (made, made[:-1])

    @invariant()
    def nothing_grows_faster_than_the_policy(self) -> None:
        if hasattr(self, "changes") and self.changes:
            last, _ = self.changes[-1]
            recent = [change for at, change in self.changes if at > last - PERIOD]
            assert sum(recent) <= BATCH_SIZE

    @invariant()
    def memory_is_small(self) -> None:
        if hasattr(self, "memory"):
            assert len(self.memory.recommendations) <= MOST
            assert len(self.memory.scale_events) <= 2 * PERIOD


TestTwoReplicas = TwoReplicas.TestCase
TestTwoReplicas.settings = settings(stateful_step_count=40, max_examples=80, deadline=None)
