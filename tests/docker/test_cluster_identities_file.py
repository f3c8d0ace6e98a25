"""The compose file of clusters in which servers and parties all prove who they are: one of each server killed."""

import asyncio
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from testcontainers.compose import DockerCompose

from tests.docker.deployment import COMPOSE_DIRECTORY, Deployment, docker, has_engine_with_compose
from tests.docker.test_identities_file import redis_with_tls
from tests.support.eventually import eventually
from tests.support.landscape import GARDENBUS
from tests.support.sessions import ROOT, blocks

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)]

FILES = ["compose.yaml", "identities.yaml", "cluster.yaml", "cluster-identities.yaml"]
SERVICES = ("relay", "apiserver", "scheduler", "lifecycle", "identity", "gardenlet-earth")
SERVERS = tuple(f"{kind}{number}" for kind in ("nats", "redis") for number in ("", "-2", "-3"))
SENTINELS = ("sentinel-1", "sentinel-2", "sentinel-3")
SESSION = ROOT / "examples" / "session"
PROJECT = f"gardenbus-cluster-identities-{os.getpid()}"
AT_REDIS = "redis-cli --tls --cacert /keys/ca.crt"


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    """All servers, and one replica of each service that a shoot on one seed takes."""
    if not has_engine_with_compose():
        pytest.skip("no Docker engine with compose")
    alone = [part for name in SERVICES for part in ("--scale", f"{name}=1")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPOSE_PROJECT_NAME", PROJECT)
        patch.setenv("GARDENBUS_NATS_PORT", "0")
        patch.setenv("GARDENBUS_REDIS_IMAGE", redis_with_tls())
        deployment = Deployment(DockerCompose(COMPOSE_DIRECTORY, FILES))
        try:
            deployment.run("build", "keys", *SERVICES, within=900)
            deployment.run("up", "--detach", "--wait", *alone, *SERVERS, *SENTINELS, *SERVICES, within=600)
            yield deployment
        finally:
            deployment.down("--volumes")


class Person:
    """Somebody at the command line of this machine, with credentials from a file."""

    def __init__(self, url: str, credentials: Path, ca: Path) -> None:
        self._environ = {
            **os.environ,
            "GARDENBUS_NATS_URL": url,
            "GARDENBUS_NATS_CA": str(ca),
            "GARDENBUS_NATS_CREDENTIALS": str(credentials),
        }

    def run(self, *arguments: str) -> str:
        """Run `gardenbus`. Raises AssertionError where it fails."""
        command = [str(GARDENBUS), *arguments]
        done = subprocess.run(command, env=self._environ, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def ann(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Comes in with credentials that the operator has issued."""
    directory = tmp_path_factory.mktemp("keys")
    deployment.run("cp", "keys:/keys/operator", str(directory / "operator"))
    url, ca = deployment.nats_url().replace("nats://", "tls://"), directory / "operator" / "ca.crt"
    operator = Person(url, directory / "operator" / "operator.json", ca)
    operator.run("identity", "issue", "--user", "ann", "--role", "operator", "-o", str(directory / "ann.json"))
    return Person(url, directory / "ann.json", ca)


async def order(person: Person, directory: Path, name: str) -> None:
    """Have a shoot made; it is refused while there is no master."""
    shoot = yaml.safe_load((SESSION / "shoot.yaml").read_text())
    shoot["metadata"]["name"] = name
    (directory / "shoot.json").write_text(json.dumps(shoot))

    async def applied() -> None:
        await asyncio.to_thread(person.run, "apply", "-f", str(directory / "shoot.json"))

    async def made() -> None:
        reported = await asyncio.to_thread(person.run, "get", "shoot", name, "-n", "garden-session", "-o", "json")
        assert json.loads(reported)["status"]["lastOperation"]["state"] == "Succeeded"

    await eventually(applied, within=60, every=0.5)
    await eventually(made, within=60, every=0.5)


def inside(deployment: Deployment, server: str, script: str) -> str:
    """What a script says in a server's container."""
    return deployment.run("exec", "-T", server, "sh", "-c", f"{script}; true")


def routes(deployment: Deployment) -> list[str]:
    """Names of the servers that the first one has routes to."""
    reported = inside(deployment, "nats", "wget -q -O - http://127.0.0.1:8222/routez")
    return sorted({route["remote_name"] for route in json.loads(reported)["routes"]})


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
    assert docker(*run, "nats:2-alpine", *options).returncode == 0
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
    await asyncio.to_thread(ann.run, "apply", "-f", str(SESSION / "landscape.yaml"))
    await order(ann, tmp_path, "before")
    await asyncio.to_thread(deployment.run, "kill", "--signal", "KILL", "nats-2", "redis")
    await order(ann, tmp_path, "meanwhile")
    await asyncio.to_thread(deployment.run, "start", "nats-2", "redis")

    async def together() -> None:
        assert await asyncio.to_thread(routes, deployment) == ["nats-2", "nats-3"]
        monitored = await asyncio.to_thread(inside, deployment, "sentinel-1", "cat /data/sentinel.conf")
        assert "sentinel monitor garden redis " not in monitored
        followed = await asyncio.to_thread(inside, deployment, "redis", "grep ^replicaof /data/redis.conf")
        assert followed.split()[1] in ("redis-2", "redis-3")

    await eventually(together, within=60, every=1)
    await order(ann, tmp_path, "after")
