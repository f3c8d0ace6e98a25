"""A landscape that is filled and held, so that pages and commands can be tried at size."""

import asyncio
import re
import signal
import sys

import pytest

from tests.support.eventually import eventually
from tests.support.landscape import attached_to


@pytest.mark.slow
async def test_a_landscape_is_filled_and_held_until_it_is_interrupted() -> None:
    arguments = ("--seeds", "3", "--placed", "20", "--waiting", "5", "--changes", "20")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gardenbus.bench.held", *arguments), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        url = ""
        while not url:
            line = (await asyncio.wait_for(process.stdout.readline(), 90)).decode()
            assert line, "it ended"
            url = "".join(re.findall(r"GARDENBUS_NATS_URL=(\S+)", line))
        async with attached_to(url) as landscape:

            async def changing() -> None:
                shoots = await landscape.list("shoot")
                assert len(shoots) == 25
                assert sum("seedName" in shoot["spec"] for shoot in shoots) == 20
                assert any(shoot["metadata"]["generation"] > 1 or shoot["metadata"]["annotations"] for shoot in shoots)

            await eventually(changing)
            assert len(await landscape.list("seed")) == 3
            assert sum((await landscape.query("usage"))["seeds"].values()) == 20
    finally:
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.wait(), 30)
    assert process.returncode == 0
