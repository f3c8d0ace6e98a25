"""What is to be done for a shoot, row by row of the tables."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardenbus.common.resources.document import Document
from gardenbus.gardenlet.decide.flows import OperationType
from gardenbus.gardenlet.decide.operations import (
    Action,
    Begin,
    Claim,
    Later,
    NothingBuilt,
    RepeatReport,
    SeedFitness,
    SeedUnfit,
    ShootTold,
    Snapshot,
    adopted,
    next_action,
    operation_type,
)
from gardenbus.gardenlet.decide.record import Run, ShootRecord
from tests.support.builders import NOW, a_shoot, merged

INSTANT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SEED = "aws-eu1"
VERSION = "1.2.3"


def told(*, role: str = "run", version: int = 7, **changes: Any) -> ShootTold:
    """A shoot of generation 2 that this seed has claimed."""
    default = a_shoot(
        metadata={"uid": "u1", "generation": 2, "finalizers": ["gardener"]},
        spec={"seedName": SEED},
        status={"seedName": SEED},
    )
    return ShootTold.of(merged(default, changes), uid="u1", version=version, role=role)


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
    shoot: ShootTold,
    record: ShootRecord | None = None,
    *,
    fitness: SeedFitness | None = None,
    later_by: float = 0,
    respect_ignore: bool = False,
    has_state: bool = False,
) -> Action:
    snapshot = Snapshot(
        seed_name=SEED,
        fitness=fitness or SeedFitness(),
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
    assert action(told(status={"seedName": None})) == Claim()


def test_a_claimed_shoot_is_created() -> None:
    assert action(told()) == Begin(Run(operation="Create", generation=2, number=1), resumed=False)


@pytest.mark.parametrize(
    "shoot",
    [
        told(role="wait"),
        told(role="migrate-away"),
        told(status={"seedName": "other"}),
        told(spec={"seedName": "other"}),
    ],
)
def test_what_is_anothers_is_left_alone(shoot: ShootTold) -> None:
    assert action(shoot) == Later("not responsible")


def test_a_shoot_that_was_never_begun_is_let_go() -> None:
    assert action(told(metadata=DELETING, status={"seedName": None})) == NothingBuilt()


def test_without_the_finalizer_nothing_is_deleted() -> None:
    assert action(told(metadata=DELETING | {"finalizers": []}), a_record()) == Later("no finalizer")


def test_a_deletion_ends_what_failed_before() -> None:
    started = action(told(metadata=DELETING | {"generation": 3}), a_record(state="Failed", attempts=4))

    assert started == Begin(Run(operation="Delete", generation=3, number=2), resumed=False)


def test_a_deletion_starts_without_waiting_for_a_backoff() -> None:
    record = a_record(state="Error", retry_at=INSTANT + timedelta(minutes=5))

    assert isinstance(action(told(metadata=DELETING), record), Begin)


def test_a_finished_deletion_is_said_again() -> None:
    assert action(told(metadata=DELETING), a_record("Delete")) == RepeatReport()


@pytest.mark.parametrize("state", ["Processing", "Error"])
def test_a_run_that_was_cut_or_failed_goes_on_where_it_stood(state: str) -> None:
    assert action(told(), a_record(state=state)) == Begin(
        Run(operation="Create", generation=2, number=1, done=("namespace",)), resumed=True
    )


def test_a_new_generation_starts_the_run_anew() -> None:
    begun = action(told(metadata={"generation": 3}), a_record(state="Error"))

    assert begun == Begin(Run(operation="Create", generation=3, number=2), resumed=False)


def test_what_failed_for_good_waits_for_a_new_generation() -> None:
    assert action(told(), a_record(state="Failed")) == Later("failed")
    assert isinstance(action(told(metadata={"generation": 3}), a_record(state="Failed")), Begin)


def test_what_failed_for_good_is_tried_again_by_another_version_of_the_gardenlet() -> None:
    failed = a_record(state="Failed")
    by_another = a_record(state="Failed", status=failed.status | {"gardener": {"version": "1.2.2"}})
    by_this = a_record(state="Failed", status=failed.status | {"gardener": {"version": VERSION}})

    assert action(told(), by_another) == Begin(Run(operation="Create", generation=2, number=2), resumed=False)
    assert action(told(), by_this) == Later("failed")


def test_a_failed_run_waits_for_its_backoff() -> None:
    record = a_record(state="Error", retry_at=INSTANT + timedelta(seconds=8))

    assert action(told(), record, later_by=3) == Later("backoff", 5)
    assert isinstance(action(told(), record, later_by=8), Begin)
    assert isinstance(action(told(metadata={"generation": 3}), record, later_by=3), Begin)


def test_a_settled_shoot_waits_for_its_sync() -> None:
    assert action(told(), a_record(), later_by=600) == Later("settled", 3000)
    assert action(told(), a_record(), later_by=3601) == Begin(
        Run(operation="Reconcile", generation=2, number=2), resumed=False
    )


def test_a_shoot_of_which_nothing_is_kept_is_reconciled_at_once() -> None:
    shoot = told(status={"lastOperation": operation("Create", "Succeeded"), "observedGeneration": 2})

    assert action(shoot) == Begin(Run(operation="Reconcile", generation=2, number=1), resumed=False)


def test_an_emergency_stop_holds_everything() -> None:
    for shoot in (told(), told(metadata=DELETING)):
        assert action(shoot, fitness=SeedFitness("not ready", is_stopped=True)) == Later("emergency stop")


def test_an_unfit_seed_postpones_what_would_begin_only() -> None:
    unfit = SeedFitness("condition GardenletReady is not True.")

    assert action(told(), fitness=unfit) == SeedUnfit("Create", "condition GardenletReady is not True.")
    assert action(told(), a_record(), fitness=unfit, later_by=60) == Later("settled", 3540)


def test_ignoring_counts_in_the_garden_namespace_or_where_it_is_allowed() -> None:
    ignored = {"annotations": {"shoot.gardener.cloud/ignore": "true"}}

    assert isinstance(action(told(metadata=ignored)), Begin)
    assert action(told(metadata=ignored), respect_ignore=True) == Later("ignored")
    assert action(told(metadata=ignored | {"namespace": "garden"})) == Later("ignored")


def test_an_unreadable_time_counts_as_now() -> None:
    status = {"lastOperation": operation("Create", "Succeeded") | {"lastUpdateTime": "soon"}, "observedGeneration": 2}

    assert action(told(), a_record(status=status)) == Later("settled", 3600)


def test_what_is_adopted_knows_the_status_but_not_a_refused_scheduling() -> None:
    status = {
        "technicalID": "shoot--dev--old",
        "observedGeneration": 1,
        "lastOperation": operation("Create", "Pending"),
    }
    record = adopted(told(status=status | {"unknown": 1}))

    assert record.status == {"technicalID": "shoot--dev--old", "observedGeneration": 1, "seedName": SEED}
