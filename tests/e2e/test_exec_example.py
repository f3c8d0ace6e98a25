"""The example of the backend `exec` as docs/backends.md shows it, and what becomes of its server when it is killed."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.eventually import eventually
from tests.support.landscape import Landscape, attached
from tests.support.sessions import ROOT, Reader, blocks
from tests.support.stand_ins import servers_below

PAGE = ROOT / "docs/backends.md"
HERE = f"tests/e2e/{Path(__file__).name}"


async def api_server(landscape: Landscape) -> dict[str, Any]:
    """The condition APIServerAvailable of the shoot."""
    shoot = await landscape.query("get.shoot.garden-exec.apollo")
    return next(each for each in shoot["status"]["conditions"] if each["type"] == "APIServerAvailable")


async def killed_server_is_noticed_and_started_again(directory: Path) -> None:
    (before,) = servers_below(directory)
    url = next(directory.rglob("shoot--exec--apollo/url"))
    served_at = url.read_text()
    async with attached(directory / ".gardenbus") as landscape:
        os.kill(before, signal.SIGKILL)

        async def is_down() -> None:
            condition = await api_server(landscape)
            assert condition["status"] != "True", condition
            assert "The server does not respond" in condition["message"]

        await eventually(is_down)
        again = ("gardener.cloud/operation=reconcile",)
        ended = await landscape.command("annotate", "shoot", "apollo", "-n", "garden-exec", *again)
        assert ended.code == 0, ended.stderr

        async def is_up() -> None:
            assert (await api_server(landscape))["status"] == "True"
            assert [pid for pid in servers_below(directory) if pid != before] != []

        await eventually(is_up)
    assert url.read_text() == served_at


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_the_example_goes_as_it_is_written_and_leaves_nothing(tmp_path: Path) -> None:
    parts = [block for block in blocks(PAGE) if block.verb == "run by" and block.argument == HERE]
    assert len(parts) == 3
    reader = Reader(tmp_path)
    try:
        for number, part in enumerate(parts):
            for step in part.steps:
                await reader.type(step)
            if number == 0:
                (record,) = tmp_path.rglob("shoots/garden-exec/apollo.json")
                assert json.loads(record.read_text())["name"] == "apollo"
                await killed_server_is_noticed_and_started_again(tmp_path)
        assert servers_below(tmp_path) == []
        assert list((tmp_path / ".gardenbus/gardenlets/bench/exec").iterdir()) == []
        assert list(tmp_path.rglob("shoots/garden-exec/apollo.json")) == []
    finally:
        await reader.leave()
    assert servers_below(tmp_path) == []
