"""What a gardenlet may report."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.report_admission import (
    bumps_generation,
    check_seed_claim,
    check_shoot,
    finish_deletion,
    is_torn_down,
    reported_event,
    reported_status,
    with_bastion_finalizer,
    with_highest_observed_generation,
    with_operator_settings_kept,
    without_observed_operation,
)
from gardenbus.common.api.document_parts import FINALIZER, with_finalizer, without_finalizer
from gardenbus.common.api.garden.seed_management import CORDONED_BY, REMOVAL_ANNOTATION
from gardenbus.common.errors import BadRequest, Forbidden
from tests.support.builders import NOW, a_seed, a_shoot


def on(seed: str, actual: str = "", **status: Any) -> dict[str, Any]:
    return a_shoot(spec={"seedName": seed}, status={**({"seedName": actual} if actual else {}), **status})


@pytest.mark.parametrize(("shoot", "seed"), [(on("a"), "a"), (on("a", "a"), "a"), (on("new", "old"), "old")])
def test_the_gardenlet_where_the_shoot_stands_is_responsible(shoot: dict[str, Any], seed: str) -> None:
    check_shoot(shoot, seed, "it")
    with pytest.raises(Forbidden, match=f"belongs to seed {seed}"):
        check_shoot(shoot, "other", "it")


def test_nobody_is_responsible_for_a_shoot_without_seed() -> None:
    with pytest.raises(Forbidden, match="no seed yet"):
        check_shoot(a_shoot(), "a", "it")


def test_the_claim_is_the_only_move_of_status_seed_name() -> None:
    check_seed_claim(on("a"), {"seedName": "a"})
    check_seed_claim(on("a", "a"), {"seedName": "a"})
    check_seed_claim(on("a", "a"), {})
    for shoot, wanted in [(on("a"), "b"), (on("a", "a"), "b"), (on("a", "a"), None), (on("new", "old"), "new")]:
        with pytest.raises(Forbidden, match=r"status\.seedName"):
            check_seed_claim(shoot, {"seedName": wanted})


def test_a_prepared_migration_hands_the_shoot_over() -> None:
    migrated = {"type": "Migrate", "state": "Succeeded"}
    check_seed_claim(on("new", "old"), {"seedName": "new", "lastOperation": migrated})
    check_seed_claim(on("new", "old", lastOperation=migrated), {"seedName": "new"})
    with pytest.raises(Forbidden):
        check_seed_claim(on("new", "old", lastOperation=migrated), {"seedName": "third"})

    assert bumps_generation(on("new", "old"), on("new", "new", lastOperation=migrated))
    assert not bumps_generation(on("new", "new", lastOperation=migrated), on("new", "new", lastOperation=migrated))


@pytest.mark.parametrize(
    ("before", "reported", "after"), [(3, 4, 4), (3, 3, 3), (3, 2, 3), (3, None, 3), (None, 2, 2), (None, None, None)]
)
def test_what_was_observed_never_falls(before: int | None, reported: int | None, after: int | None) -> None:
    def status(generation: int | None) -> dict[str, Any]:
        return {"a": 1} | ({} if generation is None else {"observedGeneration": generation})

    assert with_highest_observed_generation(status(before), status(reported)) == status(after)


def test_a_complete_deletion_takes_the_finalizer_off() -> None:
    deleted = {"lastOperation": {"type": "Delete", "state": "Succeeded", "progress": 100}}
    with_finalizer = {"deletionTimestamp": NOW, "finalizers": ["gardener", "mine"]}

    assert finish_deletion(a_shoot(metadata=with_finalizer, status=deleted))["metadata"]["finalizers"] == ["mine"]
    alone = finish_deletion(a_shoot(metadata={**with_finalizer, "finalizers": ["gardener"]}, status=deleted))
    assert "finalizers" not in alone["metadata"]


@pytest.mark.parametrize(
    ("metadata", "operation"),
    [
        ({"deletionTimestamp": NOW}, {"type": "Delete", "state": "Processing", "progress": 100}),
        ({"deletionTimestamp": NOW}, {"type": "Delete", "state": "Succeeded", "progress": 90}),
        ({"deletionTimestamp": NOW}, {"type": "Reconcile", "state": "Succeeded", "progress": 100}),
        ({}, {"type": "Delete", "state": "Succeeded", "progress": 100}),
    ],
)
def test_the_finalizer_stays_until_then(metadata: dict[str, Any], operation: dict[str, Any]) -> None:
    shoot = a_shoot(metadata={"finalizers": ["gardener"], **metadata}, status={"lastOperation": operation})

    assert finish_deletion(shoot) is shoot


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "status"),
        ({"status": []}, "status"),
        ({"status": {"conditions": {}}}, r"status\.conditions"),
        ({"status": {"conditions": [{"status": "True"}]}}, r"status\.conditions\[0\]\.type"),
        ({"status": {"constraints": ["x"]}}, r"status\.constraints\[0\]\.type"),
        ({"status": {"lastOperation": "done"}}, r"status\.lastOperation"),
    ],
)
def test_a_malformed_status_is_named(body: dict[str, Any], field: str) -> None:
    with pytest.raises(BadRequest, match=field):
        reported_status(body)


def test_an_event_needs_a_type_and_a_reason() -> None:
    assert reported_event({"type": "Normal", "reason": "Started", "message": "go"}) == ("Normal", "Started", "go", "")
    for body in ({"reason": "x"}, {"type": "Error", "reason": "x"}, {"type": "Normal"}, {"type": 1, "reason": "x"}):
        with pytest.raises(BadRequest):
            reported_event(body)


def a_managed_seed(reason: str = "Reconciled", **metadata: Any) -> dict[str, Any]:
    conditions = [{"type": "SeedRegistered", "status": "False", "reason": reason}]
    return {"kind": "ManagedSeed", "metadata": metadata, "status": {"conditions": conditions}}


def test_a_gardenlet_holds_the_managed_seed_that_it_reports_on() -> None:
    held_one = with_finalizer(a_managed_seed(finalizers=["mine"]), FINALIZER)
    assert held_one["metadata"]["finalizers"] == ["mine", "gardener"]
    assert with_finalizer(held_one, FINALIZER) is held_one
    assert "finalizers" not in with_finalizer(a_managed_seed(deletionTimestamp=NOW), FINALIZER)["metadata"]


def test_a_wish_to_be_reconciled_goes_when_it_has_been_observed() -> None:
    wish = {"gardener.cloud/operation": "reconcile"}
    wished = a_managed_seed(generation=2, annotations={**wish, "a": "b"})
    observed = {**wished, "status": {"observedGeneration": 2}}

    assert without_observed_operation(wished) is wished
    assert without_observed_operation(observed)["metadata"] == {"generation": 2, "annotations": {"a": "b"}}
    alone = {**a_managed_seed(generation=2, annotations=wish), "status": {"observedGeneration": 2}}
    assert without_observed_operation(alone)["metadata"] == {"generation": 2}


def test_a_managed_seed_goes_when_nothing_is_left_of_it() -> None:
    assert is_torn_down(a_managed_seed("Deleted", deletionTimestamp=NOW))
    assert not is_torn_down(a_managed_seed("Deleted"))
    assert not is_torn_down(a_managed_seed("Deleting", deletionTimestamp=NOW))
    assert not is_torn_down({"metadata": {"deletionTimestamp": NOW}})
    assert without_finalizer(a_managed_seed(finalizers=["gardener", "mine"]), FINALIZER)["metadata"] == {
        "finalizers": ["mine"]
    }
    assert without_finalizer(a_managed_seed(finalizers=["gardener"]), FINALIZER)["metadata"] == {}


def test_the_mark_for_removal_is_not_a_gardenlets():
    marked = a_seed(metadata={"annotations": {REMOVAL_ANNOTATION: "garden/set"}})

    assert REMOVAL_ANNOTATION not in with_operator_settings_kept(a_seed(), marked)["metadata"]["annotations"]
    assert REMOVAL_ANNOTATION not in with_operator_settings_kept(None, marked)["metadata"]["annotations"]
    assert with_operator_settings_kept(marked, a_seed())["metadata"]["annotations"] == {
        REMOVAL_ANNOTATION: "garden/set"
    }


def test_a_gardenlet_that_registers_anew_does_not_undo_a_cordon():
    cordoned = a_seed(
        metadata={"annotations": {CORDONED_BY: "operator"}}, spec={"settings": {"scheduling": {"visible": False}}}
    )

    registered = with_operator_settings_kept(cordoned, a_seed())
    assert registered["spec"]["settings"]["scheduling"] == {"visible": False}
    assert registered["metadata"]["annotations"] == {CORDONED_BY: "operator"}
    assert with_operator_settings_kept(a_seed(), a_seed()) == a_seed()
    assert with_operator_settings_kept(None, cordoned)["metadata"]["annotations"] == {}


def test_a_bastion_has_its_gardenlets_finalizer_from_the_first_report_to_the_last() -> None:
    bastion = {"kind": "Bastion", "metadata": {"name": "door"}, "status": {}}
    held = with_bastion_finalizer(bastion)
    assert held["metadata"]["finalizers"] == [FINALIZER]
    going = {**held, "metadata": {**held["metadata"], "deletionTimestamp": NOW}}
    assert with_bastion_finalizer(going) == going
    gone = {**going, "status": {"conditions": [{"type": "BastionReady", "status": "False", "reason": "Deleted"}]}}
    assert not with_bastion_finalizer(gone)["metadata"].get("finalizers")
    late = {**bastion, "metadata": {"name": "door", "deletionTimestamp": NOW}}
    assert with_bastion_finalizer(late) == late, "what is being deleted gets none"
