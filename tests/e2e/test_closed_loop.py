"""Shoots pile up, seeds grow; shoots go, seeds go: with real processes, each of which is killed on the way."""

import asyncio
import collections
import contextlib
import itertools
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.builders import a_cloudprofile, a_project, a_shoot
from tests.support.eventually import eventually
from tests.support.landscape import Landscape, a_landscape

Document = dict[str, Any]

CAPACITY, SHOOTS, DELETED, MOST = 10, 60, 50, 8
MANY_KILLS_SECONDS = 800.0
"""Ends a hang: each seed that is made waits for services of which one is always starting anew."""
PROTECTED = {"key": "seed.gardener.cloud/protected"}
SERVICES = ("managedseedset", "scheduler", "gardenlet", "autoscaler", "apiserver", "relay", "lifecycle")
DURABLE = ("nats", "redis")
SEED_NETWORKS = {"nodes": "10.41.0.0/17", "pods": "10.41.128.0/18", "services": "10.41.192.0/18"}
LABELS = {"set": "grove"}
SECRET = {"apiVersion": "v1", "kind": "Secret", "name": "backup", "namespace": "garden"}
BACKUP = {"provider": "aws", "credentialsRef": SECRET}
API = "seedmanagement.gardener.cloud/v1alpha1"


def the_host_seed() -> Document:
    return {
        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
        "kind": "GardenletConfiguration",
        "resources": {"capacity": {"shoots": CAPACITY}},
        "backend": {"type": "local", "stepSeconds": 0.02},
        "seedConfig": {
            "metadata": {"name": "host-seed"},
            "spec": {
                "provider": {"type": "aws", "region": "eu-west-1", "zones": ["eu-west-1a"]},
                "networks": {"nodes": "10.40.0.0/17", "pods": "10.40.128.0/18", "services": "10.40.192.0/18"},
                "taints": [PROTECTED],
                "backup": BACKUP,
            },
        },
    }


def the_set() -> Document:
    own = a_shoot()["spec"]
    seed_spec = {"ingress": {"domain": "ingress.replica-name.grove.example.org"}, "backup": BACKUP}
    gardenlet = {
        "config": {
            "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
            "kind": "GardenletConfiguration",
            "resources": {"capacity": {"shoots": CAPACITY}},
            "seedConfig": {"metadata": {"labels": LABELS}, "spec": seed_spec},
        }
    }
    cluster = {
        **own,
        "purpose": "infrastructure",
        "tolerations": [PROTECTED],
        "dns": {"domain": "replica-name.grove.example.org"},
        "kubernetes": {"version": "1.34.1", "verticalPodAutoscaler": {"enabled": True}},
        "networking": {"type": "calico", **SEED_NETWORKS},
    }
    return {
        "apiVersion": API,
        "kind": "ManagedSeedSet",
        "metadata": {"name": "grove", "namespace": "garden"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": LABELS},
            "scaleIn": {"drain": True},
            "template": {"metadata": {"labels": LABELS}, "spec": {"gardenlet": gardenlet}},
            "shootTemplate": {"metadata": {"labels": LABELS}, "spec": cluster},
        },
    }


def the_autoscaler() -> Document:
    quick = {"stabilizationWindowSeconds": 3}
    target = {"type": "Utilization", "averageUtilization": 90}
    return {
        "apiVersion": API,
        "kind": "SeedAutoscaler",
        "metadata": {"name": "grove", "namespace": "garden"},
        "spec": {
            "scaleTargetRef": {"apiVersion": API, "kind": "ManagedSeedSet", "name": "grove"},
            "minReplicas": 1,
            "maxReplicas": MOST,
            "metrics": [{"type": "Resource", "resource": {"name": "shoots", "target": target}}],
            "behavior": {"scaleDown": quick},
        },
    }


def guests() -> list[Document]:
    return [
        a_shoot(name=f"guest-{number:02}", spec={"networking": {"nodes": "10.250.0.0/16"}}) for number in range(SHOOTS)
    ]


@contextlib.asynccontextmanager
async def killing(landscape: Landscape, *, every: float) -> AsyncGenerator[None]:
    """Kill one process after another for as long as the block lasts, each once requests are handled; servers seldom."""

    async def kill_in_turn() -> None:
        for number in itertools.count(1):
            await asyncio.sleep(every)
            await landscape.responds()
            in_turn = DURABLE if number % 10 == 0 else SERVICES
            landscape.kill(in_turn[number // (10 if in_turn is DURABLE else 1) % len(in_turn)])

    killer = asyncio.create_task(kill_in_turn())
    try:
        yield
    finally:
        killer.cancel()


class Watch:
    """What must hold at every moment, noted from what `list` answers."""

    def __init__(self) -> None:
        self.uids: dict[str, str] = {}
        self.next_ordinal = 0
        self.broken: list[str] = []

    def observe(self, own_shoots: list[Document], status: Document) -> None:
        unbuilt = [shoot["metadata"]["name"] for shoot in own_shoots if "seedName" not in shoot["spec"]]
        if len(unbuilt) > 1:
            self.broken.append(f"{unbuilt} are in the making at once")
        for shoot in own_shoots:
            name, uid = shoot["metadata"]["name"], shoot["metadata"]["uid"]
            if self.uids.setdefault(name, uid) != uid:
                self.broken.append(f"{name} was made a second time")
        following = status.get("nextReplicaNumber", 0)
        if following < self.next_ordinal:
            self.broken.append(f"nextReplicaNumber fell from {self.next_ordinal} to {following}")
        self.next_ordinal = following


async def everything(landscape: Landscape) -> tuple[list[Document], list[Document], Document]:
    """The shoots of the set, those of the users, and the set."""
    try:
        shoots = await landscape.list("shoot")
        (the_only_set,) = await landscape.list("managedseedset")
    except Exception as error:
        raise AssertionError(repr(error)) from error
    own = [shoot for shoot in shoots if shoot["metadata"]["namespace"] == "garden"]
    others = [shoot for shoot in shoots if shoot["metadata"]["namespace"] != "garden"]
    return own, others, the_only_set


def is_healthy(shoot: Document) -> bool:
    status = shoot.get("status", {})
    return (
        status.get("seedName") == shoot["spec"].get("seedName")
        and status.get("lastOperation", {}).get("state") == "Succeeded"
        and status.get("observedGeneration") == shoot["metadata"]["generation"]
    )


async def patched(landscape: Landscape, tail: str, patch: Document) -> None:
    """Patch, while what was killed last is still coming back."""

    async def taken() -> None:
        try:
            await landscape.query(tail, patch, timeout=3)
        except Exception as error:
            raise AssertionError(repr(error)) from error

    await eventually(taken)


@pytest.mark.slow
@pytest.mark.long
async def test_seeds_grow_with_the_shoots_and_go_with_them_whatever_is_killed(tmp_path: Path) -> None:
    files = tmp_path / "landscape.yaml"
    garden = a_project("garden", "garden", spec={"tolerations": {"whitelist": [PROTECTED]}})
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "backup", "namespace": "garden"},
        "stringData": {"key": "value"},
    }
    documents = [garden, a_project("dev"), a_cloudprofile(), secret, the_set(), the_autoscaler(), the_host_seed()]
    files.write_text(yaml.safe_dump_all(documents))
    watch = Watch()
    async with a_landscape(tmp_path / "state", "-f", str(files)) as landscape:
        async with killing(landscape, every=4):
            await landscape.publish("garden.apply", guests())

            async def all_placed() -> None:
                own, users, grove = await everything(landscape)
                watch.observe(own, grove.get("status", {}))
                assert len(users) == SHOOTS
                homeless = [shoot["metadata"]["name"] for shoot in users if not is_healthy(shoot)]
                assert not homeless, f"{len(homeless)} of {SHOOTS}: {grove.get('status')}"
                assert SHOOTS / CAPACITY <= len(own) <= MOST

            await eventually(all_placed, within=MANY_KILLS_SECONDS, every=1)

        _, users, _ = await eventually(lambda: everything(landscape))  # who was killed last may be away yet
        used = collections.Counter(shoot["spec"]["seedName"] for shoot in users)
        assert max(used.values()) <= CAPACITY, used
        assert "host-seed" not in used

        gone = [{"kind": "Shoot", **{key: shoot["metadata"][key] for key in ("namespace", "name")}} for shoot in users]
        confirmation = {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}
        for shoot in gone[:DELETED]:
            await patched(landscape, f"patch.shoot.{shoot['namespace']}.{shoot['name']}", confirmation)
        await landscape.publish("garden.delete", gone[:DELETED])
        async with killing(landscape, every=4):

            async def shrunk() -> None:
                own, users, grove = await everything(landscape)
                watch.observe(own, grove.get("status", {}))
                assert len(users) == SHOOTS - DELETED
                assert all(is_healthy(shoot) for shoot in users)
                assert len(own) <= 2, f"{len(own)}: {grove['spec']['replicas']} {grove.get('status')}"
                seeds = await landscape.list("seed")
                assert {seed["metadata"]["name"] for seed in seeds} == {
                    "host-seed",
                    *(shoot["metadata"]["name"] for shoot in own),
                }

            await eventually(shrunk, within=MANY_KILLS_SECONDS, every=1)
    assert watch.broken == []
