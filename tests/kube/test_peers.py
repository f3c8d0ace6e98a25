"""The Kubernetes API of a landscape and a real kube-apiserver take the same loads, at a size that says nothing."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(400)]


async def test_both_kubernetes_apis_are_measured_by_turns(tmp_path: Path, binaries: str) -> None:
    command = [sys.executable, "-m", "gardenbus.bench.peers", "--only", "apiserver", "--reduced", "--turns", "1"]
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=tmp_path,
        env={**os.environ, "GARDENBUS_KUBE_BIN": binaries},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-2000:]
    rows = [line.split(" | ") for line in output.decode().splitlines() if line.startswith("| ")]
    assert [row[0].removeprefix("| ") for row in rows[1:]] == ["create", "GET", "LIST", "watch event"]
    assert all(float(row[-1].rstrip(" |")) > 0 for row in rows[1:])
