"""A few faults of a harness that has many more (`make chaos`): what is killed, cut and paused leaves no trace."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.chaos.landscape import ROOT


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--faults", "3", "--only", "kill,cut,pause", "--settle", "60"), id="single servers"),
        pytest.param(
            ("--cluster", "--faults", "3", "--only", "failover,partition,old-disk", "--settle", "120"), id="clusters"
        ),
    ],
)
async def test_nothing_is_lost_doubled_overfilled_or_torn_down(arguments: Sequence[str], tmp_path: Path) -> None:
    result = tmp_path / "chaos.json"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.chaos", "--seed", "4", *arguments),
        *("--json", str(result), "--directory", str(tmp_path)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=ROOT,
    )
    stdout, _ = await process.communicate()

    assert process.returncode == 0, stdout.decode()
    run = json.loads(result.read_text())
    assert run["faults"] >= 3
    assert run["acknowledged"] > 0
    assert run["answered_requests"] > 0
    assert run["watched_events"] > 0
    assert set(run["violations"].values()) == {0}
    assert f"| all | {run['faults']} |" in stdout.decode()
