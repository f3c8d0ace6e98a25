"""What is to be done for a shoot that moves from seed to seed, row by row of the tables."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from gardenbus.common.resources.document import Document
from gardenbus.gardenlet.decide.flows import OperationType
from gardenbus.gardenlet.decide.operations import (
    Action,
    Begin,
    Later,
    LetGo,
    RepeatReport,
    SeedFitness,
    SeedUnfit,
    ShootTold,
    Snapshot,
    Waiting,
    adopted,
    is_still_wanted,
    next_action,
    operation_type,
    residence,
    state_generation,
)
from gardenbus.gardenlet.decide.record import Run, ShootRecord
from gardenbus.gardenlet.decide.shoot_state import (
    generation_of,
    is_deletable,
    is_stored,
    restorable,
    shoot_state,
    state_in,
    state_of,
)
from tests.support.builders import NOW, a_shoot, merged

INSTANT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ME, OTHER = "aws-eu1", "aws-eu2"
READY = {"constraints": [{"type": "ReadyForMigration", "status": "True"}]}
ROLES = {(ME, ME): "run", (ME, ""): "run", (OTHER, ME): "migrate-away", (ME, OTHER): "wait"}


def told(wanted: str = ME, actual: str = ME, **changes: Any) -> ShootTold:
    """A shoot of generation 5 between two seeds."""
    default = a_shoot(
        metadata={"uid": "u1", "generation": 5, "finalizers": ["gardener"]},
        spec={"seedName": wanted},
        status={"seedName": actual} if actual else {},
    )
    role = ROLES.get((wanted, actual), "run")
    return ShootTold.of(merged(default, changes), uid="u1", version=7, role=role)


def handed_over(state: str = "Succeeded", *, observed: int = 4) -> Document:
    return {"status": {"lastOperation": operation("Migrate", state), "observedGeneration": observed}}


DELETING: Document = {"deletionTimestamp": NOW}


def operation(kind: str, state: str) -> Document:
    return {"type": kind, "state": state, "progress": 50, "description": "", "lastUpdateTime": NOW}


def kept(kind: OperationType, state: str = "Succeeded", *, generation: int = 5, **changes: Any) -> ShootRecord:
    """What is kept of the shoot: the last operation, which is also what ran last unless said otherwise."""
    fields: dict[str, Any] = {
        "namespace": "garden-dev",
        "name": "apollo",
        "uid": "u1",
        "run": Run(operation=kind, generation=generation, number=3),
        "status": {"lastOperation": operation(kind, state), "observedGeneration": generation},
        "resources": {"etcd": {"operation": "Create", "at": NOW, "volume": "v1"}},
    }
    return ShootRecord(**fields | changes)


def action(shoot: ShootTold, record: ShootRecord | None = None, *, has_state: bool = False, **changes: Any) -> Action:
    snapshot = Snapshot(ME, SeedFitness(), INSTANT, timedelta(hours=1), has_state=has_state)._replace(**changes)
    return next_action(shoot, record, snapshot)


@pytest.mark.parametrize(
    ("spec", "status", "role", "where"),
    [
        (ME, ME, "run", "here"),
        (ME, "", "run", "here"),
        (OTHER, ME, "migrate-away", "leaving"),
        (ME, OTHER, "wait", "coming"),
        (OTHER, OTHER, "run", "elsewhere"),
        (OTHER, "", "run", "elsewhere"),
        ("", ME, "run", "elsewhere"),
        (OTHER, ME, "run", "elsewhere"),
        (ME, ME, "wait", "elsewhere"),
    ],
)
def test_where_a_shoot_is(spec: str, status: str, role: str, where: str) -> None:
    assert residence(told(spec, status)._replace(role=role), ME) == where


@pytest.mark.parametrize(
    ("last", "is_leaving", "is_deleting", "expected"),
    [
        (operation("Create", "Succeeded"), True, False, "Migrate"),
        (operation("Migrate", "Error"), True, False, "Migrate"),
        (operation("Reconcile", "Succeeded"), True, True, "Delete"),
        (operation("Migrate", "Succeeded"), False, False, "Restore"),
        (operation("Migrate", "Aborted"), False, False, "Restore"),
        (operation("Migrate", "Succeeded"), False, True, "Restore"),
        (operation("Restore", "Processing"), False, False, "Restore"),
        (operation("Restore", "Error"), False, False, "Restore"),
        (operation("Restore", "Processing"), False, True, "Restore"),
        (operation("Restore", "Error"), False, True, "Delete"),
        (operation("Restore", "Succeeded"), False, False, "Reconcile"),
        (operation("Restore", "Succeeded"), False, True, "Delete"),
        (operation("Migrate", "Processing"), False, False, "Migrate"),
    ],
)
def test_which_operation_it_is(last: Document, is_leaving: bool, is_deleting: bool, expected: OperationType) -> None:
    assert operation_type(is_deleting=is_deleting, last_operation=last, is_leaving=is_leaving) == expected


def test_the_source_waits_until_the_destination_is_ready() -> None:
    unready = {"constraints": [{"type": "ReadyForMigration", "status": "False", "message": "It is deaf."}]}

    assert action(told(OTHER), kept("Reconcile")) == Waiting(
        "Migrate", f"it is not known yet whether seed {OTHER} is ready for the control plane."
    )
    assert action(told(OTHER, status=unready), kept("Reconcile")) == Waiting(
        "Migrate", f"seed {OTHER} is not ready for the control plane: It is deaf.", is_refused=True
    )
    begun = action(told(OTHER, status=READY), kept("Reconcile"))
    assert begun == Begin(Run(operation="Migrate", generation=5, number=4), resumed=False)


def test_what_waited_starts_anew_when_the_migration_is_taken_back() -> None:
    waited = kept("Reconcile", generation=4, status={"lastOperation": operation("Migrate", "Error")})

    assert action(told(), waited) == Begin(Run(operation="Reconcile", generation=5, number=4), resumed=False)


@pytest.mark.parametrize("shoot", [told(), told(OTHER), told(metadata=DELETING), told(OTHER, metadata=DELETING)])
@pytest.mark.parametrize("state", ["Processing", "Error"])
def test_a_migration_that_has_begun_is_carried_to_its_end(shoot: ShootTold, state: str) -> None:
    done = ("stop-control-plane", "save-state")
    record = kept("Migrate", state, run=Run(operation="Migrate", generation=5, number=3, done=done))

    assert action(shoot, record) == Begin(Run(operation="Migrate", generation=5, number=3, done=done), resumed=True)


def test_a_migration_taken_up_at_a_newer_generation_saves_again() -> None:
    run = Run(operation="Migrate", generation=4, number=3, done=("stop-control-plane", "save-state", "release-etcd"))
    record = kept("Migrate", "Processing", run=run)

    assert action(told(OTHER), record) == Begin(
        Run(operation="Migrate", generation=5, number=3, done=("stop-control-plane", "release-etcd")), resumed=True
    )


def test_an_unfit_seed_and_a_backoff_hold_a_migration_too() -> None:
    record = kept("Migrate", "Error", retry_at=INSTANT + timedelta(seconds=5))

    assert action(told(OTHER), record) == Later("backoff", 5)
    unfit = SeedFitness("not now")
    assert action(told(OTHER), kept("Migrate", "Error"), fitness=unfit) == SeedUnfit("Migrate", "not now")
    assert action(told(OTHER), kept("Migrate", "Failed")) == Later("failed")


@pytest.mark.parametrize("shoot", [told(), told(OTHER)])
def test_a_finished_migration_is_said_until_it_is_heard(shoot: ShootTold) -> None:
    assert action(shoot, kept("Migrate")) == RepeatReport()


def test_the_destination_starts_nothing_while_the_source_runs_it() -> None:
    assert action(told(ME, OTHER)) == Later("waiting for the source seed")


def test_what_is_left_of_an_earlier_stay_goes() -> None:
    assert action(told(ME, OTHER), kept("Reconcile")) == LetGo()
    assert action(told(**handed_over(observed=4)), kept("Reconcile", generation=4)) == LetGo()
    assert action(told(**handed_over("Aborted", observed=4)), kept("Reconcile", generation=3)) == LetGo()
    assert action(told(**handed_over(observed=5)), kept("Migrate", generation=5)) == LetGo()
    assert action(told(OTHER, **handed_over(observed=4)), kept("Reconcile", generation=4)) == LetGo()
    assert isinstance(action(told(**handed_over(observed=4)), kept("Restore", "Error", generation=5)), Begin)


def test_a_restoration_waits_for_what_the_source_saved() -> None:
    shoot = told(**handed_over(observed=4))
    waits = Waiting("Restore", "the ShootState that its last seed saved is not there yet.")

    assert action(shoot) == waits
    waited = msgspec.structs.replace(adopted(shoot), status={"lastOperation": operation("Restore", "Error")})
    assert action(shoot, waited) == waits
    assert action(shoot, waited, has_state=True) == Begin(
        Run(operation="Restore", generation=5, number=1), resumed=False
    )
    brought = msgspec.structs.replace(waited, state={"etcd": {"volume": "v"}})
    assert isinstance(action(shoot, brought), Begin)


def test_what_was_not_restored_yet_cannot_move_on_without_its_state() -> None:
    shoot = told(OTHER, status=handed_over()["status"] | READY)

    assert isinstance(action(shoot), Waiting)
    assert isinstance(action(shoot, has_state=True), Begin)


def test_what_was_taken_down_by_half_is_built_again() -> None:
    record = kept("Reconcile", run=Run(operation="Leave", generation=0, number=4, done=("stop-control-plane",)))

    assert action(told(), record) == Begin(Run(operation="Reconcile", generation=5, number=5), resumed=False)


def test_which_state_a_restoration_needs() -> None:
    assert state_generation(told(**handed_over(observed=4)), None) == 4
    assert state_generation(told(**handed_over("Aborted", observed=4)), None) == 0
    assert state_generation(told(), adopted(told(**handed_over(observed=4)))) == 4
    assert state_generation(told(), None) == 0


def test_the_gardens_constraint_is_not_the_gardenlets_to_repeat() -> None:
    constraints = [*READY["constraints"], {"type": "HibernationPossible", "status": "True"}]

    assert adopted(told(status={"constraints": constraints})).status["constraints"] == constraints[1:]


@pytest.mark.parametrize(
    ("kind", "shoot", "expected"),
    [
        ("Migrate", told(OTHER), True),
        ("Migrate", told(), True),
        ("Migrate", told(ME, OTHER), False),
        ("Restore", told(metadata=DELETING), True),
        ("Restore", told(OTHER), False),
        ("Reconcile", told(), True),
        ("Reconcile", told(OTHER), False),
        ("Create", told(metadata=DELETING), False),
        ("Delete", told(OTHER, metadata=DELETING), True),
    ],
)
def test_what_goes_on_and_what_is_cut(kind: OperationType, shoot: ShootTold, expected: bool) -> None:
    assert is_still_wanted(kind, shoot, ME) is expected


def test_a_state_comes_back_as_it_was_saved() -> None:
    state = state_of(kept("Reconcile"))
    saved = shoot_state(told(), state, generation=5)

    assert state == {"etcd": {"volume": "v1"}}
    assert saved == shoot_state(told(), state_of(kept("Reconcile", generation=9)), generation=5)
    assert state_in(saved, "u1") == state
    assert state_in(saved, "u2") is None
    assert state_in(None, "u1") is None
    assert generation_of(saved) == 5
    assert is_stored(saved, told(), state, generation=5)
    assert not is_stored(saved, told(), state, generation=6)
    assert not is_stored(saved, told(), {}, generation=5)
    assert restorable(saved, told(), generation=5) == state
    assert restorable(saved, told(), generation=6) is None
    assert restorable(None, told(), generation=0) is None


def test_only_the_state_of_a_deleted_shoot_may_be_deleted_with_it() -> None:
    assert not is_deletable(shoot_state(told(), {}, generation=5))
    assert is_deletable(shoot_state(told(), {}, generation=5, is_deletable=True))
    assert generation_of({"metadata": {"annotations": {"shootstate.gardenbus.io/generation": "new"}}}) == 0
