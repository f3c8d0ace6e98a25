"""The status label sums a shoot up."""

from typing import Any

import pytest

from gardenbus.common.api.garden.shoot_status import shoot_status, with_status_label
from tests.support.builders import a_condition, a_shoot

FAILING, VAGUE, MOVING = a_condition("A", "False"), a_condition("B", "Unknown"), a_condition("C", "Progressing")
PROCESSING = {"type": "Reconcile", "state": "Processing"}
SUCCEEDED = {"type": "Reconcile", "state": "Succeeded"}


@pytest.mark.parametrize(
    ("status", "label"),
    [
        ({}, "healthy"),
        ({"conditions": [FAILING]}, "healthy"),
        ({"lastOperation": {"type": "Create", "state": "Pending"}}, "healthy"),
        ({"lastOperation": {"type": "Create", "state": "Error"}, "lastErrors": [{"description": "x"}]}, "unhealthy"),
        ({"lastOperation": {"type": "Delete", "state": "Succeeded"}, "conditions": [FAILING]}, "healthy"),
        ({"lastOperation": SUCCEEDED, "conditions": [a_condition("A")]}, "healthy"),
        ({"lastOperation": SUCCEEDED, "conditions": [a_condition("A"), MOVING]}, "progressing"),
        ({"lastOperation": SUCCEEDED, "conditions": [VAGUE, MOVING]}, "unknown"),
        ({"lastOperation": SUCCEEDED, "conditions": [FAILING, VAGUE]}, "unhealthy"),
        ({"lastOperation": {"type": "Reconcile", "state": "Error"}, "conditions": [a_condition("A")]}, "unhealthy"),
        ({"lastOperation": PROCESSING, "conditions": [a_condition("A")]}, "healthy"),
        ({"lastOperation": PROCESSING, "lastErrors": [{"description": "x"}]}, "unhealthy"),
    ],
)  # fmt: skip
def test_a_status_has_its_label(status: dict[str, Any], label: str) -> None:
    assert shoot_status(a_shoot(status=status)) == label


def test_a_shoot_that_has_its_label_is_left_alone() -> None:
    labelled = with_status_label(a_shoot(metadata={"labels": {"team": "a"}}))

    assert labelled["metadata"]["labels"] == {"team": "a", "shoot.gardener.cloud/status": "healthy"}
    assert with_status_label(labelled) is labelled
