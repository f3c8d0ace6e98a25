"""The compose file of clusters in which servers and parties all prove who they are: one of each server killed."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.clusters import SERVICES, Person, cluster, inside, orders_survive_a_kill, routes
from tests.docker.deployment import Deployment, docker
from tests.docker.test_identities_file import redis_with_tls
from tests.support.sessions import ROOT, blocks

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)]

FILES = ["compose.yaml", "identities.yaml", "cluster.yaml", "cluster-identities.yaml"]
PROJECT = f"gardenbus-cluster-identities-{os.getpid()}"
AT_REDIS = "redis-cli --tls --cacert /keys/ca.crt"


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    """All servers, and one replica of each service that a shoot on one seed takes."""
    services = (*SERVICES, "identity")
    alone = [part for name in services for part in ("--scale", f"{name}=1")]
    with cluster(PROJECT, FILES, services, *alone, GARDENBUS_REDIS_IMAGE=redis_with_tls()) as deployment:
        yield deployment


@pytest.fixture(scope="module")
def ann(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Comes in with credentials that the operator has issued."""
    directory = tmp_path_factory.mktemp("keys")
    deployment.run("cp", "keys:/keys/operator", str(directory / "operator"))
    url, ca = deployment.nats_url().replace("nats://", "tls://"), directory / "operator" / "ca.crt"
    trust = {"GARDENBUS_NATS_CA": str(ca)}
    operator = Person(url, {**trust, "GARDENBUS_NATS_CREDENTIALS": str(directory / "operator" / "operator.json")})
    operator.run("identity", "issue", "--user", "ann", "--role", "operator", "-o", str(directory / "ann.json"))
    return Person(url, {**trust, "GARDENBUS_NATS_CREDENTIALS": str(directory / "ann.json")})


def test_the_page_names_the_files_that_are_brought_up_here() -> None:
    here = f"tests/docker/{Path(__file__).name}"
    (part,) = [block for block in blocks(ROOT / "docs" / "identities.md") if block.argument == here]
    assert re.findall(r"-f (\S+)", part.text) == FILES


def test_who_reaches_the_port_of_the_routes_does_not_join_the_cluster(deployment: Deployment) -> None:
    assert routes(deployment) == ["nats-2", "nats-3"]
    guess = "nats-route://route:of-the-network-routes@nats:6222"
    options = ("-n", "stranger", "--cluster_name", "gardenbus", "--cluster", "nats://0.0.0.0:6222", "--routes", guess)
    name = f"{PROJECT}-stranger"
    run = ("run", "--detach", "--name", name, "--network", f"{PROJECT}_routes", "--entrypoint", "nats-server")
    assert docker(*run, "nats:2.15.1-alpine", *options).returncode == 0
    try:
        deadline = time.monotonic() + 30
        while "Connection Closed" not in (reported := docker("logs", name).stderr) and "closed" not in reported:
            assert time.monotonic() < deadline, reported
            time.sleep(0.2)
        assert routes(deployment) == ["nats-2", "nats-3"]
    finally:
        docker("rm", "--force", name)


def test_replicas_and_sentinels_come_in_by_users_of_their_own_over_tls_alone(deployment: Deployment) -> None:
    password = "REDISCLI_AUTH=$(sed -n 's/^sentinel sentinel-pass //p' /keys/sentinel.conf | tr -d '\"')"
    reported = inside(deployment, "sentinel-1", f"{password} {AT_REDIS} -h redis --user sentinel info replication")
    assert ("role:master" in reported, reported.count("state=online")) == (True, 2), reported
    for host, port, question in (("redis-2", 6379, "psync ? -1"), ("sentinel-2", 26379, "sentinel master garden")):
        assert "NOAUTH" in inside(deployment, "redis", f"{AT_REDIS} -h {host} -p {port} {question} 2>&1")
        plainly = inside(deployment, "redis", f"timeout 5 redis-cli -h {host} -p {port} {question} 2>&1")
        assert "NOAUTH" not in plainly
        assert "garden" not in plainly


async def test_shoots_are_made_on_after_a_server_of_nats_and_the_master_of_redis_were_killed(
    deployment: Deployment, ann: Person, tmp_path: Path
) -> None:
    await orders_survive_a_kill(deployment, ann, tmp_path, "nats-2")
