"""One small landscape of real processes for all tests of the operating commands, and calling `gardenbus` on it."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.support.commands import gardenbus_program
from tests.support.landscape import Document

SESSION = Path(__file__).parents[3] / "examples" / "session"
WITHIN_SECONDS = 60


class Called(NamedTuple):
    """Result of a command."""

    code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> Any:
        """Printed JSON, parsed."""
        return json.loads(self.stdout)


class Operator:
    """Somebody at the command line of one landscape."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def call(self, *arguments: str, given: str | None = None, **environment: str) -> Called:
        """Run `gardenbus` to its end."""
        done = subprocess.run(
            [str(gardenbus_program()), *arguments, "--dir", str(self.directory)],
            check=False,
            capture_output=True,
            text=True,
            input=given,
            timeout=WITHIN_SECONDS,
            env={**os.environ, **environment},
        )
        return Called(done.returncode, done.stdout, done.stderr)

    def apply(self, *documents: Document) -> Called:
        """Apply manifests."""
        return self.call("apply", "-f", "-", given=yaml.safe_dump_all(documents))

    def remove(self, shoot: str) -> None:
        """Delete a shoot, so that the next test finds the landscape as it was."""
        gone = self.call("delete", "shoot", shoot, "-n", "garden-session", "--confirm", "--wait", "--timeout", "30s")
        assert gone.code == 0, gone.stderr

    def describe(self) -> Document:
        """What landscape.json says."""
        return json.loads((self.directory / "landscape.json").read_text())


def a_session_shoot(name: str, **spec: Any) -> Document:
    """A shoot that fits on the landscape's seed, unless `spec` says otherwise."""
    document: Document = yaml.safe_load((SESSION / "shoot.yaml").read_text())
    return {**document, "metadata": {**document["metadata"], "name": name}, "spec": {**document["spec"], **spec}}


def _wait_until_converged(operator: Operator) -> None:
    """Wait until `apollo` is up, and `lost` was refused for its own reason (before, no seed was ready)."""
    assert operator.call("wait", "shoot", "apollo", "-n", "garden-session", "--for", "reconciled").code == 0
    deadline = time.monotonic() + WITHIN_SECONDS
    while "planet=pluto" not in (queue := operator.call("queue").stdout):
        assert time.monotonic() < deadline, queue
        time.sleep(0.5)


@pytest.fixture(scope="session")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """A landscape with one seed, where `apollo` is placed and `lost` fits nowhere."""
    directory = tmp_path_factory.mktemp("operating") / "landscape"
    operator = Operator(directory)
    files = ("landscape.yaml", "gardenlet.yaml", "shoot.yaml")
    lost = directory.with_suffix(".yaml")
    lost.write_text(yaml.safe_dump(a_session_shoot("lost", seedSelector={"matchLabels": {"planet": "pluto"}})))
    up = operator.call(
        "up", "--detach", *(part for file in files for part in ("-f", str(SESSION / file))), "-f", str(lost)
    )
    try:
        assert up.code == 0, up.stderr
        _wait_until_converged(operator)
        yield operator
    finally:
        operator.call("down")
