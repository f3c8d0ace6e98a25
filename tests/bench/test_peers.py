"""Schedulers of others are built from their sources and place what Gardenbus places, on small landscapes."""

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

from gardenbus.bench.peers.programs import SOURCES

pytestmark = [pytest.mark.slow, pytest.mark.at_rest, pytest.mark.timeout(1500)]

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed: peers are built from their sources")
@pytest.mark.parametrize(
    ("peer", "module", "landscape"),
    [("scheduler", "gardener", ["| 10", "100"]), ("kubefleet", "kubefleet", ["| PickAll", "100"])],
)
async def test_a_peer_is_built_and_measured_beside_gardenbus(peer: str, module: str, landscape: list[str]) -> None:
    assert (ROOT / SOURCES / module / "go.sum").is_file()
    command = [sys.executable, "-m", "gardenbus.bench.peers", "--only", peer, "--reduced", "--turns", "1"]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-2000:]
    row = output.decode().rstrip().splitlines()[-1].split(" | ")
    assert row[:2] == landscape
    assert float(row[-1].rstrip(" |").replace(",", "")) > 0
