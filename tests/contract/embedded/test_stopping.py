"""A process that does not stop in time is killed, and named with what it waited for."""

import sys
from pathlib import Path

import pytest

from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.embedded import processes
from gardenbus.embedded.process_specs import ProcessSpec
from gardenbus.embedded.processes import ManagedProcess
from tests.support.eventually import eventually

STAYS = """
import signal, time
line = '{"event":"service.drain_exceeded","waits_for":"the drain http"}'
signal.signal(signal.SIGTERM, lambda *_: print(line, flush=True))
print("ready", flush=True)
while True:
    time.sleep(1)
"""


async def test_a_process_that_does_not_stop_in_time_is_named_with_what_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "STOP_SECONDS", 2.0)
    directory = LandscapeDirectory(tmp_path)
    directory.prepare()
    lines: list[str] = []
    spec = ProcessSpec("relay", "relay", [sys.executable, "-c", STAYS], {})
    process = ManagedProcess(spec, directory, notify=lines.append, changed=lambda: None)
    process.start()

    async def ready() -> None:
        assert process.log_file.exists()
        assert "ready" in process.log_file.read_text()

    try:
        await eventually(ready)
    finally:
        await process.stop()
    reason = "last in its log: service.drain_exceeded waits_for=the drain http"
    assert lines == [f"relay did not stop within 2 s and is killed; {reason}"]
