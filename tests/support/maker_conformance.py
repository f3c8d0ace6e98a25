"""The behaviour that every maker has, on the records and flows of the gardenlet: `backend.port.Maker`."""

from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gardenbus.common.api.document import Document
from gardenbus.gardenlet.backend.port import FencingToken, StaleFencingToken
from gardenbus.gardenlet.backend.seed_backend import SeedBackend, kept
from gardenbus.gardenlet.domain.flows import OperationType, shoot_flow
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import Run, ShootRecord
from gardenbus.gardenlet.operation.flow_runner import run_flow
from tests.support.builders import a_shoot, merged
from tests.support.cutting import CutAfter
from tests.support.killed_lives import KILLED, Kills, live

SHOOT = ("garden-dev", "apollo")


class MakerConformance(ABC):
    """Tests of one maker; a subclass whose name begins with Test runs them."""

    steps: tuple[str, ...] = tuple(shoot_flow("Create", has_workers=False).steps)
    cuts: tuple[int, ...] = (0, 1, 2, 5)
    """Awaits after which a step is cut, one life each."""

    kills: tuple[int, ...] = (-1, 0)
    """Awaits at which the gardenlet is killed in each step; -1: between it and the one before."""

    killed_in: tuple[tuple[OperationType, bool], ...] = (
        ("Create", False),
        ("Reconcile", True),
        ("Reconcile", False),
        ("Migrate", False),
        ("Restore", False),
        ("Delete", False),
    )
    """Operations in which it is killed, and whether the shoot shall sleep."""

    @abstractmethod
    def backend(self, directory: Path) -> SeedBackend:
        """A backend on a directory, in a life of its own."""

    @abstractmethod
    def left(self, directory: Path) -> list[str]:
        """What is left of shoots there."""

    def shoot(self) -> Document:
        """The shoot that is made."""
        return a_shoot(spec={"provider": {"workers": []}})

    def observed(self) -> ObservedShoot:
        return ObservedShoot.of(self.shoot(), uid="u1", version=1, role="run")

    async def a_life(self, directory: Path, number: int) -> SeedBackend:
        backend = self.backend(directory)
        await backend.start()
        await backend.acquire(FencingToken(1, number))
        return backend

    def begin(self, backend: SeedBackend, operation: OperationType, number: int) -> ShootRecord:
        run = Run(operation=operation, generation=number, number=number)
        record = backend.load(SHOOT) or ShootRecord(namespace=SHOOT[0], name=SHOOT[1], uid="u1", has_workers=False)
        record = msgspec.structs.replace(record, run=run)
        backend.save(record)
        return record

    async def run(self, backend: SeedBackend, operation: OperationType, number: int) -> ShootRecord:
        self.begin(backend, operation, number)
        return await self.finish(backend)

    async def finish(self, backend: SeedBackend) -> ShootRecord:
        record = backend.load(SHOOT)
        assert record is not None
        result = await run_flow(
            backend, record, self.observed(), is_wanted=lambda: True, on_progress=lambda _record, _tasks: None
        )
        assert [failure.message for failure in result.failures] == []
        assert result.is_complete
        return result.record

    async def test_a_step_that_is_repeated_changes_nothing(self, tmp_path: Path) -> None:
        backend = await self.a_life(tmp_path, 1)
        first = kept(await self.run(backend, "Create", 1))
        second = kept(await self.run(backend, "Reconcile", 2))
        assert second == first
        await self.run(backend, "Delete", 3)
        await self.run(backend, "Delete", 4)
        assert self.left(tmp_path) == []
        await backend.stop()

    async def test_steps_that_are_cut_anywhere_are_taken_up_again(self, tmp_path: Path) -> None:
        life = 0
        operations: tuple[tuple[OperationType, int], ...] = (("Create", 1), ("Delete", 2))
        for operation, number in operations:
            backend = await self.a_life(tmp_path, life := life + 1)
            self.begin(backend, operation, number)
            for step in shoot_flow(operation, has_workers=False).steps:
                for times in self.cuts:
                    cut = CutAfter(backend.perform(SHOOT, step, self.observed()), times)
                    await cut
                    if not cut.was_cut:
                        break
                    await backend.stop()
                    backend = await self.a_life(tmp_path, life := life + 1)
                done = await backend.perform(SHOOT, step, self.observed())
                assert done.run is not None
                assert step in done.run.done
            await backend.stop()
        assert self.left(tmp_path) == []

    def test_a_gardenlet_that_is_killed_in_each_step_leaves_nothing_behind(self, tmp_path: Path) -> None:
        """By SIGKILL, at the beginning of each step and amid it; the next life goes on from the files alone."""
        kills = Kills(tmp_path / "kills")
        directory = tmp_path / "seed"
        lives = 0
        for number, (operation, is_asleep) in enumerate(self.killed_in, 1):
            code = KILLED
            while code == KILLED:
                lives += 1
                code = live(partial(self.a_life_with_kills, directory, lives, operation, number, is_asleep, kills))
            assert code == 0, f"{operation}: a life has failed (see standard error) after {kills.places}"
        assert self.left(directory) == []
        assert lives - len(self.killed_in) == len(kills.places)
        assert {place.split()[0] for place in kills.places} == {operation for operation, _ in self.killed_in}

    async def a_life_with_kills(
        self, directory: Path, life: int, operation: OperationType, number: int, is_asleep: bool, kills: Kills
    ) -> None:
        backend = await self.a_life(directory, life)
        record = backend.load(SHOOT)
        if record is None or record.run is None or record.run.number != number:
            record = self.begin(backend, operation, number)
        shoot = merged(self.shoot(), {"spec": {"hibernation": {"enabled": is_asleep}}})
        observed = ObservedShoot.of(shoot, uid="u1", version=number, role="run")
        assert record.run is not None
        for step in shoot_flow(operation, has_workers=False).steps:
            if step not in record.run.done:
                await kills.survive(backend.perform(SHOOT, step, observed), f"{operation} {number} {step}", self.kills)
        if operation in ("Create", "Restore"):
            assert await backend.problems(observed) == {}
        await backend.stop()

    async def test_one_that_was_fenced_off_makes_and_removes_nothing(self, tmp_path: Path) -> None:
        first = await self.a_life(tmp_path, 1)
        made = await self.run(first, "Create", 1)
        second = await self.a_life(tmp_path, 2)
        for step in shoot_flow("Delete", has_workers=False).steps:
            with pytest.raises(StaleFencingToken):
                await first.perform(SHOOT, step, self.observed())
        await first.stop()
        assert second.load(SHOOT) == made
        assert await second.problems(self.observed()) == {}
        assert kept(await self.run(second, "Reconcile", 2)) == kept(made)
        await self.run(second, "Delete", 3)
        assert self.left(tmp_path) == []
        await second.stop()

    async def test_what_was_made_survives_a_restart(self, tmp_path: Path) -> None:
        first = await self.a_life(tmp_path, 1)
        made = await self.run(first, "Create", 1)
        await first.stop()
        second = await self.a_life(tmp_path, 2)
        assert await second.problems(self.observed()) == {}
        assert kept(await self.run(second, "Reconcile", 2)) == kept(made)
        await self.run(second, "Delete", 3)
        await second.stop()
        assert self.left(tmp_path) == []

    @pytest.mark.parametrize("share", [0.0, 0.3, 0.6])
    async def test_what_is_half_made_can_be_removed(self, tmp_path: Path, share: float) -> None:
        backend = await self.a_life(tmp_path, 1)
        self.begin(backend, "Create", 1)
        for step in self.steps[: int(share * len(self.steps))]:
            await backend.perform(SHOOT, step, self.observed())
        await backend.stop()
        backend = await self.a_life(tmp_path, 2)
        await self.run(backend, "Delete", 2)
        await backend.stop()
        assert self.left(tmp_path) == []

    async def test_what_lasts_is_that_of_the_state_it_is_restored_from(self, tmp_path: Path) -> None:
        source = await self.a_life(tmp_path / "source", 1)
        made = kept(await self.run(source, "Create", 1))
        await self.run(source, "Delete", 2)
        await source.stop()
        state: dict[str, Any] = {step: dict(lasting) for step, lasting in made.items() if lasting}
        state.pop("control-plane", None)
        destination = await self.a_life(tmp_path / "destination", 1)
        destination.save(msgspec.structs.replace(self.begin(destination, "Restore", 1), state=state))
        restored = kept(await self.finish(destination))
        assert {step: restored[step] for step in state} == state
        await self.run(destination, "Delete", 2)
        await destination.stop()

    async def test_buckets_are_made_and_removed_as_often_as_asked_for(self, tmp_path: Path) -> None:
        backend = await self.a_life(tmp_path, 1)
        before = sorted(tmp_path.rglob("*"))
        for _ in range(2):
            await backend.ensure_bucket("b1")
        for _ in range(2):
            await backend.delete_bucket("b1")
        assert sorted(tmp_path.rglob("*")) == before
        await backend.stop()
