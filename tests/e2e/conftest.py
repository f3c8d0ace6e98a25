"""A landscape that tests share: its start is most of what a short one costs."""

import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.builders import a_cloudprofile, a_gardenlet_configuration, a_project
from tests.support.commands import gardenbus_program
from tests.support.eventually import HANG_SECONDS
from tests.support.landscape import Document, Landscape, attached, violations

SESSION = Path(__file__).parents[2] / "examples" / "session"
FRAIL = "frail"


def _a_frail_seed() -> Document:
    """A seed for no shoots, which is taken as sick when its Lease was not renewed for four seconds."""
    configuration = a_gardenlet_configuration(FRAIL)
    configuration["controllers"] = {"seed": {"leaseResyncSeconds": 1, "leaseResyncMissThreshold": 4}}
    configuration["seedConfig"]["spec"]["settings"] = {"scheduling": {"visible": False}}
    return configuration


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a landscape for tests that stop nothing of it, and mind only what they made themselves.

    It has the gardenlet of examples/session (seed `earth-1`), one with room for two shoots (seed `seed-a`), and
    one that is soon taken as sick and gets no shoots (seed `frail`).
    """
    parent = tmp_path_factory.mktemp("host")
    file = parent / "landscape.yaml"
    file.write_text(yaml.safe_dump_all([a_gardenlet_configuration(), _a_frail_seed(), a_project(), a_cloudprofile()]))
    at = ("--dir", str(parent / "state"))
    up = [str(gardenbus_program()), "up", *at, "--detach", "-f", str(file), "-f", str(SESSION / "gardenlet.yaml")]
    subprocess.run(up, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=HANG_SECONDS)
    yield parent / "state"
    subprocess.run([str(gardenbus_program()), "down", *at], check=True, stdout=subprocess.DEVNULL, timeout=HANG_SECONDS)
    assert violations(parent / "state") == [], "a service or a command asked for what its identity may not"


@pytest.fixture
async def hosting(host: Path) -> AsyncIterator[Landscape]:
    """The same, with a connection."""
    async with attached(host) as landscape:
        yield landscape
