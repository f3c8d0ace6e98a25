"""The compose file of clusters, on top of that of single servers: one of each server killed."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest
import yaml

from tests.docker.clusters import SERVICES, Person, cluster, order, orders_survive_a_kill
from tests.docker.deployment import COMPOSE_DIRECTORY, OWN_SERVICES, Deployment, has_engine_with_compose
from tests.support.eventually import eventually

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)]

FILES = ["compose.yaml", "cluster.yaml"]
STORES = ("relay", "apiserver", "scheduler", "lifecycle", "managedseedset", "autoscaler", "placement")


@pytest.mark.skipif(not has_engine_with_compose(), reason="needs a Docker engine with compose")
def test_it_gives_each_service_two_replicas_and_the_addresses_of_the_clusters() -> None:
    command = ["docker", "compose", "-f", "compose.yaml", "-f", "cluster.yaml", "--profile", "client", "config"]
    done = subprocess.run(command, cwd=COMPOSE_DIRECTORY, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    services = yaml.safe_load(done.stdout)["services"]
    for name in OWN_SERVICES:
        assert services[name]["deploy"]["replicas"] == 2, name
        assert services[name]["environment"]["GARDENBUS_NATS_URL"].count("nats://") == 3, name
    for name in STORES:
        assert services[name]["environment"]["GARDENBUS_REDIS_URL"].startswith("redis+sentinel://sentinel-1,"), name
    client = services["client"]
    assert client["environment"]["GARDENBUS_REDIS_URL"] == services["relay"]["environment"]["GARDENBUS_REDIS_URL"]
    assert set(client["networks"]) == {"bus", "store"}
    servers = [f"{kind}{number}" for kind in ("nats", "redis") for number in ("", "-2", "-3")]
    assert set(servers) <= set(services)
    assert {"sentinel-1", "sentinel-2", "sentinel-3"} <= set(services)


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    """All servers, and two replicas of each service that a shoot on one seed takes."""
    with cluster(f"gardenbus-cluster-{os.getpid()}", FILES, SERVICES) as deployment:
        yield deployment


async def leader_of_requests(url: str) -> str:
    """The NATS server that leads the stream of requests; not the one whose port is published, which steps down."""
    client = await nats.connect(url, connect_timeout=10)  # pyright: ignore[reportUnknownMemberType]
    try:

        async def elsewhere() -> str:
            found = await client.request("$JS.API.STREAM.INFO.REQUESTS", b"", timeout=5)
            leader: str = json.loads(found.data)["cluster"]["leader"]
            if leader == "nats-1":
                await client.request("$JS.API.STREAM.LEADER.STEPDOWN.REQUESTS", b"", timeout=5)
            assert leader != "nats-1"
            return leader

        return await eventually(elsewhere, every=0.5)
    finally:
        await client.close()


async def test_shoots_are_made_on_after_a_leader_of_nats_and_the_master_of_redis_were_killed(
    deployment: Deployment, tmp_path: Path
) -> None:
    health = await asyncio.to_thread(deployment.health)
    assert {name: health[name] for name in SERVICES} == {name: ["healthy", "healthy"] for name in SERVICES}
    url = await asyncio.to_thread(deployment.nats_url)
    person = Person(url, {})
    await orders_survive_a_kill(deployment, person, tmp_path, await leader_of_requests(url))
    more = ("--scale", "scheduler=3", "scheduler")
    await asyncio.to_thread(deployment.run, "up", "--detach", "--no-recreate", "--no-deps", "--wait", *more)
    assert (await asyncio.to_thread(deployment.health))["scheduler"] == ["healthy"] * 3
    await order(person, tmp_path, "scaled")
