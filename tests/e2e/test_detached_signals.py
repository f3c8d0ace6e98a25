"""`up --detach` that is stopped while the landscape starts leaves nothing behind."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from gardenbus.cli.local.directory import LandscapeDirectory
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.landscape_processes import processes_of

GARDENBUS = Path(sys.executable).with_name("gardenbus")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("is_early", [True, False])
async def test_a_signal_ends_the_supervisor_and_all_that_it_has_started(
    tmp_path: Path, number: signal.Signals, is_early: bool
) -> None:
    place = tmp_path / "landscape"
    up = await asyncio.create_subprocess_exec(GARDENBUS, "up", "--dir", place, "--detach")

    async def has_begun() -> None:
        assert (place / "logs/up.log").exists() if is_early else len(processes_of(place)) > 2

    await eventually(has_begun)
    up.send_signal(number)
    code = await asyncio.wait_for(up.wait(), HANG_SECONDS)

    assert code == 128 + number
    assert processes_of(place) == {}
    assert LandscapeDirectory(place).supervisor() is None
