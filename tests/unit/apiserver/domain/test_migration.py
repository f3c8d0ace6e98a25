"""What a bind means to a placed shoot, and what is forbidden while its control plane moves."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.migration import (
    Course,
    admit_change,
    admit_deletion,
    admit_state,
    course_of,
    moved,
    restored_by_force,
)
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.migration_feasibility import seeds_of
from gardenbus.common.errors import Forbidden
from tests.support.builders import NOW, a_shoot

MOVING = [
    {"type": "Migrate", "state": "Processing"},
    {"type": "Migrate", "state": "Failed"},
    {"type": "Migrate", "state": "Succeeded"},
    {"type": "Migrate", "state": "Aborted"},
    {"type": "Restore", "state": "Processing"},
    {"type": "Restore", "state": "Error"},
    {"type": "Restore"},
]
OPERATIONS = [None, {"type": "Restore", "state": "Succeeded"}, {"type": "Reconcile", "state": "Failed"}]


def on(wanted: str, actual: str = "", operation: Document | None = None, **changes: Any) -> Document:
    status = {"seedName": actual or None, "lastOperation": operation}
    return a_shoot(spec={"seedName": wanted}, status={k: v for k, v in status.items() if v}, **changes)


@pytest.mark.parametrize(
    ("shoot", "seed", "force", "course"),
    [
        (on("a"), "a", False, "unchanged"),
        (on("a", "a"), "a", False, "unchanged"),
        (on("a", "a"), "a", True, "unchanged"),
        (on("b", "a"), "b", False, "unchanged"),
        (on("a"), "b", False, "move"),
        (on("a", "a"), "b", False, "move"),
        (on("b", "a"), "c", False, "move"),
        (on("b", "a"), "a", False, "back"),
        (on("b", "a", MOVING[0]), "b", True, "restore"),
        (on("b", "a", MOVING[0]), "a", True, "restore"),
        (on("b", "a", MOVING[0]), "c", True, "restore"),
        (on("b", "b", MOVING[4]), "c", True, "restore"),
        (on("a", "a"), "b", True, "restore"),
        (on("a", "a", metadata={"deletionTimestamp": NOW}), "b", True, "restore"),
    ],
)
def test_a_bind_of_a_placed_shoot_has_its_course(shoot: Document, seed: str, force: bool, course: Course) -> None:
    assert course_of(shoot, seed, force=force) == course


@pytest.mark.parametrize("operation", MOVING)
def test_a_moving_shoot_gets_no_other_target_and_does_not_turn_back(operation: Document) -> None:
    for shoot, seed in ((on("b", "a", operation), "c"), (on("b", "a", operation), "a"), (on("b", "b", operation), "a")):
        with pytest.raises(Forbidden, match=f"moving .*to b .*{operation['type']}.* force: true"):
            course_of(shoot, seed, force=False)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_standing_shoot_may_move(operation: Document | None) -> None:
    assert course_of(on("a", "a", operation), "b", force=False) == "move"


def test_a_shoot_that_is_deleted_stays_and_one_that_nobody_runs_is_not_restored() -> None:
    with pytest.raises(Forbidden, match="being deleted"):
        course_of(on("a", "a", metadata={"deletionTimestamp": NOW}), "b", force=False)
    with pytest.raises(Forbidden, match="without force"):
        course_of(on("a"), "b", force=True)


def test_a_move_changes_the_seed_name_alone() -> None:
    shoot = on("a", "a", OPERATIONS[1])
    assert moved(shoot, "b") == {**shoot, "spec": {**shoot["spec"], "seedName": "b"}}


def test_a_restoration_by_force_leaves_the_failure_behind() -> None:
    shoot = on("b", "a", MOVING[1])
    shoot["status"] |= {"lastErrors": [{"description": "x"}], "retryCycleStartTime": NOW, "technicalID": "t"}
    restored = restored_by_force(shoot, "c", now=NOW)

    assert seeds_of(restored) == ("c", "c")
    assert restored["status"].keys() == {"seedName", "lastOperation", "technicalID"}
    assert restored["status"]["lastOperation"].items() >= {"type": "Migrate", "state": "Aborted", "progress": 0}.items()
    assert restored["metadata"]["labels"]["shoot.gardener.cloud/status"] == "unhealthy"


def test_a_restoration_needs_a_state_of_this_very_shoot() -> None:
    shoot = on("a", "a", metadata={"uid": "1", "creationTimestamp": "2026-01-02T00:00:00Z"})
    state: Document = {"metadata": {"creationTimestamp": "2026-01-03T00:00:00Z"}}
    admit_state(shoot, state)
    admit_state(shoot, {"metadata": {**state["metadata"], "ownerReferences": [{"kind": "Shoot", "uid": "1"}]}})
    with pytest.raises(Forbidden, match="garden-dev/apollo not found"):
        admit_state(shoot, None)
    for other in (
        {"creationTimestamp": "2026-01-01T00:00:00Z"},
        {**state["metadata"], "ownerReferences": [{"kind": "Shoot", "uid": "2"}]},
    ):
        with pytest.raises(Forbidden, match="another shoot"):
            admit_state(shoot, {"metadata": other})


@pytest.mark.parametrize("operation", MOVING)
def test_the_spec_of_a_moving_shoot_is_frozen_and_it_is_not_deleted(operation: Document) -> None:
    shoot = on("b", "b", operation)
    admit_change({**shoot, "metadata": {**shoot["metadata"], "labels": {"a": "b"}}}, shoot)
    with pytest.raises(Forbidden, match=r"^spec: cannot be changed while the control plane moves"):
        admit_change({**shoot, "spec": {**shoot["spec"], "purpose": "production"}}, shoot)
    with pytest.raises(Forbidden, match="cannot be deleted while"):
        admit_deletion(shoot)
    admit_deletion({**shoot, "metadata": {**shoot["metadata"], "deletionTimestamp": NOW}})
    admit_deletion({**shoot, "kind": "Seed"})


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_shoot_that_is_about_to_move_is_frozen_too_but_may_be_deleted(operation: Document | None) -> None:
    about_to, placed = on("b", "a", operation), on("a", "a", operation)
    changed = {"purpose": "production"}
    with pytest.raises(Forbidden, match="bound to seed b and still stands on a"):
        admit_change({**about_to, "spec": {**about_to["spec"], **changed}}, about_to)
    admit_deletion(about_to)
    admit_change({**placed, "spec": {**placed["spec"], **changed}}, placed)
    unclaimed = on("b", "", operation)
    admit_change({**unclaimed, "spec": {**unclaimed["spec"], **changed}}, unclaimed)
