"""Figures' commit, measured again on the machine at hand.

Machines differ in what one server takes of the same work beside another kind of it, by a third for NATS. So a loss
against the file is one only where the commit that the file is of, measured here and now, takes less as well.
"""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from gardenbus.bench.guard.readings import ScenarioReading
from gardenbus.bench.harness.commands import run_command
from gardenbus.bench.harness.retries import BenchFailed

SET_UP_SECONDS = 900.0
MEASURE_SECONDS = 1800.0
"""Both end a hang, and nothing else."""

OWN_ENVIRONMENT = frozenset({"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH", "VIRTUAL_ENV"})
"""Variables of the checkout at hand, which another one must not get."""


class ReferenceCommit:
    """A commit in a folder of its own, which is made when it is measured for the first time; `close` removes it."""

    def __init__(self, commit: str, repository: Path) -> None:
        self._commit = commit
        self._repository = repository
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Remove the folder."""
        if self._folder is not None:
            self._folder.cleanup()

    async def measure(self, group: str) -> Sequence[ScenarioReading]:
        """Readings of one group of scenarios. Raises BenchFailed."""
        if self._folder is None:
            self._folder = await self._set_up()
        root = Path(self._folder.name)
        file = root / f"readings-{group}.json"
        options = ("--only", group, "--readings", str(file))
        command = (str(root / ".venv/bin/python"), "-m", "gardenbus.bench.guard", *options)
        await run_command(command, limit=MEASURE_SECONDS, folder=root, environ=_environment(os.environ))
        try:
            return decode(file.read_bytes())
        except (OSError, msgspec.MsgspecError) as error:
            raise BenchFailed(f"the readings of {self._commit[:12]} cannot be read: {error}") from error

    async def _set_up(self) -> "tempfile.TemporaryDirectory[str]":
        archived = subprocess.run(  # noqa: ASYNC221, S603 - nothing else runs meanwhile
            ("git", "archive", "--format=tar", self._commit),  # noqa: S607
            cwd=self._repository,
            capture_output=True,
            check=False,
        )
        if archived.returncode:
            raise BenchFailed(archived.stderr.decode().strip())
        folder = tempfile.TemporaryDirectory(prefix="gardenbus-reference-")
        try:
            with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as tar:
                tar.extractall(folder.name, filter="data")
            await run_command(
                ("make", "setup"), limit=SET_UP_SECONDS, folder=Path(folder.name), environ=_environment(os.environ)
            )
        except BaseException:
            folder.cleanup()
            raise
        return folder


def _environment(of: Mapping[str, str]) -> dict[str, str]:
    own_bin = str(Path(sys.executable).parent)
    path = os.pathsep.join(each for each in of.get("PATH", "").split(os.pathsep) if each != own_bin)
    return {name: value for name, value in of.items() if name not in OWN_ENVIRONMENT} | {"PATH": path}


def encode(readings: Sequence[ScenarioReading]) -> bytes:
    """Readings as JSON."""
    return msgspec.json.encode(readings)


def decode(text: bytes) -> list[ScenarioReading]:
    """Read them back. Raises msgspec.MsgspecError, naming the field."""
    return msgspec.json.decode(text, type=list[ScenarioReading])
