"""Logs of what `up` runs: no process fills the disk with them."""

import sys
from pathlib import Path

import pytest

from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.embedded import processes
from gardenbus.embedded.process_specs import ProcessSpec
from gardenbus.embedded.processes import ManagedProcess
from tests.support.eventually import eventually

WRITER = "import sys, time\nfor n in range(400):\n print(n, 'x' * 1000, flush=True)\n time.sleep(0.002)\ntime.sleep(60)"


async def test_a_process_that_logs_without_end_keeps_two_files_of_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "LARGEST_LOG_BYTES", 50_000)
    directory = LandscapeDirectory(tmp_path)
    directory.prepare()
    spec = ProcessSpec("loud", "loud", [sys.executable, "-c", WRITER], {})
    process = ManagedProcess(spec, directory, notify=print, changed=lambda: None)
    process.start()

    older = process.log_file.with_suffix(".log.1")

    async def shortened() -> None:
        assert older.exists()
        assert older.stat().st_size > 50_000
        assert process.log_file.stat().st_size < 50_000

    try:
        await eventually(shortened)
    finally:
        await process.stop()
    assert process.restarts == 0
