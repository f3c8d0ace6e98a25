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

from gardenbus.common.resources.document import Document, section
from gardenbus.gardenlet.decide.operations import ShootTold
from tests.support.moving import NAME, World

EXAMPLES = int(os.environ.get("GARDENBUS_EXAMPLES", "80"))
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
        self.world = World(Path(self.room.name), SEEDS)
        self.forced: dict[str, int] = {}
        self.is_deleted = False
        self.before: dict[str, str] = {}

    def do(self, awaitable: Awaitable[T]) -> T:
        return self.loop.run_until_complete(awaitable)

    @initialize()
    def build(self) -> None:
        self.do(self.world.begin())
        self.before = self.world.identities("one")
        assert self.world.running() == {"one"}
        assert len(self.before) == 5

    # ------------------------------------------------------------------------------------------ the operator

    @rule(seed=seeds)
    def send_to(self, seed: str) -> None:
        self.do(self.world.bind(seed))

    @precondition(lambda self: not self.is_deleted)
    @rule(seed=seeds)
    def send_by_force(self, seed: str) -> None:
        shoot = self.do(self.world.shoot())
        assert shoot is not None
        if self.do(self.world.bind(seed, force=True)) == "restore":
            self.forced[section(shoot, "status")["seedName"]] = int(shoot["metadata"]["resourceVersion"]) + 1

    @rule(chance=st.integers(0, 9))
    def delete(self, chance: int) -> None:
        if not chance:
            self.is_deleted |= self.do(self.world.delete())

    # ------------------------------------------------------------------------------------------ the services

    @rule(limit=st.integers(1, 4))
    def announce(self, limit: int) -> None:
        self.do(self.world.announce(limit))

    @rule()
    def judge(self) -> None:
        self.do(self.world.judge())

    @rule(limit=st.integers(1, 3), dies=st.booleans())
    def take_reports(self, limit: int, dies: bool) -> None:
        self.do(self.world.take_reports(limit, dies=dies))

    @rule(replays=st.booleans())
    def kill_bus(self, replays: bool) -> None:
        self.do(self.world.kill_bus(replays=replays))

    # ------------------------------------------------------------------------------------------ the gardenlets

    @rule(seed=seeds, limit=st.integers(1, 3))
    def hear(self, seed: str, limit: int) -> None:
        if self.world.lives[seed].is_alive:
            self.do(self.world.lives[seed].hear(limit))

    @rule(seed=seeds)
    def look(self, seed: str) -> None:
        if self.world.lives[seed].is_alive:
            self.do(self.world.lives[seed].look())

    @rule(seed=seeds, dies_at=st.integers(0, 8), after_the_write=st.booleans())
    def look_and_die(self, seed: str, dies_at: int, after_the_write: bool) -> None:
        if self.world.lives[seed].is_alive:
            self.do(self.world.lives[seed].look(dies_at=dies_at, after_the_write=after_the_write))

    @rule(seed=seeds)
    def send(self, seed: str) -> None:
        if self.world.lives[seed].is_alive:
            self.do(self.world.lives[seed].send())

    @rule(seed=seeds)
    def start_anew(self, seed: str) -> None:
        self.do(self.world.start(seed))

    @precondition(lambda self: self.world.zombies)
    @rule(which=st.integers(0, 9))
    def a_zombie_goes_on(self, which: int) -> None:
        """It was paused over what it knew; whoever replaced it has waited for longer than a message takes."""
        zombie = self.world.zombies[which % len(self.world.zombies)]
        self.do(zombie.look())
        self.do(zombie.send())

    @rule(seed=seeds)
    def go_on(self, seed: str) -> None:
        """A little of everything, so that longer journeys come about."""
        self.do(self.world.judge())
        self.do(self.world.announce())
        life = self.world.lives[seed]
        if life.is_alive:
            self.do(life.hear())
            self.do(life.look())
            self.do(life.send())
        self.do(self.world.take_reports())

    # ------------------------------------------------------------------------------------------ what must hold

    @invariant()
    def one_runs_it(self) -> None:
        for seed, version in tuple(self.forced.items()):
            if self.world.kept(seed) is None and self.knows(seed, version):
                del self.forced[seed]
        running = self.world.running() - self.forced.keys()
        assert len(running) < 2, running

    @invariant()
    def nothing_runs_before_it_was_handed_over(self) -> None:
        shoot = self.do(self.world.shoot())
        if shoot is not None and self.before:
            responsible = section(shoot, "status").get("seedName")
            others = self.world.running() - self.forced.keys() - {responsible}
            assert not others, f"{others} run what {responsible} has"

    def knows(self, seed: str, version: int) -> bool:
        """Whether a seed was told of a version of the shoot, and nothing older of it can reach it any more."""
        life = self.world.lives[seed]
        told = life.told.shoots.get(NAME)
        return told.version >= version if isinstance(told, ShootTold) else life.unheard_version() >= version

    def teardown(self) -> None:
        try:
            if self.before:
                self.end()
        finally:
            for life in (*self.world.lives.values(), *self.world.zombies):
                life.end()
            self.loop.close()
            self.room.cleanup()

    def end(self) -> None:
        self.do(self.world.settle())
        shoot = self.do(self.world.shoot())
        kept = {seed for seed in SEEDS if self.world.kept(seed) is not None}
        if self.is_deleted:
            assert shoot is None, shoot
            assert not kept
            return
        self.ends_well(shoot, kept)

    def ends_well(self, shoot: Document | None, kept: set[str]) -> None:
        assert shoot is not None
        seed = shoot["spec"]["seedName"]
        description = self.do(self.world.describe())
        assert shoot["status"]["seedName"] == seed, description
        operation = shoot["status"]["lastOperation"]
        assert operation["state"] == "Succeeded", description
        assert operation["type"] in {"Create", "Reconcile", "Restore"}, description
        assert shoot["status"]["observedGeneration"] == shoot["metadata"]["generation"], description
        assert self.world.running() == kept == {seed}, description
        assert self.world.identities(seed) == self.before, description


def test_one_control_plane_and_always_the_same() -> None:
    run_state_machine_as_test(  # pyright: ignore[reportUnknownMemberType]
        Moving, settings=settings(stateful_step_count=60, max_examples=EXAMPLES, deadline=None)
    )
