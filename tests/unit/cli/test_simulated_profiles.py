"""`simulate` by the profiles of files, by presets, and by one of another file; and the page about profiles."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from gardenbus.cli.main import app
from gardenbus.common.api.configuration.scheduler import parse_configuration
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "scheduling-profiles.md").read_text()
EXAMPLE = ROOT / "examples" / "profiles" / "scheduler.yaml"
HEAD = {"apiVersion": "scheduler.config.gardener.cloud/v1alpha1", "kind": "SchedulerConfiguration"}
MOST = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "shoots"}]}}


def packing(name: str) -> dict[str, Any]:
    plugins = {"score": {"enabled": [{"name": "SeedResourcesFit"}]}}
    return {"schedulerName": name, "plugins": plugins, "pluginConfig": [{"name": "SeedResourcesFit", "args": MOST}]}


def written(folder: Path, *profiles: dict[str, Any]) -> str:
    seeds = [a_seed("a", shoots="90"), a_seed("b", shoots="9")]
    shoots = [
        a_shoot("one"),
        a_shoot("two", spec={"schedulerName": "packed"}),
        a_shoot("three", spec={"schedulerName": "x"}),
    ]
    configuration = [{**HEAD, "profiles": list(profiles)}] if profiles else []
    file = folder / "landscape.yaml"
    file.write_text(yaml.safe_dump_all([*seeds, *shoots, a_cloudprofile(), a_project(), *configuration]))
    return str(file)


def simulated(*words: str) -> list[str]:
    result = CliRunner().invoke(app, ["simulate", *words, "-o", "name"])
    assert result.exit_code == 0, result.output
    return [line.removeprefix("garden-dev/") for line in result.stdout.splitlines()]


def test_shoots_are_scheduled_by_the_profile_that_their_scheduler_has_in_the_file(tmp_path: Path) -> None:
    assert simulated(written(tmp_path)) == ["one a", "two -", "three -"]
    assert simulated(written(tmp_path, packing("packed"))) == ["one a", "two b", "three -"]
    assert simulated(written(tmp_path, {"schedulerName": "packed"}, packing("default-scheduler"))) == [
        "one b", "two a", "three -"
    ]  # fmt: skip


def test_one_profile_schedules_all_shoots_whichever_scheduler_they_name(tmp_path: Path) -> None:
    file = written(tmp_path, packing("packed"), {"schedulerName": "plain"})
    assert simulated(file, "--profile", "packed") == ["one b", "two b", "three b"]
    assert simulated(file, "--profile", "plain") == ["one a", "two b", "three a"]
    assert simulated(file, "--profile", "spread") == ["one a", "two a", "three a"]
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "scheduler.yaml"
    other.write_text(yaml.safe_dump({**HEAD, "profiles": [packing("one"), {"schedulerName": "two"}]}))
    assert simulated(file, "--profile", f"{other}:one") == ["one b", "two b", "three b"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("nothing", "there are packed, spread, binpack, and FILE or FILE:NAME"),
        (str(EXAMPLE), "name one profile of the file"),
    ],
)
def test_a_profile_that_there_is_not_is_an_error_with_those_that_there_are(
    tmp_path: Path, word: str, message: str
) -> None:
    result = CliRunner().invoke(app, ["simulate", written(tmp_path, packing("packed")), "--profile", word])
    assert result.exit_code != 0
    assert message in " ".join(result.output.split())


def test_the_configurations_of_the_page_are_read_and_its_tables_name_all_plug_ins() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert blocks[0] == EXAMPLE.read_text()
    configurations = [block for block in blocks if block.startswith("apiVersion:")]
    assert len(configurations) > 1
    assert all(parse_configuration(block).profiles for block in configurations)
    assert [each.scheduler_name for each in parse_configuration(EXAMPLE.read_text()).profiles] == [
        "spread", "binpack", "cheap"
    ]  # fmt: skip
    for profile in parse_configuration(EXAMPLE.read_text()).profiles:
        for score in profile.scores:
            assert score.name.partition("/")[0] in PAGE
