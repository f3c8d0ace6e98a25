"""The simulation in small: schedules in which everything holds, repeated exactly, and mutants that it finds.

It runs in a process of its own, whose sets have the same order every time: a seed printed here repeats there.
"""

import os
import subprocess
import sys

import pytest

from tests.simulation.mutants import MUTANTS

SCHEDULES = 399
MUTANT_SCHEDULES = 1000


def simulated(*arguments: str) -> tuple[int, list[str]]:
    """Exit code and lines of a run."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    return ended.returncode, (ended.stdout + ended.stderr).splitlines()


def test_everything_holds_in_every_order_of_events() -> None:
    code, lines = simulated("--schedules", str(SCHEDULES), "--seed", "100000")
    assert code == 0, lines
    assert lines[-1].startswith(f"{SCHEDULES} schedules, ")
    assert lines[-1].endswith(f"; seeds 100000 to {99_999 + SCHEDULES // 3}"), "three schedules on each landscape"


def test_a_seed_repeats_its_schedule_exactly() -> None:
    code, lines = simulated("--schedules", "9", "--seed", "4000", "--check")
    assert code == 0, lines
    first, second = (simulated("--schedules", "1", "--seed", "4711", "--trace")[1][:-1] for _ in range(2))
    assert len(first) > 50
    assert first == second


@pytest.mark.long
def test_every_precaution_that_is_taken_out_is_missed() -> None:
    code, lines = simulated("--mutants", "often", "--schedules", str(MUTANT_SCHEDULES))
    assert code == 0, lines
    assert len(lines) == len(MUTANTS) >= 16
