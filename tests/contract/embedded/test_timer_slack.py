"""Timers of nats-server may be late, those of others are not: as a process that `up` starts finds it for itself."""

import sys
from pathlib import Path

import pytest

from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.embedded.process_specs import ProcessSpec
from gardenbus.embedded.processes import NATS_TIMER_SLACK_NANOSECONDS, ManagedProcess
from tests.support.eventually import eventually

SLACK = Path("/proc/self/timerslack_ns")
REPORTER = f"import pathlib, time; print(pathlib.Path({str(SLACK)!r}).read_text(), flush=True); time.sleep(60)"


@pytest.mark.skipif(not SLACK.exists(), reason="this system has no timer slack")
async def test_timers_of_nats_alone_may_be_late(tmp_path: Path) -> None:
    directory = LandscapeDirectory(tmp_path)
    directory.prepare()
    command = [sys.executable, "-c", REPORTER]
    specs = [
        ProcessSpec("nats", "nats", command, {}, "nats", port=1),
        ProcessSpec("relay", "relay", command, {}),
    ]
    nats, relay = (ManagedProcess(spec, directory, notify=print, changed=lambda: None) for spec in specs)

    async def both_reported() -> None:
        assert nats.log_file.exists()
        assert relay.log_file.exists()
        assert int(nats.log_file.read_text() or -1) == NATS_TIMER_SLACK_NANOSECONDS
        assert int(relay.log_file.read_text() or -1) == int(SLACK.read_text())

    nats.start()
    relay.start()
    try:
        await eventually(both_reported)
    finally:
        await nats.stop()
        await relay.stop()
