"""Annotations that ask for an operation."""

from typing import Any

import pytest

from gardenbus.apiserver.reconcilers.operations import OPERATION, operate
from tests.support.builders import a_seed, a_shoot

SUCCEEDED = {"type": "Reconcile", "state": "Succeeded"}
FAILED = {"type": "Reconcile", "state": "Failed"}


def annotated(operation: str, **status: Any) -> dict[str, Any]:
    return a_shoot(metadata={"annotations": {OPERATION: operation, "team": "a"}}, status=status)


def test_reconcile_raises_the_generation_and_is_taken_off() -> None:
    operated = operate(a_shoot(), annotated("reconcile", lastOperation=SUCCEEDED))

    assert operated.bumps
    assert operated.document["metadata"]["annotations"] == {"team": "a"}


def test_retry_counts_only_while_failed() -> None:
    assert operate(a_shoot(), annotated("retry", lastOperation=FAILED)).bumps
    assert not operate(a_shoot(), annotated("retry", lastOperation=SUCCEEDED)).bumps
    assert not operate(a_shoot(), annotated("reconcile", lastOperation=FAILED)).bumps


def test_nothing_counts_before_there_is_an_operation() -> None:
    shoot = annotated("reconcile")

    assert operate(a_shoot(), shoot) == (shoot, False)


def test_a_rotation_counts_once_and_stays() -> None:
    rotating = annotated("rotate-credentials-start", lastOperation=SUCCEEDED)

    assert operate(a_shoot(), rotating) == (rotating, True)
    assert operate(rotating, rotating) == (rotating, False)


def test_a_new_object_is_left_alone() -> None:
    shoot = annotated("reconcile", lastOperation=SUCCEEDED)

    assert operate(None, shoot) == (shoot, False)


@pytest.mark.parametrize("kind", ["Seed", "ManagedSeed"])
def test_seeds_and_managed_seeds_are_reconciled_on_request(kind: str) -> None:
    document = a_seed(kind=kind, metadata={"annotations": {OPERATION: "reconcile"}})
    operated = operate(document, document)

    assert operated.bumps
    assert "annotations" not in operated.document["metadata"]
