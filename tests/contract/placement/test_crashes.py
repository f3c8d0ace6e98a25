"""Replicas that are killed in the middle of their work: whoever is left, or comes, brings everything to its end."""

import asyncio
from contextlib import AbstractAsyncContextManager

import pytest

from gardenbus.common.api.document import section
from gardenbus.common.api.keys import ObjectKey
from tests.contract.placement.conftest import Landscape
from tests.support.eventually import eventually
from tests.support.placements import a_crp, pick_n
from tests.support.replicas import a_replica

PLACEMENTS = 24
WANTED = 4


def a_process(landscape: Landscape) -> AbstractAsyncContextManager[asyncio.subprocess.Process]:
    """A replica as a process of its own."""
    return a_replica(
        "placement",
        landscape.nats,
        landscape.redis,
        GARDENBUS_PREFIX=landscape.prefix,
        GARDENBUS_RESOURCE_COLLECTION_SECONDS="0",
        GARDENBUS_RESOURCE_INTERVAL_SECONDS="0",
    )


async def active_counts(landscape: Landscape) -> dict[str, int]:
    """How many bindings of each placement count; fails when two of them are on one cluster."""
    found: dict[str, set[str]] = {}
    for stored in await landscape.all("clusterresourcebinding"):
        document = stored.document()
        spec, labels = section(document, "spec"), section(document, "metadata", "labels")
        if spec["state"] != "Unscheduled" and not stored.is_deleting:
            clusters = found.setdefault(labels["kubernetes-fleet.io/parent-CRP"], set())
            assert spec["targetCluster"] not in clusters
            clusters.add(spec["targetCluster"])
    return {name: len(clusters) for name, clusters in found.items()}


@pytest.mark.slow
async def test_replicas_that_are_killed_place_nothing_twice_and_leave_nothing_undone(landscape: Landscape) -> None:
    await landscape.clusters(*(f"c{number:02}" for number in range(16)))
    keys = [ObjectKey("clusterresourceplacement", "", f"p{number:02}") for number in range(PLACEMENTS)]
    async with a_process(landscape) as survivor:
        for turn in range(3):
            async with a_process(landscape) as victim:
                for key in keys[turn::3]:
                    await landscape.add(a_crp(key.name, pick_n(WANTED)))
                seen = 0
                while seen < (turn + 1) * PLACEMENTS // 3 * WANTED // 3:
                    counts = await active_counts(landscape)
                    assert max(counts.values(), default=0) <= WANTED
                    seen = sum(counts.values())
                    await asyncio.sleep(0.01)
                victim.kill()

        async def all_placed() -> None:
            assert await active_counts(landscape) == {key.name: WANTED for key in keys}
            for key in keys:
                status = section(await landscape.get(key), "status")
                conditions = {each["type"]: each["status"] for each in status["conditions"]}
                assert conditions.get("ClusterResourcePlacementAvailable") == "True", conditions

        await eventually(all_placed, every=0.3)
        assert survivor.returncode is None
