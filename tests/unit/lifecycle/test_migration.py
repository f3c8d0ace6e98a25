"""Readiness of a destination seed, and the finalizer of a ShootState."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.document import Document
from gardenbus.lifecycle.domain.migration import (
    STATE_FINALIZER,
    affects_readiness,
    destination_readiness,
    is_moving,
    needs_state,
    with_readiness,
    with_state_finalizer,
    without_readiness,
)
from tests.support.builders import NOW, a_condition, a_seed, a_shoot, merged

INSTANT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def a_destination(**changes: Any) -> Document:
    default = a_seed(
        "aws-eu2",
        metadata={"generation": 2},
        status={
            "observedGeneration": 2,
            "gardener": {"version": "1.2.3"},
            "conditions": [a_condition("GardenletReady"), a_condition("SeedSystemComponentsHealthy")],
        },
    )
    return merged(default, changes)


SOURCE = a_seed(status={"gardener": {"version": "1.2.3"}})


@pytest.mark.parametrize(
    ("destination", "status", "reason", "reports"),
    [
        (a_destination(), "True", "DestinationSeedReady", "is ready"),
        (a_destination(metadata={"deletionTimestamp": NOW}), "False", "DestinationSeedInDeletion", "deleted"),
        (None, "False", "DestinationSeedUnready", "not there"),
        (a_destination(status={"gardener": {"version": "1.2.4"}}), "False", "DestinationSeedUnready", "1.2.4"),
        (a_destination(metadata={"generation": 3}), "False", "DestinationSeedUnready", "latest spec"),
        (
            a_destination(status={"conditions": [a_condition("GardenletReady")]}),
            "False",
            "DestinationSeedUnready",
            "SeedSystemComponentsHealthy is missing",
        ),
        (
            a_destination(status={"conditions": [a_condition("GardenletReady", "Unknown")]}),
            "False",
            "DestinationSeedUnready",
            "GardenletReady is Unknown",
        ),
    ],
)
def test_when_a_destination_is_ready(destination: Document | None, status: str, reason: str, reports: str) -> None:
    readiness = destination_readiness("aws-eu2", destination, SOURCE)

    assert (readiness.status, readiness.reason) == (status, reason)
    assert reports in readiness.message


def test_a_source_that_says_no_version_asks_for_none() -> None:
    assert destination_readiness("aws-eu2", a_destination(), None).status == "True"


def moving(**changes: Any) -> Document:
    return a_shoot(spec={"seedName": "aws-eu2"}, status={"seedName": "aws-eu1"} | changes)


def constraint(shoot: Document | None) -> Document:
    assert shoot is not None
    found = get_condition(conditions_of(shoot, "constraints"), "ReadyForMigration")
    assert found is not None
    return found


def test_the_constraint_is_written_when_the_verdict_or_the_destination_differs() -> None:
    other = {"type": "HibernationPossible", "status": "True"}
    ready, unready = (
        destination_readiness("aws-eu2", a_destination(), None),
        destination_readiness("aws-eu2", None, None),
    )
    first = with_readiness(moving(constraints=[other]), unready, INSTANT)
    assert first is not None
    assert conditions_of(first, "constraints")[0] == other
    assert constraint(first)["status"] == "False"
    still_unready = destination_readiness("aws-eu2", a_destination(metadata={"generation": 3}), None)
    assert with_readiness(first, still_unready, INSTANT) is None
    second = with_readiness(first, ready, INSTANT)
    assert constraint(second)["status"] == "True"
    assert second is not None
    assert with_readiness(second, ready, INSTANT) is None
    third = with_readiness(second, destination_readiness("aws-eu3", a_destination(), None), INSTANT)
    assert "aws-eu3" in constraint(third)["message"]
    assert conditions_of(without_readiness(second) or {}, "constraints") == [other]
    assert without_readiness(moving()) is None
    assert "constraints" not in (without_readiness(with_readiness(moving(), ready, INSTANT) or {}) or {})["status"]


def test_a_shoot_moves_between_two_seeds_only() -> None:
    assert is_moving(moving())
    assert not is_moving(a_shoot())
    assert not is_moving(a_shoot(spec={"seedName": "aws-eu2"}))
    assert not is_moving(moving(seedName="aws-eu2"))


@pytest.mark.parametrize(
    ("kind", "state", "expected"),
    [
        ("Migrate", "Processing", True),
        ("Migrate", "Succeeded", True),
        ("Migrate", "Aborted", True),
        ("Restore", "Error", True),
        ("Restore", "Succeeded", False),
        ("Reconcile", "Processing", False),
    ],
)
def test_when_the_state_is_needed(kind: str, state: str, expected: bool) -> None:
    assert needs_state(moving(lastOperation={"type": kind, "state": state})) is expected


def test_the_state_is_held_and_let_go_once() -> None:
    state: Document = {"kind": "ShootState", "metadata": {"name": "apollo", "finalizers": ["other"]}}
    held = with_state_finalizer(state, held=True)
    assert held is not None
    assert held["metadata"]["finalizers"] == ["other", STATE_FINALIZER]
    assert with_state_finalizer(held, held=True) is None
    assert (with_state_finalizer(held, held=False) or {})["metadata"]["finalizers"] == ["other"]
    assert with_state_finalizer(state, held=False) is None
    assert with_state_finalizer(merged(state, {"metadata": {"deletionTimestamp": NOW}}), held=True) is None


def test_only_what_bears_on_readiness_matters() -> None:
    seed = a_destination()
    assert not affects_readiness(seed, merged(seed, {"status": {"allocatable": {"shoots": "1"}}}))
    assert affects_readiness(seed, merged(seed, {"metadata": {"deletionTimestamp": NOW}}))
    assert affects_readiness(seed, merged(seed, {"status": {"conditions": []}}))
    assert affects_readiness(seed, None)
    assert affects_readiness(None, seed)
