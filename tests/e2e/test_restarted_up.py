"""A landscape that was away for longer than a lease lasts, servers and services and all, goes on as it was."""

import asyncio
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gardenbus.common.api.conditions import condition_status, conditions_of
from gardenbus.common.api.document import Document, section
from tests.support.commands import gardenbus_program
from tests.support.eventually import HANG_SECONDS, eventually

EXAMPLE = Path(__file__).parents[2] / "examples" / "landscape"
AWAY_SECONDS = 45
"""More than the 40 s after which a Lease has ended."""

KINDS = ("seed", "shoot", "managedseed", "managedseedset", "seedautoscaler")
MOVES = {
    "CreatingShoot",
    "CreatingManagedSeed",
    "SuccessfulRescale",
    "DrainingSeed",
    "DeletingManagedSeed",
    "DeletingShoot",
    "MovingShoot",
    "SchedulingSuccessful",
}


async def run(place: Path, *words: str) -> str:
    """Run a command on the landscape."""
    command = [str(gardenbus_program()), *words, "--dir", str(place)]
    ended = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


async def objects(place: Path) -> Mapping[str, Document]:
    found: dict[str, Document] = {}
    for kind in KINDS:
        listed: Any = json.loads(await run(place, "get", kind, "-A", "-o", "json"))
        for each in listed["items"]:
            found[f"{kind} {each['metadata'].get('namespace', '')}/{each['metadata']['name']}"] = each
    return found


def kept_facts(found: Mapping[str, Document]) -> Mapping[str, object]:
    """What must be as it was: which objects there are, where shoots are, how large the set is, and what is ready."""
    return {
        name: (
            section(each, "metadata").get("uid"),
            section(each, "metadata").get("generation"),
            section(each, "spec").get("seedName"),
            section(each, "status").get("seedName"),
            section(each, "spec").get("replicas"),
            condition_status(conditions_of(each), "GardenletReady"),
        )
        for name, each in found.items()
    }


async def moves_of(place: Path) -> int:
    """Number of Events about something that was made, moved, removed or scaled."""
    rows = [line.split() for line in (await run(place, "events")).splitlines()]
    return sum(len(row) > 2 and row[2] in MOVES for row in rows)


@pytest.mark.long
async def test_after_a_downtime_nothing_is_moved_replaced_or_scaled(tmp_path: Path) -> None:
    place = tmp_path / "landscape"

    async def has_grown() -> None:
        grove = (await objects(place))["managedseedset garden/grove"]["status"]
        assert (grove.get("readyReplicas"), grove.get("replicas")) == (2, 2)
        assert "pendingReplica" not in grove

    async def has_recovered() -> None:
        conditions = conditions_of((await objects(place))["managedseedset garden/grove"])
        assert condition_status(conditions, "StoreRecovering") == "False"

    try:
        await run(place, "up", "-f", str(EXAMPLE), "--detach")
        await eventually(has_grown, every=1.0)
        before = kept_facts(await objects(place))
        moves = await moves_of(place)
        assert moves, "the set has grown"
        await run(place, "down")
        await asyncio.sleep(AWAY_SECONDS)

        await run(place, "up", "--detach")
        at_once = kept_facts(await objects(place))
        await eventually(has_recovered, every=1.0)
        after = kept_facts(await objects(place))

        assert at_once == before
        assert after == before
        assert await moves_of(place) == moves
    finally:
        await run(place, "down")
