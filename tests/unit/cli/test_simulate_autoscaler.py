"""`gardenbus simulate autoscaler`, and `gardenbus simulate FILE…` beside it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from gardenbus.cli.commands.simulate_autoscaler import sparkline
from gardenbus.cli.main import app
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot

runner = CliRunner()
SHORT = ["--days", "2", "--bursts", "1", "--mass-deletions", "1"]


def test_it_says_what_waiting_and_seeds_cost() -> None:
    result = runner.invoke(app, ["simulate", "autoscaler", *SHORT])
    assert result.exit_code == 0, result.output
    for word in ("waiting time", "p99", "seed-hours paid", "best in hindsight", "scale events"):
        assert word in result.stdout
    shoots, waiting, seeds = result.stdout.splitlines()[-3:]
    assert (shoots.split()[0], waiting.split()[0], seeds.split()[0]) == ("shoots", "waiting", "seeds")
    assert "█" in seeds


def test_json_has_it_all_and_is_the_same_each_time() -> None:
    arguments = ["simulate", "autoscaler", *SHORT, "--seed", "7", "-o", "json"]
    first, second = runner.invoke(app, arguments), runner.invoke(app, arguments)
    assert first.stdout == second.stdout
    response = json.loads(first.stdout)
    assert set(response) == {"days", "shoots", "mostShoots", "mostSeeds", "waiting", "seedHours", "scaleEvents"}
    assert set(response["waiting"]) >= {"p50Seconds", "p99Seconds", "maxSeconds"}
    assert response["seedHours"]["paid"] >= response["seedHours"]["best"] > 0
    other = runner.invoke(app, [*arguments[:-3], "8", "-o", "json"])
    assert other.stdout != first.stdout


def test_the_knobs_have_an_effect() -> None:
    def outcome(*options: str) -> dict[str, Any]:
        return json.loads(runner.invoke(app, ["simulate", "autoscaler", *SHORT, "-o", "json", *options]).stdout)

    default = outcome()
    assert outcome("--build-time", "1m")["waiting"]["maxSeconds"] < default["waiting"]["maxSeconds"]
    assert outcome("--no-drain")["seedHours"]["paid"] > default["seedHours"]["paid"]
    assert outcome("--min", "12")["scaleEvents"]["up"] < default["scaleEvents"]["up"]
    assert outcome("--max", "3")["mostSeeds"] == 3
    assert outcome("--target", "40")["seedHours"]["paid"] > default["seedHours"]["paid"]
    assert outcome("--window-down", "6h")["scaleEvents"]["down"] < default["scaleEvents"]["down"]
    assert outcome("--capacity", "5")["mostSeeds"] > default["mostSeeds"]


def test_a_plot_is_drawn_without_a_display(tmp_path: Path) -> None:
    file = tmp_path / "course.png"
    code = (
        f"from gardenbus.cli.main import app; app(['simulate', 'autoscaler', '--days', '1', '--plot', {str(file)!r}])"
    )
    ended = subprocess.run([sys.executable, "-c", code], env={}, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert file.read_bytes().startswith(b"\x89PNG")
    assert str(file) in ended.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--min", "5", "--max", "2"],
        ["--build-time", "soon"],
        ["--window-down", "-5s"],
        ["--target", "0"],
        ["--days", "0"],
        ["--plot", "/no/such/folder/x.png", "--days", "1"],
        ["--plot", "x.nothing", "--days", "1"],
        ["FILE"],
        ["--min", "2000", "--max", "2000"],
        ["--mass-deletions", "2000000000"],
        ["--shoots-per-day", "nan"],
    ],
)
def test_what_cannot_be_is_a_usage_error(arguments: list[str]) -> None:
    assert runner.invoke(app, ["simulate", "autoscaler", *arguments]).exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["--bursts", "1000", "--burst-shoots", "1001"],
        ["--shoots-per-day", "40000"],
        ["--shoots-per-day", "inf"],
    ],
)
def test_more_shoots_than_can_be_simulated_are_a_usage_error_that_names_the_options(arguments: list[str]) -> None:
    result = runner.invoke(app, ["simulate", "autoscaler", *arguments])
    assert result.exit_code == 2
    assert "--shoots-per-day, --days, --bursts and --burst-shoots make more than 1000000 shoots" in " ".join(
        result.output.split()
    )


def test_files_are_simulated_as_before_also_one_that_is_called_autoscaler(tmp_path: Path) -> None:
    file = tmp_path / "autoscaler"
    file.write_text(yaml.safe_dump_all([a_project(), a_cloudprofile(), a_seed(), a_shoot()]))
    for arguments in ([str(file), "-o", "name"], ["-o", "name", str(file)], ["landscapes", "-o", "name", str(file)]):
        result = runner.invoke(app, ["simulate", *arguments])
        assert (result.exit_code, result.stdout) == (0, "garden-dev/apollo aws-eu1\n"), result.output
    assert runner.invoke(app, ["simulate"]).exit_code == 2
    assert "autoscaler" in runner.invoke(app, ["simulate", "--help"]).stdout


def test_a_sparkline_shows_the_highest_of_each_part() -> None:
    assert sparkline([(0, 0), (50, 8), (60, 0)], 100, 10) == "     █    "
    assert sparkline([(0, 1), (5, 8), (6, 1)], 100, 10) == "█▁▁▁▁▁▁▁▁▁"
    assert sparkline([(0, 4), (50, 8)], 100, 4) == "▄▄██"
    assert sparkline([], 100, 3) == "   "
