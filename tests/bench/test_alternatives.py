"""Every alternative is measured, at counts that say nothing about speed, and each row has figures."""

import asyncio
import re
import sys

import pytest

from gardenbus.cli.bench.alternatives.announcing import connected, create_stream
from gardenbus.cli.bench.alternatives.contests import CONTESTS
from gardenbus.cli.bench.alternatives.publishing import Sender
from gardenbus.cli.bench.rig import BenchFailed, a_rig
from gardenbus.cli.supervisor.durability import Durability

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CELLS = 7
FIGURE = re.compile(r": ([\d,]+)/s, ([\d.,e-]+)(?: \+ ([\d.,e-]+))? µs$")


async def alternatives(*arguments: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gardenbus.cli.bench.alternatives",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    stdout, stderr = await process.communicate()
    return process.returncode or 0, stdout.decode(), stderr.decode()


def figures(cell: str) -> list[float]:
    found = FIGURE.search(cell)
    assert found is not None, cell
    return [float(text.replace(",", "")) for text in found.groups() if text is not None]


@pytest.mark.parametrize("name", CONTESTS)
async def test_every_alternative_is_measured_beside_ours(name: str) -> None:
    code, stdout, stderr = await alternatives("--quick", name)
    assert code == 0, stderr
    rows = [line.strip("|").split(" | ") for line in stdout.splitlines() if line.startswith("| ")][1:]
    assert rows
    for row in rows:
        assert len(row) == CELLS
        _, ours, other, unit, ratio, cpu_ratio, kept = (cell.strip() for cell in row)
        assert unit
        assert kept
        assert all(figure > 0 for figure in (*figures(ours), *figures(other)))
        assert all(float(text.replace(",", "")) > 0 for text in (ratio, cpu_ratio))


async def test_a_fast_batch_ends_where_a_sequence_is_not_as_expected_and_keeps_what_came_before() -> None:
    async with a_rig(Durability.PROCESS) as rig, connected(rig) as connection:
        await create_stream(connection, rig)
        sender = Sender(connection)
        await sender.open()
        await sender.fast(10)
        assert sender.last == 10
        await sender.fast(10, wrong_at=5)
        assert sender.last == 15
        with pytest.raises(BenchFailed, match="wrong last sequence"):
            await sender.fast(10, wrong_at=0)


async def test_an_alternative_that_does_not_exist_is_a_usage_error() -> None:
    code, _, stderr = await alternatives("magic")
    assert code == 2
    assert "publishing" in stderr
