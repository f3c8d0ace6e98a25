"""The commands that the documentation shows, and how a test runs them.

A block of commands, fenced as `console` or `sh`, has a comment in front of it that says how it is executed:

| comment                   | by whom                                                                          |
|---------------------------|----------------------------------------------------------------------------------|
| `<!-- session: FILES -->` | a test, in order, on a landscape of its own that was started with these files    |
| `<!-- session -->`        | the same, on the landscape of the page's last session                            |
| `<!-- needs: docker -->`  | the tests of the containers                                                      |
| `<!-- run by: FILE -->`   | that script or test, which holds the block's commands in its own way             |

In a session, lines after a command that starts with `$ ` are fragments that its output must show. A command that does
not show them, or ends with an error, is given again until it does: sessions must bear that.
"""

import asyncio
import os
import re
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.eventually import eventually
from tests.support.landscape import Landscape

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
SHOWN_WITHIN_SECONDS = 120.0
"""How long a landscape may take until a command shows what it shall. A whole session takes a minute on an idle machine;
these run beside other tests."""
COMMAND_SECONDS = 180.0
"""How long one command may take. `gardenbus drain` waits for migrations."""

_BLOCK = re.compile(
    r"(?:<!-- (?P<how>[^>]*?) -->\n)?```(?P<language>console|sh|bash|shell)\n(?P<text>.*?)```", re.DOTALL
)


class Step(NamedTuple):
    """A command, and what its output must show."""

    command: str
    shows: Sequence[str]


class Block(NamedTuple):
    """Commands of a page; `how` is the comment in front of it, "" without one."""

    how: str
    text: str

    @property
    def verb(self) -> str:
        """`session`, `needs`, `run by`, or ""."""
        return self.how.partition(":")[0].strip()

    @property
    def argument(self) -> str:
        """What stands after the verb."""
        return self.how.partition(":")[2].strip()

    @property
    def steps(self) -> list[Step]:
        """The commands of a session."""
        steps: list[Step] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                steps.append(Step(line[2:], []))
            elif line.strip():
                steps[-1] = Step(steps[-1].command, [*steps[-1].shows, line])
        return steps


def blocks(page: Path) -> list[Block]:
    """All commands of a page."""
    return [Block(found["how"] or "", found["text"]) for found in _BLOCK.finditer(page.read_text())]


def sessions(page: Path) -> list[tuple[Sequence[str], list[Step]]]:
    """The landscapes that a page needs (the files they are started with), and the commands on each."""
    found: list[tuple[Sequence[str], list[Step]]] = []
    for block in blocks(page):
        if block.verb == "session" and block.argument:
            found.append((block.argument.split(), list(block.steps)))
        elif block.verb == "session":
            found[-1][1].extend(block.steps)
    return found


async def play(steps: Sequence[Step], landscape: Landscape, directory: Path) -> None:
    """Run commands as a user would in the checkout, with the landscape in `.gardenbus`."""
    home = directory / "home"
    home.mkdir()
    for name in ("examples", "deploy"):
        (home / name).symlink_to(ROOT / name)
    (home / ".gardenbus").symlink_to(landscape.directory)
    path = _path()
    for command, fragments in steps:

        async def shown(command: str = command, fragments: Sequence[str] = fragments) -> None:
            output = await _run(command, landscape, home, path)
            for fragment in fragments:
                assert fragment in output, f"$ {command}\n{output}"

        await eventually(shown, within=SHOWN_WITHIN_SECONDS, every=0.5)


NATS_MISSING = "no nats command is on PATH nor in .tools/bin: .ci/nats brings one"


def _path() -> str:
    """A PATH with our command, and the `nats` that .ci/nats built."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}:{ROOT / '.tools/bin'}"
    if shutil.which("nats", path=path) is None:
        if os.environ.get("CI"):
            pytest.fail(NATS_MISSING)
        pytest.skip(NATS_MISSING)
    return path


async def _run(command: str, landscape: Landscape, home: Path, path: str) -> str:
    environment = {**os.environ, "PATH": path, "NATS_URL": landscape.describe()["nats_url"], "COLUMNS": "200"}
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        command,
        cwd=home,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), COMMAND_SECONDS)
    except TimeoutError as error:
        os.killpg(process.pid, signal.SIGKILL)
        message = f"$ {command}\nhas not ended within {COMMAND_SECONDS:g} s"
        raise AssertionError(message) from error
    assert process.returncode == 0, f"$ {command}\n{output.decode()}"
    return output.decode()
