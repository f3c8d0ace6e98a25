"""The golden landscapes: what Gardener's own scheduler chose, shoot by shoot."""

from typing import Any

import pytest

from gardenbus.cli.simulate.scheduling import simulate
from tests.support.golden_decisions import expectations, manifests, required_expectations


@pytest.mark.parametrize("expected", expectations(), ids=lambda expected: expected["landscape"])
def test_every_shoot_gets_the_seed_that_gardeners_scheduler_chose(expected: dict[str, Any]) -> None:
    placements = simulate([manifests(expected)], expected["strategy"])
    assert {placement.shoot: placement.seed for placement in placements} == {
        placement["shoot"]: placement["seed"] for placement in expected["placements"]
    }
    assert [placement.shoot for placement in placements] == [placement["shoot"] for placement in expected["placements"]]
    assert all((placement.seed is None) == bool(placement.message) for placement in placements)


def test_the_golden_decisions_are_at_hand() -> None:
    assert len(required_expectations()) >= 60
