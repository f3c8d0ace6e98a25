"""`gardenbus simulate` with a supposition: what it prints, what it asks, and that nothing is written."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from gardenbus.cli.commands import options
from gardenbus.cli.main import app
from gardenbus.common.api.document import Document
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.fake_api import FakeApi

BASE = (a_cloudprofile(), a_project())
READS = {"list", "explain", "get"}


def written(path: Path, *documents: Document) -> str:
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


def reported(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["simulate", *words])
    assert result.exit_code == code, result.output
    return result.output


def rows(output: str) -> list[str]:
    return [" ".join(line.split()) for line in output.splitlines() if line]


def test_the_difference_is_shown_by_shoot_and_by_seed(tmp_path: Path) -> None:
    placed = a_shoot("old", spec={"seedName": "a"}, status={"seedName": "a"})
    file = written(tmp_path / "now.yaml", *BASE, a_seed("a", shoots="2"), placed, a_shoot("waits"))
    lines = rows(reported("-f", file, "--cordon", "a", "--shoots", "3", "--like", "garden-dev/old"))
    assert lines == [
        "with a cordoned and 3 more shoots like garden-dev/old: 0 pending now, 4 then (strategy SameRegion)",
        "SHOOT SEED THEN ON WHY NOT",
        "garden-dev/waits a <none> none of the 1 seeds is schedulable: 1 cordoned",
        "NEW SHOOTS THEN ON WHY NOT",
        "3 like garden-dev/old <none> none of the 1 seeds is schedulable: 1 cordoned",
        "SEED USED THEN ALLOCATABLE FILL CHANGE",
        "a 2 1 2 100% → 50% cordoned",
        "dry run: nothing was changed",
    ]


def test_a_seed_is_added_as_if_its_gardenlet_kept_it(tmp_path: Path) -> None:
    file = written(tmp_path / "now.yaml", *BASE, a_shoot("waits"))
    new = written(tmp_path / "new.yaml", a_seed("new", ready=False))
    found = json.loads(reported("-f", file, "--add-seed", new, "-o", "json"))
    assert found["shoots"] == [
        {"shoot": "garden-dev/waits", "before": None, "after": "new", "message": None, "isNew": False}
    ]
    assert found["seeds"][0]["change"] == "added"
    assert reported("-f", file, "--add-seed", new, "-o", "name") == "garden-dev/waits new\n"
    assert "no Seed and no GardenletConfiguration" in reported("-f", file, "--add-seed", file, code=2)


def test_landscapes_of_files_are_simulated_as_ever(tmp_path: Path) -> None:
    file = written(tmp_path / "now.yaml", *BASE, a_seed("a"), a_shoot("waits"))
    assert reported("--strategy", "MinimalDistance", file, "-o", "name") == "garden-dev/waits a\n"
    assert "Missing argument" in reported("landscapes", code=2)
    assert "--like go together" in reported("-f", file, "--shoots", "3", code=2)
    assert "--shoots" in reported("-f", file, "--shoots", "2000000000", "--like", "waits", code=2)
    assert "there is no seed x" in reported("-f", file, "--cordon=x", code=2)


@pytest.mark.parametrize(
    "words",
    [["--cordon", "a"], ["--cordon", "seed/a"], ["--strategy", "MinimalDistance"], ["what-if"]],
)
def test_the_live_landscape_is_only_read(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    bus = FakeApi(*BASE, a_seed("a"), a_shoot("waits"))
    before = dict(bus.objects)
    monkeypatch.setattr(options, "connected", bus.connected)
    reported(*words, "--nats-url", "nats://127.0.0.1:1")
    assert bus.objects == before
    assert {tail.split(".")[0] for tail, _ in bus.requests} <= READS
    assert bus.requests
