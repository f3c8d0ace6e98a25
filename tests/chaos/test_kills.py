"""500 shoots on 20 seeds with two schedulers while everything is killed in turn."""

import asyncio
import collections
import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from nats.aio.msg import Msg

from tests.support.builders import a_cloudprofile, a_project, a_shoot
from tests.support.eventually import eventually
from tests.support.http_watching import an_http_watcher
from tests.support.landscape import Landscape, a_landscape

SEEDS, CAPACITY, SHOOTS, UNPLACEABLE = 20, 30, 500, 20
SERVICES = ("scheduler", "apiserver", "relay", "kubeapi", "lifecycle", "gardenlet")


def a_gardenlet(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
        "kind": "GardenletConfiguration",
        "resources": {"capacity": {"shoots": CAPACITY}},
        "backend": {"type": "local", "stepSeconds": 0.01},
        "seedConfig": {
            "metadata": {"name": f"seed-{number:02}"},
            "spec": {"provider": {"type": "aws", "region": f"region-{number % 4}", "zones": ["a"]}},
        },
    }


def shoots() -> list[dict[str, Any]]:
    placeable = [
        a_shoot(name=f"s{number:03}", namespace="garden-dev", spec={"region": f"region-{number % 4}"})
        for number in range(SHOOTS - UNPLACEABLE)
    ]
    nowhere = [
        a_shoot(name=f"n{number:03}", namespace="garden-dev", spec={"region": "region-none"})
        for number in range(UNPLACEABLE)
    ]
    return placeable + nowhere


class Versions:
    """Watches every change and notes versions that go back."""

    def __init__(self) -> None:
        self.last: dict[str, int] = {}
        self.backwards: list[str] = []

    async def take(self, message: Msg) -> None:
        version = int((message.headers or {}).get("Gardenbus-Version", "0"))
        if version < self.last.get(message.subject, 0):
            self.backwards.append(f"{message.subject}: {version} after {self.last[message.subject]}")
        self.last[message.subject] = version


async def killing(landscape: Landscape, seconds: int) -> None:
    """Kill one service a second, NATS and Redis once each on the way."""
    chosen = itertools.cycle(SERVICES)
    for second in range(seconds):
        await asyncio.sleep(1)
        if second == seconds // 3:
            landscape.kill("nats")
        elif second == 2 * seconds // 3:
            landscape.kill("redis")
        else:
            landscape.kill(next(chosen))


@pytest.mark.long
async def test_whatever_is_killed_every_placeable_shoot_is_placed_and_nothing_is_lost_or_overfilled(
    tmp_path: Path,
) -> None:
    configuration = tmp_path / "landscape.yaml"
    documents = [a_project(name="dev", namespace="garden-dev"), a_cloudprofile()]
    configuration.write_text(yaml.safe_dump_all([*map(a_gardenlet, range(SEEDS)), *documents]))
    wanted = shoots()
    async with (
        a_landscape(tmp_path / "state", "-f", str(configuration), "--replicas", "scheduler=2") as landscape,
        an_http_watcher(landscape, tmp_path / "kubeconfig") as watcher,
    ):
        versions = Versions()
        await landscape.client.subscribe("garden.changed.>", cb=versions.take)  # pyright: ignore[reportUnknownMemberType]

        async def seeds_ready() -> None:
            seeds = await landscape.list("seed")
            assert sum(condition_true(seed, "GardenletReady") for seed in seeds) == SEEDS

        await eventually(seeds_ready, every=0.5)
        random.Random(7).shuffle(wanted)
        killer = asyncio.create_task(killing(landscape, 24))
        for start in range(0, SHOOTS, 20):
            await landscape.publish("garden.apply", wanted[start : start + 20])
            await asyncio.sleep(0.5)
        await killer

        async def settled() -> list[dict[str, Any]]:
            try:
                listed = await landscape.list("shoot")
                census = await landscape.query("census")
            except Exception as error:
                raise AssertionError(repr(error)) from error
            placed = [shoot for shoot in listed if shoot["spec"].get("seedName")]
            healthy = [shoot for shoot in placed if succeeded(shoot)]
            assert len(listed) == SHOOTS, f"{len(listed)} stored"
            assert len(placed) == SHOOTS - UNPLACEABLE, f"{len(placed)} placed"
            assert len(healthy) == len(placed), f"{len(healthy)} healthy"
            assert census["outbox"] == 0, census
            assert census["shoots.pending"] == census["shoots.waiting"] == UNPLACEABLE, census
            return listed

        listed = await eventually(settled, every=1)
        used = collections.Counter(shoot["spec"].get("seedName") for shoot in listed)
        assert all(count <= CAPACITY for seed, count in used.items() if seed), used
        for shoot in listed:
            if not shoot["spec"].get("seedName"):
                assert shoot["status"]["lastOperation"]["state"] == "Pending", json.dumps(shoot["status"])
        assert versions.backwards == []

        async def watched() -> None:
            listed = await landscape.list("shoot")
            wanted = {f"garden-dev/{each['metadata']['name']}": each["metadata"]["resourceVersion"] for each in listed}
            assert watcher.versions == wanted

        await eventually(watched, every=0.5)
        assert watcher.cuts > 0
        assert watcher.out_of_order == []


def condition_true(document: dict[str, Any], name: str) -> bool:
    conditions = document.get("status", {}).get("conditions", [])
    return any(condition["type"] == name and condition["status"] == "True" for condition in conditions)


def succeeded(shoot: dict[str, Any]) -> bool:
    status = shoot.get("status", {})
    return (
        status.get("lastOperation", {}).get("state") == "Succeeded"
        and status.get("observedGeneration") == shoot["metadata"]["generation"]
    )
