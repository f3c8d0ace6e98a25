"""`.ci/tests` runs a few failed tests once more, and names those that failed only the first time."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.eventually import HANG_SECONDS

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / ".ci" / "tests"

LATE = """
from pathlib import Path

def test_late():
    seen = Path(__file__).with_name("seen")
    was_there = seen.exists()
    seen.touch()
    assert was_there

def test_fine():
    assert not Path(__file__).with_name("fine").exists()
    Path(__file__).with_name("fine").touch()
"""
BROKEN = "def test_broken():\n    assert False\n"


def run(folder: Path, **files: str) -> "tuple[int, list[str], str]":
    """Run a folder of tests: the exit code, the tests listed as flaky, and the log of the first run."""
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = docker: needs an engine\n")
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    artefacts = folder.with_name("artefacts")
    done = subprocess.run(
        [str(SCRIPT), str(folder), sys.executable, "-m", "pytest", "-q", str(folder)],
        env={
            **os.environ,
            "GARDENBUS_ARTEFACTS": str(artefacts),
            "PYTEST_ADDOPTS": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    flaky = artefacts / "flaky.txt"
    return (
        done.returncode,
        flaky.read_text().split() if flaky.exists() else [],
        (artefacts / "tests-first-run.log").read_text(),
    )


def test_a_test_that_fails_only_the_first_time_passes_and_is_named(tmp_path: Path):
    code, flaky, first_run = run(tmp_path / "tests", test_some=LATE)

    assert code == 0
    assert flaky == ["test_some.py::test_late"]
    assert "1 failed, 1 passed" in first_run


def test_tests_of_containers_are_run_again_too(tmp_path: Path):
    marked = LATE.replace("def test_late", "import pytest\n\n@pytest.mark.docker\ndef test_late")

    code, flaky, _ = run(tmp_path / "tests", test_some=marked)

    assert code == 0
    assert flaky == ["test_some.py::test_late"]


def test_a_test_that_fails_again_fails_the_run(tmp_path: Path):
    code, flaky, _ = run(tmp_path / "tests", test_some=LATE, test_other=BROKEN)

    assert code != 0
    assert flaky == []


def test_many_failures_are_not_run_again(tmp_path: Path):
    tests = {
        f"test_{each}": LATE.replace('"seen"', f'"seen{each}"').replace("fine", f"fine{each}") for each in range(4)
    }

    code, flaky, _ = run(tmp_path / "tests", **tests)

    assert code != 0
    assert flaky == []


def test_nothing_is_named_when_all_passes(tmp_path: Path):
    code, flaky, _ = run(tmp_path / "tests", test_some="def test_fine():\n    pass\n")

    assert (code, flaky) == (0, [])


def test_a_run_that_broke_off_fails(tmp_path: Path):
    ends = "import pytest\n\ndef test_ends():\n    pytest.exit('enough')\n"

    code, flaky, _ = run(tmp_path / "tests", test_1=LATE, test_2=ends)

    assert code != 0
    assert flaky == []


def test_what_cannot_be_collected_fails_the_run(tmp_path: Path):
    code, flaky, _ = run(tmp_path / "tests", test_some="import nothing_of_that_name\n")

    assert code != 0
    assert flaky == []
