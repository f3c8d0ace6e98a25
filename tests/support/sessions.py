"""The commands that the documentation shows, and how a test runs them.

A block of commands, fenced as `console` or `sh`, has a comment in front of it that says how it is executed:

| comment                   | by whom                                                                          |
|---------------------------|----------------------------------------------------------------------------------|
| `<!-- session -->`        | a test, one session after the other, in one directory that is like a checkout    |
| `<!-- needs: docker -->`  | the tests of the containers                                                      |
| `<!-- run by: FILE -->`   | that script or test, which holds the block's commands in its own way             |

In a session, lines after a command that starts with `$ ` are fragments that its output must show. A command that does
not show them, or ends with an error, is given again until it does: sessions must bear that. `gardenbus up` and
`gardenbus down`, with which sessions begin and end their landscapes, are given once, and with a free port instead of
4222, where somebody else's NATS may run.
"""

import asyncio
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import yaml

from tests.support.commands import gardenbus_program
from tests.support.eventually import eventually
from tests.support.servers import free_port

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
COMMAND_SECONDS = 180.0
"""How long one command may take. `gardenbus drain` waits for migrations."""

_BLOCK = re.compile(
    r"(?:<!-- (?P<how>[^>]*?) -->\n)?```(?P<language>console|sh|bash|shell)\n(?P<text>.*?)```", re.DOTALL
)


class Step(NamedTuple):
    """A command, and what its output must show."""

    command: str
    shows: Sequence[str]

    @property
    def needs_nats(self) -> bool:
        """True for a command that calls `nats`."""
        return re.search(r"(^|\| )nats ", self.command) is not None


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


def reading_order() -> list[Path]:
    """README, then the pages of the site in the order of its navigation."""
    site: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    return [ROOT / "README.md", *(ROOT / "docs" / name for name in _pages_in(site["nav"]))]


def _pages_in(navigation: object) -> Iterator[str]:
    if isinstance(navigation, str):
        yield navigation
    elif isinstance(navigation, dict):
        yield from _pages_in(list(cast("dict[str, object]", navigation).values()))
    elif isinstance(navigation, list):
        for entry in cast("list[object]", navigation):
            yield from _pages_in(entry)


def steps_of(page: Path) -> list[Step]:
    """The commands of all sessions of a page."""
    return [step for block in blocks(page) if block.verb == "session" for step in block.steps]


class Reader:
    """Somebody who types what the pages show, in a directory like a checkout."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        for name in ("examples", "deploy"):
            (directory / name).symlink_to(ROOT / name)
        self._path = (
            f"{gardenbus_program().parent}:{Path(sys.executable).parent}:{ROOT / '.tools/bin'}:{os.environ['PATH']}"
        )
        self._port = free_port()
        self.lacks_nats = shutil.which("nats", path=self._path) is None

    async def type(self, step: Step) -> None:
        """Give one command until it shows what it shall."""
        command = step.command.replace("--nats-port 4222", f"--nats-port {self._port}")

        async def shown() -> None:
            output = await _run(command, self._directory, self._environment())
            for fragment in step.shows:
                assert fragment in output, f"$ {command}\n{output}"

        if command.startswith(("gardenbus up", "gardenbus down")):
            await shown()
        else:
            await eventually(shown, every=0.5)

    async def leave(self) -> None:
        """Stop what still runs, and remove its state."""
        await _run("gardenbus down --purge", self._directory, self._environment())

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": self._path, "XDG_CONFIG_HOME": str(self._directory / ".config"), "COLUMNS": "200"}


async def _run(command: str, directory: Path, environment: Mapping[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        command,
        cwd=directory,
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
