"""The history of a whole landscape, as `gardenbus top --history` prints it."""

import csv
import io
import json
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import gardenbus_program
from tests.support.eventually import HANG_SECONDS, eventually

pytestmark = pytest.mark.slow


def history(host: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(gardenbus_program()), "top", "--history", "--dir", str(host), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)


async def test_a_landscape_has_a_history_from_its_start(host: Path) -> None:
    def csv_of(*words: str) -> list[dict[str, str]]:
        printed = history(host, "-o", "csv", *words)
        assert printed.returncode == 0, printed.stderr
        return list(csv.DictReader(io.StringIO(printed.stdout)))

    async def written() -> None:
        rows = csv_of("--since", "6h")
        assert len(rows) > 10
        assert "capacity: used" in rows[-1]
        assert rows[-1]["capacity: used"] != ""

    await eventually(written)
    assert "capacity: used" in csv_of("--since", "30d", "--of", "seed/earth-1")[-1]
    table = history(host, "--since", "7d")
    assert "TIME" in table.stdout
    assert "capacity: used" in table.stdout
    document = json.loads(history(host, "-o", "json").stdout)
    assert set(document) == {"items", "changes"}


def test_what_cannot_be_shown_names_the_way_out(host: Path) -> None:
    wrong = history(host, "--of", "seed")
    assert wrong.returncode == 2
    assert "write seed/NAME" in wrong.stderr
    long = history(host, "--since", "90d")
    assert long.returncode == 2
    assert "30d" in long.stderr
    nothing = history(host, "--of", "set/garden/grove")
    assert nothing.returncode == 0
    assert "nothing is recorded of garden/grove" in nothing.stderr
