import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gardenbus.scheduler.simulate import simulate

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = Path(os.environ.get("GARDENBUS_SHARED", ROOT.parent / "shared")) / "golden"


@cache
def expectations() -> list[dict[str, Any]]:
    expected = GOLDEN / "expected.jsonl"
    if not expected.exists():
        return []
    return [json.loads(line) for line in expected.read_text().splitlines()]


@pytest.mark.parametrize("expected", expectations(), ids=lambda expected: expected["landscape"])
def test_every_shoot_gets_the_seed_that_gardeners_scheduler_chose(expected: dict[str, Any]) -> None:
    landscape = json.loads((GOLDEN / expected["landscape"]).read_text())
    placements = simulate([landscape], expected["strategy"])
    assert {placement.shoot: placement.seed for placement in placements} == {
        placement["shoot"]: placement["seed"] for placement in expected["placements"]
    }
    assert [placement.shoot for placement in placements] == [placement["shoot"] for placement in expected["placements"]]
    assert all((placement.seed is None) == bool(placement.message) for placement in placements)


def test_the_golden_decisions_are_at_hand() -> None:
    if not expectations():
        if "GARDENBUS_SHARED" in os.environ:
            pytest.fail(f"no golden decisions in {GOLDEN}, where GARDENBUS_SHARED says that they are")
        pytest.skip(f"no golden decisions in {GOLDEN}; GARDENBUS_SHARED may say where they are")
    assert len(expectations()) >= 60
