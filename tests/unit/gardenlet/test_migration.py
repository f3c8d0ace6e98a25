"""What is to be done for a shoot that moves from seed to seed, row by row of the tables."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from gardenbus.common.api.confirmation import is_confirmed
from gardenbus.common.api.document import Document
from gardenbus.gardenlet.domain.flows import OperationType
from gardenbus.gardenlet.domain.operations import (
    AwaitDependency,
    DropStaleRecord,
    NothingToDo,
    ObservedShoot,
    RepeatReport,
    RunOperation,
    SeedNotReady,
    SeedReadiness,
    ShootAction,
    ShootSnapshot,
    adopted,
    is_still_wanted,
    next_action,
    operation_type,
    residence,
    state_generation,
)
from gardenbus.gardenlet.domain.shoot_record import Run, ShootRecord
from gardenbus.gardenlet.domain.shoot_state import (
    generation_of,
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


def observed(wanted: str = ME, actual: str = ME, **changes: Any) -> ObservedShoot:
    """A shoot of generation 5 between two seeds."""
    default = a_shoot(
        metadata={"uid": "u1", "generation": 5, "finalizers": ["gardener"]},
        spec={"seedName": wanted},
        status={"seedName": actual} if actual else {},
    )
    role = ROLES.get((wanted, actual), "run")
    return ObservedShoot.of(merged(default, changes), uid="u1", version=7, role=role)


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


def action(
    shoot: ObservedShoot, record: ShootRecord | None = None, *, has_state: bool = False, **changes: Any
) -> ShootAction:
    snapshot = ShootSnapshot(ME, SeedReadiness(), INSTANT, timedelta(hours=1), has_state=has_state)._replace(**changes)
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
    assert residence(observed(spec, status)._replace(role=role), ME) == where


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

    assert action(observed(OTHER), kept("Reconcile")) == AwaitDependency(
        "Migrate", f"it is not known yet whether seed {OTHER} is ready for the control plane."
    )
    assert action(observed(OTHER, status=unready), kept("Reconcile")) == AwaitDependency(
        "Migrate", f"seed {OTHER} is not ready for the control plane: It is deaf.", is_rejected=True
    )
    begun = action(observed(OTHER, status=READY), kept("Reconcile"))
    assert begun == RunOperation(Run(operation="Migrate", generation=5, number=4), resumed=False)


def test_what_waited_starts_anew_when_the_migration_is_cancelled() -> None:
    waited = kept("Reconcile", generation=4, status={"lastOperation": operation("Migrate", "Error")})

    assert action(observed(), waited) == RunOperation(Run(operation="Reconcile", generation=5, number=4), resumed=False)


@pytest.mark.parametrize(
    "shoot", [observed(), observed(OTHER), observed(metadata=DELETING), observed(OTHER, metadata=DELETING)]
)
@pytest.mark.parametrize("state", ["Processing", "Error"])
def test_a_migration_that_has_begun_is_carried_to_its_end(shoot: ObservedShoot, state: str) -> None:
    done = ("stop-control-plane", "save-state")
    record = kept("Migrate", state, run=Run(operation="Migrate", generation=5, number=3, done=done))

    assert action(shoot, record) == RunOperation(
        Run(operation="Migrate", generation=5, number=3, done=done), resumed=True
    )


def test_a_migration_resumed_at_a_newer_generation_saves_again() -> None:
    run = Run(operation="Migrate", generation=4, number=3, done=("stop-control-plane", "save-state", "release-etcd"))
    record = kept("Migrate", "Processing", run=run)

    assert action(observed(OTHER), record) == RunOperation(
        Run(operation="Migrate", generation=5, number=3, done=("stop-control-plane", "release-etcd")), resumed=True
    )


def test_an_unfit_seed_and_a_backoff_hold_a_migration_too() -> None:
    record = kept("Migrate", "Error", retry_at=INSTANT + timedelta(seconds=5))

    assert action(observed(OTHER), record) == NothingToDo("backoff", 5)
    not_ready = SeedReadiness("not now")
    assert action(observed(OTHER), kept("Migrate", "Error"), readiness=not_ready) == SeedNotReady("Migrate", "not now")
    assert action(observed(OTHER), kept("Migrate", "Failed")) == NothingToDo("failed")


@pytest.mark.parametrize("shoot", [observed(), observed(OTHER)])
def test_a_finished_migration_is_reported_until_it_has_an_effect(shoot: ObservedShoot) -> None:
    assert action(shoot, kept("Migrate")) == RepeatReport()


def test_the_destination_starts_nothing_while_the_source_runs_it() -> None:
    assert action(observed(ME, OTHER)) == NothingToDo("waiting for the source seed")


def test_what_is_left_of_an_earlier_stay_goes() -> None:
    assert action(observed(ME, OTHER), kept("Reconcile")) == DropStaleRecord()
    assert action(observed(**handed_over(observed=4)), kept("Reconcile", generation=4)) == DropStaleRecord()
    assert action(observed(**handed_over("Aborted", observed=4)), kept("Reconcile", generation=3)) == DropStaleRecord()
    assert action(observed(**handed_over(observed=5)), kept("Migrate", generation=5)) == DropStaleRecord()
    assert action(observed(OTHER, **handed_over(observed=4)), kept("Reconcile", generation=4)) == DropStaleRecord()
    assert isinstance(action(observed(**handed_over(observed=4)), kept("Restore", "Error", generation=5)), RunOperation)


def test_a_restoration_waits_for_what_the_source_saved() -> None:
    shoot = observed(**handed_over(observed=4))
    waits = AwaitDependency("Restore", "the ShootState that its last seed saved does not exist yet.")

    assert action(shoot) == waits
    waited = msgspec.structs.replace(adopted(shoot), status={"lastOperation": operation("Restore", "Error")})
    assert action(shoot, waited) == waits
    assert action(shoot, waited, has_state=True) == RunOperation(
        Run(operation="Restore", generation=5, number=1), resumed=False
    )
    initial_state = msgspec.structs.replace(waited, state={"etcd": {"volume": "v"}})
    assert isinstance(action(shoot, initial_state), RunOperation)


def test_what_was_not_restored_yet_cannot_move_on_without_its_state() -> None:
    shoot = observed(OTHER, status=handed_over()["status"] | READY)

    assert isinstance(action(shoot), AwaitDependency)
    assert isinstance(action(shoot, has_state=True), RunOperation)


def test_what_was_torn_down_by_half_is_built_again() -> None:
    record = kept("Reconcile", run=Run(operation="Leave", generation=0, number=4, done=("stop-control-plane",)))

    assert action(observed(), record) == RunOperation(Run(operation="Reconcile", generation=5, number=5), resumed=False)


def test_which_state_a_restoration_needs() -> None:
    assert state_generation(observed(**handed_over(observed=4)), None) == 4
    assert state_generation(observed(**handed_over("Aborted", observed=4)), None) == 0
    assert state_generation(observed(), adopted(observed(**handed_over(observed=4)))) == 4
    assert state_generation(observed(), None) == 0


def test_the_gardens_constraint_is_not_the_gardenlets_to_repeat() -> None:
    constraints = [*READY["constraints"], {"type": "HibernationPossible", "status": "True"}]

    assert adopted(observed(status={"constraints": constraints})).status["constraints"] == constraints[1:]


@pytest.mark.parametrize(
    ("kind", "shoot", "expected"),
    [
        ("Migrate", observed(OTHER), True),
        ("Migrate", observed(), True),
        ("Migrate", observed(ME, OTHER), False),
        ("Restore", observed(metadata=DELETING), True),
        ("Restore", observed(OTHER), False),
        ("Reconcile", observed(), True),
        ("Reconcile", observed(OTHER), False),
        ("Create", observed(metadata=DELETING), False),
        ("Delete", observed(OTHER, metadata=DELETING), True),
    ],
)
def test_what_goes_on_and_what_is_cut(kind: OperationType, shoot: ObservedShoot, expected: bool) -> None:
    assert is_still_wanted(Run(operation=kind, generation=1, number=1), shoot, ME) is expected


def test_a_state_comes_back_as_it_was_saved() -> None:
    state = state_of(kept("Reconcile"))
    saved = shoot_state(observed(), state, generation=5)

    assert state == {"etcd": {"volume": "v1"}}
    assert saved == shoot_state(observed(), state_of(kept("Reconcile", generation=9)), generation=5)
    assert state_in(saved, "u1") == state
    assert state_in(saved, "u2") is None
    assert state_in(None, "u1") is None
    assert generation_of(saved) == 5
    assert is_stored(saved, observed(), state, generation=5)
    assert not is_stored(saved, observed(), state, generation=6)
    assert not is_stored(saved, observed(), {}, generation=5)
    assert restorable(saved, observed(), generation=5) == state
    assert restorable(saved, observed(), generation=6) is None
    assert restorable(None, observed(), generation=0) is None


def test_only_the_state_of_a_deleted_shoot_may_be_deleted_with_it() -> None:
    assert not is_confirmed(shoot_state(observed(), {}, generation=5))
    assert is_confirmed(shoot_state(observed(), {}, generation=5, is_deletable=True))
    assert generation_of({"metadata": {"annotations": {"shootstate.gardenbus.io/generation": "new"}}}) == 0
