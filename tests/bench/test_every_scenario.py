"""Every scenario comes about, at a size that says nothing about speed, and reports what is promised."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gardenbus.bench.options import ScenarioName
from tests.support.commands import gardenbus_program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

TINY = ("--seeds", "60", "--placed", "90", "--shoots", "40", "--runs", "1", "--durability", "process")
MEMBERS = [
    "scenario",
    "rate_per_s",
    "bare_per_s",
    "ratio",
    "latency_ms",
    "cpu_s",
    "rss_mb",
    "parameters",
    "machine",
    "details",
]
WITHOUT_RATE = {ScenarioName.MEMORY, ScenarioName.START}

SHOWN_TO_PEOPLE = ScenarioName.SCHEDULING
"""The scenario that runs as people run it; all others with `--json`."""

AMONG_THE_LONG = {
    ScenarioName.STREAM,
    ScenarioName.PLACEMENT,
    ScenarioName.APPLY,
    ScenarioName.MEMORY,
    ScenarioName.FLAT,
    ScenarioName.IDENTITIES,
}
"""Scenarios made of what the others do, each run for its own figure, and the one that takes the longest."""


async def bench(*arguments: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        str(gardenbus_program()),
        "bench",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    stdout, stderr = await process.communicate()
    return process.returncode or 0, stdout.decode(), stderr.decode()


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(each, marks=[pytest.mark.long] if each in AMONG_THE_LONG else [])
        for each in ScenarioName
        if each is not SHOWN_TO_PEOPLE
    ],
)
async def test_every_scenario_runs_and_reports(scenario: ScenarioName, tmp_path: Path) -> None:
    code, stdout, stderr = await bench(scenario.value, "--json", *TINY, "--output", str(tmp_path / "results"))
    assert code == 0, stderr
    assert not stderr
    assert_reported(scenario, tmp_path / "results")
    assert [json.loads(stdout)] == json.loads((tmp_path / "results" / "results.json").read_text())


def assert_reported(scenario: ScenarioName, results: Path) -> None:
    reported: dict[str, Any]
    (reported,) = json.loads((results / "results.json").read_text())
    assert list(reported) == MEMBERS
    assert reported["scenario"] == scenario.value
    if scenario not in WITHOUT_RATE:
        assert reported["rate_per_s"] > 0
        assert reported["bare_per_s"] > 0
        assert reported["cpu_s"]
    if scenario is not ScenarioName.MEMORY:
        assert reported["ratio"] > 0
        assert 0 < reported["latency_ms"]["p50"] <= reported["latency_ms"]["p99"]
    assert reported["rss_mb"]["redis"] > 0
    assert reported["parameters"]["durability"] == "process"
    assert 2048 <= reported["parameters"]["object_bytes"] <= 4096
    assert reported["machine"]["cores"] >= 1
    assert reported["details"]["met"] in (True, False)
    assert f"| {scenario.value} |" in (results / "results.md").read_text()


async def test_people_see_figures_processes_and_where_the_time_goes(tmp_path: Path) -> None:
    code, stdout, stderr = await bench(SHOWN_TO_PEOPLE.value, *TINY, "--output", str(tmp_path / "results"))
    assert code == 0, stderr
    assert_reported(SHOWN_TO_PEOPLE, tmp_path / "results")
    for output in ("product", "bare pipe", "ratio", "target", "p50", "PROCESS", "scheduler", "where the time goes"):
        assert output in stdout


@pytest.mark.long
async def test_a_profile_schedules_requests_and_groups(tmp_path: Path) -> None:
    larger = ("--seeds", "240", "--placed", "240", "--shoots", "400", "--runs", "1")
    output = str(tmp_path / "results")
    code, _, stderr = await bench("scheduling", "--profile", "weighted", "--json", *larger, "--output", output)
    assert code == 0, stderr
    assert_reported(ScenarioName.SCHEDULING, tmp_path / "results")


async def test_a_profile_of_another_scenario_is_a_usage_error() -> None:
    code, _, stderr = await bench("intake", "--profile", "weighted")
    assert code == 2
    assert "scheduling, flat" in stderr


async def test_a_scenario_that_does_not_exist_is_a_usage_error() -> None:
    code, _, stderr = await bench("speed")
    assert code == 2
    assert "scheduling" in stderr
