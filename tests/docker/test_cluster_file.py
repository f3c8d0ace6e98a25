"""The compose file of clusters, on top of that of single servers."""

import subprocess

import pytest
import yaml

from tests.docker.deployment import COMPOSE_DIRECTORY, OWN_SERVICES, has_engine_with_compose

pytestmark = pytest.mark.docker

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
