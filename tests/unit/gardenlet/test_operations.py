"""What is to be done for a shoot, row by row of the tables."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from gardenbus.common.api.document import Document
from gardenbus.gardenlet.domain.flows import OperationType
from gardenbus.gardenlet.domain.operations import (
    Claim,
    NothingBuilt,
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
)
from gardenbus.gardenlet.domain.shoot_record import Run, ShootRecord
from tests.support.builders import NOW, a_shoot, merged

INSTANT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SEED = "aws-eu1"
VERSION = "1.2.3"


def observed(*, role: str = "run", version: int = 7, **changes: Any) -> ObservedShoot:
    """A shoot of generation 2 that this seed has claimed."""
    default = a_shoot(
        metadata={"uid": "u1", "generation": 2, "finalizers": ["gardener"]},
        spec={"seedName": SEED},
        status={"seedName": SEED},
    )
    return ObservedShoot.of(merged(default, changes), uid="u1", version=version, role=role)


DELETING: Document = {"deletionTimestamp": NOW}


def operation(kind: str, state: str) -> Document:
    return {"type": kind, "state": state, "progress": 50, "description": "", "lastUpdateTime": NOW}


def a_record(kind: OperationType = "Create", state: str = "Succeeded", **changes: Any) -> ShootRecord:
    """What is kept of the shoot after a first run at generation 2."""
    generation = changes.pop("generation", 2)
    fields: dict[str, Any] = {
        "namespace": "garden-dev",
        "name": "apollo",
        "uid": "u1",
        "run": Run(operation=kind, generation=generation, number=1, done=("namespace",)),
        "status": {"lastOperation": operation(kind, state), "observedGeneration": generation},
    }
    return ShootRecord(**fields | changes)


def action(
    shoot: ObservedShoot,
    record: ShootRecord | None = None,
    *,
    readiness: SeedReadiness | None = None,
    later_by: float = 0,
    respect_ignore: bool = False,
    has_state: bool = False,
) -> ShootAction:
    snapshot = ShootSnapshot(
        seed_name=SEED,
        readiness=readiness or SeedReadiness(),
        now=INSTANT + timedelta(seconds=later_by),
        sync_period=timedelta(hours=1),
        respect_ignore=respect_ignore,
        version=VERSION,
        has_state=has_state,
    )
    return next_action(shoot, record, snapshot)


@pytest.mark.parametrize(
    ("is_deleting", "last", "expected"),
    [
        (False, {}, "Create"),
        (False, operation("Create", "Pending"), "Create"),
        (False, operation("Create", "Error"), "Create"),
        (False, operation("Create", "Failed"), "Create"),
        (False, operation("Create", "Succeeded"), "Reconcile"),
        (False, operation("Reconcile", "Error"), "Reconcile"),
        (False, operation("Reconcile", "Succeeded"), "Reconcile"),
        (True, {}, "Delete"),
        (True, operation("Create", "Failed"), "Delete"),
        (True, operation("Delete", "Error"), "Delete"),
    ],
)
def test_which_operation_it_is(is_deleting: bool, last: Document, expected: OperationType) -> None:
    assert operation_type(is_deleting=is_deleting, last_operation=last) == expected


def test_a_new_shoot_is_claimed_before_anything_is_done() -> None:
    assert action(observed(status={"seedName": None})) == Claim()


def test_a_claimed_shoot_is_created() -> None:
    assert action(observed()) == RunOperation(Run(operation="Create", generation=2, number=1), resumed=False)


@pytest.mark.parametrize(
    "shoot",
    [
        observed(role="wait"),
        observed(role="migrate-away"),
        observed(status={"seedName": "other"}),
        observed(spec={"seedName": "other"}),
    ],
)
def test_what_is_anothers_is_left_alone(shoot: ObservedShoot) -> None:
    assert action(shoot) == NothingToDo("not responsible")


def test_a_shoot_that_was_never_begun_is_let_go() -> None:
    assert action(observed(metadata=DELETING, status={"seedName": None})) == NothingBuilt()


def test_without_the_finalizer_nothing_is_deleted() -> None:
    assert action(observed(metadata=DELETING | {"finalizers": []}), a_record()) == NothingToDo("no finalizer")


def test_a_deletion_ends_what_failed_before() -> None:
    started = action(observed(metadata=DELETING | {"generation": 3}), a_record(state="Failed", attempts=4))

    assert started == RunOperation(Run(operation="Delete", generation=3, number=2), resumed=False)


def test_a_deletion_starts_without_waiting_for_a_backoff() -> None:
    record = a_record(state="Error", retry_at=INSTANT + timedelta(minutes=5))

    assert isinstance(action(observed(metadata=DELETING), record), RunOperation)


def test_a_finished_deletion_is_reported_again() -> None:
    assert action(observed(metadata=DELETING), a_record("Delete")) == RepeatReport()


@pytest.mark.parametrize("state", ["Processing", "Error"])
def test_a_run_that_was_cut_or_failed_goes_on_where_it_stood(state: str) -> None:
    assert action(observed(), a_record(state=state)) == RunOperation(
        Run(operation="Create", generation=2, number=1, done=("namespace",)), resumed=True
    )


def test_a_new_generation_starts_the_run_anew() -> None:
    begun = action(observed(metadata={"generation": 3}), a_record(state="Error"))

    assert begun == RunOperation(Run(operation="Create", generation=3, number=2), resumed=False)


def test_what_failed_for_good_waits_for_a_new_generation() -> None:
    assert action(observed(), a_record(state="Failed")) == NothingToDo("failed")
    assert isinstance(action(observed(metadata={"generation": 3}), a_record(state="Failed")), RunOperation)


def test_what_failed_for_good_is_tried_again_by_another_version_of_the_gardenlet() -> None:
    failed = a_record(state="Failed")
    by_another = a_record(state="Failed", status=failed.status | {"gardener": {"version": "1.2.2"}})
    by_this = a_record(state="Failed", status=failed.status | {"gardener": {"version": VERSION}})

    assert action(observed(), by_another) == RunOperation(
        Run(operation="Create", generation=2, number=2), resumed=False
    )
    assert action(observed(), by_this) == NothingToDo("failed")


def test_a_failed_run_waits_for_its_backoff() -> None:
    record = a_record(state="Error", retry_at=INSTANT + timedelta(seconds=8))

    assert action(observed(), record, later_by=3) == NothingToDo("backoff", 5)
    assert isinstance(action(observed(), record, later_by=8), RunOperation)
    assert isinstance(action(observed(metadata={"generation": 3}), record, later_by=3), RunOperation)


def test_a_reconciled_shoot_waits_for_its_sync() -> None:
    assert action(observed(), a_record(), later_by=600) == NothingToDo("settled", 3000)
    assert action(observed(), a_record(), later_by=3601) == RunOperation(
        Run(operation="Reconcile", generation=2, number=2), resumed=False
    )


def test_a_shoot_of_which_nothing_is_kept_is_reconciled_at_once() -> None:
    shoot = observed(status={"lastOperation": operation("Create", "Succeeded"), "observedGeneration": 2})

    assert action(shoot) == RunOperation(Run(operation="Reconcile", generation=2, number=1), resumed=False)


def test_an_emergency_stop_holds_everything() -> None:
    for shoot in (observed(), observed(metadata=DELETING)):
        assert action(shoot, readiness=SeedReadiness("not ready", is_stopped=True)) == NothingToDo("emergency stop")


def test_an_unfit_seed_postpones_what_would_begin_only() -> None:
    not_ready = SeedReadiness("condition GardenletReady is not True.")

    assert action(observed(), readiness=not_ready) == SeedNotReady("Create", "condition GardenletReady is not True.")
    assert action(observed(), a_record(), readiness=not_ready, later_by=60) == NothingToDo("settled", 3540)


def test_ignoring_counts_in_the_garden_namespace_or_where_it_is_allowed() -> None:
    ignored = {"annotations": {"shoot.gardener.cloud/ignore": "true"}}

    assert isinstance(action(observed(metadata=ignored)), RunOperation)
    assert action(observed(metadata=ignored), respect_ignore=True) == NothingToDo("ignored")
    assert action(observed(metadata=ignored | {"namespace": "garden"})) == NothingToDo("ignored")


def test_an_unreadable_time_counts_as_now() -> None:
    status = {"lastOperation": operation("Create", "Succeeded") | {"lastUpdateTime": "soon"}, "observedGeneration": 2}

    assert action(observed(), a_record(status=status)) == NothingToDo("settled", 3600)


def test_what_is_adopted_knows_the_status_but_not_a_failed_scheduling() -> None:
    status = {
        "technicalID": "shoot--dev--old",
        "observedGeneration": 1,
        "lastOperation": operation("Create", "Pending"),
    }
    record = adopted(observed(status=status | {"unknown": 1}))

    assert record.status == {"technicalID": "shoot--dev--old", "observedGeneration": 1, "seedName": SEED}


FORCED: Document = {**DELETING, "annotations": {"confirmation.gardener.cloud/force-deletion": "true"}}


def test_a_deletion_that_is_forced_begins_anew_and_another_one_ends() -> None:
    shoot = observed(metadata={**FORCED, "generation": 3})
    failed = a_record("Delete", "Failed")
    run = Run(operation="Delete", generation=3, number=2, is_forced=True)
    assert action(shoot, failed) == RunOperation(run, resumed=False)
    assert not is_still_wanted(replace(run, is_forced=False), shoot, SEED)
    assert is_still_wanted(run, shoot, SEED)
    assert is_still_wanted(replace(run, is_forced=False), observed(metadata=DELETING), SEED)


def test_nothing_but_a_deletion_is_forced() -> None:
    shoot = observed(metadata={**FORCED, "deletionTimestamp": None, "generation": 3})
    assert action(shoot, a_record()) == RunOperation(Run(operation="Reconcile", generation=3, number=2), resumed=False)
