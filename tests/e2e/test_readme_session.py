"""The README's session with the nats command, word for word."""

import asyncio
import os
import re
import shutil
import stat
import sys
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.landscape import Landscape, a_landscape

ROOT = Path(__file__).parents[2]


def session() -> list[tuple[str, list[str]]]:
    """The commands of the README's session, each with the fragments that its output must hold."""
    text = (ROOT / "README.md").read_text().split("<!-- session -->", 1)[1]
    block = re.search(r"```console\n(.*?)```", text, re.DOTALL)
    assert block is not None
    steps: list[tuple[str, list[str]]] = []
    for line in block.group(1).splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        else:
            steps[-1][1].append(line)
    assert len(steps) >= 8
    return steps


def path_with_nats(directory: Path) -> str:
    """A PATH on which there is a `nats`: the real one, or our stand-in with the same arguments."""
    path = os.environ["PATH"]
    if shutil.which("nats"):
        return path
    command = directory / "nats"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/tests/support/nats_cli.py" "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return f"{directory}:{path}"


async def run(command: str, landscape: Landscape, path: str) -> str:
    environment = {**os.environ, "PATH": path, "NATS_URL": landscape.describe()["nats_url"]}
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        command,
        cwd=ROOT,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0, f"{command}\n{output.decode()}"
    return output.decode()


@pytest.mark.slow
async def test_every_command_of_the_session_does_what_the_readme_says(tmp_path: Path) -> None:
    path = path_with_nats(tmp_path)
    async with a_landscape(tmp_path / "state", "-f", str(ROOT / "examples/session/gardenlet.yaml")) as landscape:
        for command, fragments in session():

            async def shows(command: str = command, fragments: list[str] = fragments) -> None:
                output = await run(command, landscape, path)
                for fragment in fragments:
                    assert fragment in output, f"$ {command}\n{output}"

            await eventually(shows, within=20, every=0.5)

        async def gone() -> None:
            assert not await landscape.list("shoot.garden-session")

        await eventually(gone, within=20)
