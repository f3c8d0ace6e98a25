"""Starts of the example landscape: where shoots are placed does not depend on which seed is ready first."""

import json
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.landscape import Document, Landscape, a_landscape

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(2_400)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "landscape"
STARTS = 10
IRISH = {"aws-cork", "aws-dublin"}
"""Seeds in eu-west-1, which phoebe is ordered in."""


async def until_converged(directory: Path) -> None:
    """Wait until `up` reports that all shoots have been decided on, and the sets have their seeds."""

    async def settled() -> None:
        log = (directory.parent / f"{directory.name}-up.log").read_text()
        assert "  settled\n" in log, log

    await eventually(settled)


async def distant_shoots(landscape: Landscape) -> list[Document]:
    """Shoots that are farther away than a ready seed with room would be, their domain left aside."""
    planned = await landscape.command("rebalance", "-o", "json")
    assert planned.code == 0, planned
    return json.loads(planned.stdout)["distant"]


async def test_ten_starts_place_the_same_shoots_on_the_same_seeds_and_none_farther_than_it_could_be(tmp_path: Path):
    starts: list[dict[str, str | None]] = []
    for number in range(STARTS):
        directory = tmp_path / f"start-{number}"
        async with a_landscape(directory, "-f", str(EXAMPLE)) as landscape:
            await until_converged(directory)
            shoots = [(each["metadata"], each["spec"].get("seedName")) for each in await landscape.list("shoot")]
            starts.append({f"{metadata['namespace']}/{metadata['name']}": seed for metadata, seed in shoots})
            assert await distant_shoots(landscape) == [], f"start {number}"

    # The grove has places for all of the orchard; whose shoot comes first, and gets the first seed, is nobody's to say.
    placed = [
        {shoot: "grove" if shoot.startswith("garden-orchard/") and seed else seed for shoot, seed in start.items()}
        for start in starts
    ]
    for number, start in enumerate(placed):
        differing = {shoot for shoot in {*start, *placed[0]} if start.get(shoot) != placed[0].get(shoot)}
        assert differing == set(), f"start {number}: {[(start.get(each), placed[0].get(each)) for each in differing]}"
        assert start["garden-dev/phoebe"] in IRISH
