"""Annotations that ask for an operation."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.operations import accept_operation, is_rollout_confined
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.shoot_operations import OPERATION
from tests.support.builders import a_seed, a_shoot, merged

SUCCEEDED = {"type": "Reconcile", "state": "Succeeded"}
FAILED = {"type": "Reconcile", "state": "Failed"}


def annotated(operation: str, **status: Any) -> dict[str, Any]:
    return a_shoot(metadata={"annotations": {OPERATION: operation, "team": "a"}}, status=status)


def test_reconcile_raises_the_generation_and_is_taken_off() -> None:
    operated = accept_operation(a_shoot(), annotated("reconcile", lastOperation=SUCCEEDED))

    assert operated.bumps_generation
    assert operated.document["metadata"]["annotations"] == {"team": "a"}


def test_retry_counts_only_while_failed() -> None:
    assert accept_operation(a_shoot(), annotated("retry", lastOperation=FAILED)).bumps_generation
    assert not accept_operation(a_shoot(), annotated("retry", lastOperation=SUCCEEDED)).bumps_generation
    assert not accept_operation(a_shoot(), annotated("reconcile", lastOperation=FAILED)).bumps_generation


def test_nothing_counts_before_there_is_an_operation() -> None:
    shoot = annotated("reconcile")

    assert accept_operation(a_shoot(), shoot) == (shoot, False)


def test_a_rotation_counts_once_and_stays() -> None:
    rotating = annotated("rotate-credentials-start", lastOperation=SUCCEEDED)

    assert accept_operation(a_shoot(), rotating) == (rotating, True)
    assert accept_operation(rotating, rotating) == (rotating, False)


def test_a_new_object_is_left_alone() -> None:
    shoot = annotated("reconcile", lastOperation=SUCCEEDED)

    assert accept_operation(None, shoot) == (shoot, False)


@pytest.mark.parametrize(
    ("requested", "state", "left", "bumps"),
    [
        ("rotate-ssh-keypair;reconcile", "Succeeded", "rotate-ssh-keypair", True),
        ("maintain; reconcile", "Succeeded", "maintain", True),
        ("reconcile;maintain;rotate-ca-start", "Error", "maintain;rotate-ca-start", True),
        ("reconcile;reconcile", "Succeeded", None, True),
        ("maintain;maintain", "Succeeded", "maintain", False),
        ("maintain;force-in-place-update", "Succeeded", "maintain;force-in-place-update", False),
        ("reconcile;retry", "Failed", "reconcile", True),
        ("reconcile;retry", "Succeeded", "retry", True),
        ("maintain;reconcile", "Failed", "maintain;reconcile", False),
    ],
)
def test_each_of_several_operations_counts(requested: str, state: str, left: str | None, bumps: bool) -> None:
    operated = accept_operation(a_shoot(), annotated(requested, lastOperation={"type": "Reconcile", "state": state}))

    assert operated.bumps_generation is bumps
    assert operated.document["metadata"]["annotations"].get(OPERATION) == left
    assert operated.document["metadata"]["annotations"]["team"] == "a"


def test_a_rotation_among_others_counts_once() -> None:
    rotating = annotated("rotate-ca-start;rotate-ssh-keypair", lastOperation=SUCCEEDED)

    assert accept_operation(annotated("rotate-ca-start"), rotating) == (rotating, True)
    assert accept_operation(annotated("rotate-ssh-keypair;rotate-ca-start"), rotating) == (rotating, False)


@pytest.mark.parametrize("kind", ["Seed", "ManagedSeed"])
def test_seeds_and_managed_seeds_are_reconciled_on_request(kind: str) -> None:
    document = a_seed(kind=kind, metadata={"annotations": {OPERATION: "reconcile"}})
    operated = accept_operation(document, document)

    assert operated.bumps_generation
    assert "annotations" not in operated.document["metadata"]


CONFINED = a_shoot(spec={"maintenance": {"confineSpecUpdateRollout": True}}, status={"seedName": "aws-eu1"})


@pytest.mark.parametrize(
    ("old", "changes", "waits"),
    [
        (CONFINED, {"purpose": "testing"}, True),
        (CONFINED, {"hibernation": {"enabled": False}}, True),
        (CONFINED, {"hibernation": {"enabled": True}, "purpose": "testing"}, False),
        (CONFINED, {"maintenance": None}, False),
        (a_shoot(status={"seedName": "aws-eu1"}), {"maintenance": {"confineSpecUpdateRollout": True}}, True),
        (a_shoot(status={"seedName": "aws-eu1"}), {"purpose": "testing"}, False),
        (merged(CONFINED, {"status": None}), {"purpose": "testing"}, False),
    ],
)
def test_changes_of_a_confined_shoot_wait_for_its_window(old: Document, changes: Document, waits: bool) -> None:
    assert is_rollout_confined(old, merged(old, {"spec": changes})) is waits


def test_nothing_else_is_confined() -> None:
    assert not is_rollout_confined(None, CONFINED)
    assert not is_rollout_confined(a_seed(), a_seed())
