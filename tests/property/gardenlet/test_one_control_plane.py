"""Whoever dies when, however often a shoot is sent from seed to seed: one control plane, and always the same one."""

import asyncio
import os
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gardenbus.common.api.document import Document, section
from gardenbus.gardenlet.domain.operations import ObservedShoot
from tests.support.shoot_migration import NAME, MigrationSimulation

EXAMPLES = int(os.environ.get("GARDENBUS_EXAMPLES", "40"))
pytestmark = pytest.mark.timeout(max(150, EXAMPLES))  # a second an example, when many are asked for

T = TypeVar("T")
SEEDS = ("one", "two", "three")
seeds = st.sampled_from(SEEDS)


class Moving(RuleBasedStateMachine):
    """Every rule is one thing that may happen next. `forced` are seeds that lost the shoot without being asked."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.room = tempfile.TemporaryDirectory()
        self.simulation = MigrationSimulation(Path(self.room.name), SEEDS)
        self.forced: dict[str, int] = {}
        self.is_deleted = False
        self.before: dict[str, str] = {}

    def do(self, awaitable: Awaitable[T]) -> T:
        return self.loop.run_until_complete(awaitable)

    @initialize()
    def build(self) -> None:
        self.do(self.simulation.begin())
        self.before = self.simulation.identities("one")
        assert self.simulation.running() == {"one"}
        assert len(self.before) == 5

    # ------------------------------------------------------------------------------------------ the operator

    @rule(seed=seeds)
    def send_to(self, seed: str) -> None:
        self.do(self.simulation.bind(seed))

    @precondition(lambda self: not self.is_deleted)
    @rule(seed=seeds)
    def send_by_force(self, seed: str) -> None:
        shoot = self.do(self.simulation.shoot())
        assert shoot is not None
        if self.do(self.simulation.bind(seed, force=True)) == "restore":
            self.forced[section(shoot, "status")["seedName"]] = int(shoot["metadata"]["resourceVersion"]) + 1

    @rule(chance=st.integers(0, 9))
    def delete(self, chance: int) -> None:
        if not chance:
            self.is_deleted |= self.do(self.simulation.delete())

    # ------------------------------------------------------------------------------------------ the services

    @rule(limit=st.integers(1, 4))
    def announce(self, limit: int) -> None:
        self.do(self.simulation.announce(limit))

    @rule()
    def run_lifecycle(self) -> None:
        self.do(self.simulation.run_lifecycle())

    @rule(limit=st.integers(1, 3), dies=st.booleans())
    def handle_reports(self, limit: int, dies: bool) -> None:
        self.do(self.simulation.handle_reports(limit, dies=dies))

    @rule(replays=st.booleans())
    def kill_bus(self, replays: bool) -> None:
        self.do(self.simulation.kill_bus(replays=replays))

    # ------------------------------------------------------------------------------------------ the gardenlets

    @rule(seed=seeds, limit=st.integers(1, 3))
    def receive(self, seed: str, limit: int) -> None:
        if self.simulation.lives[seed].is_alive:
            self.do(self.simulation.lives[seed].receive(limit))

    @rule(seed=seeds)
    def reconcile(self, seed: str) -> None:
        if self.simulation.lives[seed].is_alive:
            self.do(self.simulation.lives[seed].reconcile())

    @rule(seed=seeds, dies_at=st.integers(0, 8), after_the_write=st.booleans())
    def reconcile_and_die(self, seed: str, dies_at: int, after_the_write: bool) -> None:
        if self.simulation.lives[seed].is_alive:
            self.do(self.simulation.lives[seed].reconcile(dies_at=dies_at, after_the_write=after_the_write))

    @rule(seed=seeds)
    def send(self, seed: str) -> None:
        if self.simulation.lives[seed].is_alive:
            self.do(self.simulation.lives[seed].send())

    @rule(seed=seeds)
    def start_anew(self, seed: str) -> None:
        self.do(self.simulation.start(seed))

    @precondition(lambda self: self.simulation.zombies)
    @rule(which=st.integers(0, 9))
    def a_zombie_goes_on(self, which: int) -> None:
        """It was paused over what it knew; whoever replaced it has waited for longer than a message takes."""
        zombie = self.simulation.zombies[which % len(self.simulation.zombies)]
        self.do(zombie.reconcile())
        self.do(zombie.send())

    @rule(seed=seeds)
    def go_on(self, seed: str) -> None:
        """A little of everything, so that longer journeys come about."""
        self.do(self.simulation.run_lifecycle())
        self.do(self.simulation.announce())
        life = self.simulation.lives[seed]
        if life.is_alive:
            self.do(life.receive())
            self.do(life.reconcile())
            self.do(life.send())
        self.do(self.simulation.handle_reports())

    # ------------------------------------------------------------------------------------------ what must hold

    @invariant()
    def one_runs_it(self) -> None:
        for seed, version in tuple(self.forced.items()):
            if self.simulation.kept(seed) is None and self.knows(seed, version):
                del self.forced[seed]
        running = self.simulation.running() - self.forced.keys()
        assert len(running) < 2, running

    @invariant()
    def nothing_runs_before_it_was_handed_over(self) -> None:
        shoot = self.do(self.simulation.shoot())
        if shoot is not None and self.before:
            responsible = section(shoot, "status").get("seedName")
            others = self.simulation.running() - self.forced.keys() - {responsible}
            assert not others, f"{others} run what {responsible} has"

    def knows(self, seed: str, version: int) -> bool:
        """Whether a seed was told of a version of the shoot, and nothing older of it can reach it any more."""
        life = self.simulation.lives[seed]
        observed = life.cache.shoots.get(NAME)
        return observed.version >= version if isinstance(observed, ObservedShoot) else life.pending_version() >= version

    def teardown(self) -> None:
        try:
            if self.before:
                self.end()
        finally:
            for life in (*self.simulation.lives.values(), *self.simulation.zombies):
                life.end()
            self.loop.close()
            self.room.cleanup()

    def end(self) -> None:
        self.do(self.simulation.converge())
        shoot = self.do(self.simulation.shoot())
        kept = {seed for seed in SEEDS if self.simulation.kept(seed) is not None}
        if self.is_deleted:
            assert shoot is None, shoot
            assert not kept
            return
        self.ends_well(shoot, kept)

    def ends_well(self, shoot: Document | None, kept: set[str]) -> None:
        assert shoot is not None
        seed = shoot["spec"]["seedName"]
        description = self.do(self.simulation.describe())
        assert shoot["status"]["seedName"] == seed, description
        operation = shoot["status"]["lastOperation"]
        assert operation["state"] == "Succeeded", description
        assert operation["type"] in {"Create", "Reconcile", "Restore"}, description
        assert shoot["status"]["observedGeneration"] == shoot["metadata"]["generation"], description
        assert self.simulation.running() == kept == {seed}, description
        assert self.simulation.identities(seed) == self.before, description


def test_one_control_plane_and_always_the_same() -> None:
    run_state_machine_as_test(  # pyright: ignore[reportUnknownMemberType]
        Moving, settings=settings(stateful_step_count=60, max_examples=EXAMPLES, deadline=None)
    )
