"""The compose file in which everybody proves who they are, brought up for real."""

import asyncio
import contextlib
import json
import os
import ssl
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path

import nats
import nats.errors
import pytest
from nats.aio.client import Client
from testcontainers.compose import DockerCompose

from tests.docker.deployment import COMPOSE_DIRECTORY, OWN_SERVICES, Deployment, docker, has_engine_with_compose
from tests.docker.test_compose import SEEDS, apply, profile_of, shoot_of, until_ready, until_reconciled
from tests.support.builders import a_project
from tests.support.commands import gardenbus_program
from tests.support.eventually import eventually

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)]

IMAGE = os.environ.get("GARDENBUS_REDIS_IMAGE", "redis:8.2.9")
BUILT_WITH_TLS = Path(__file__).with_name("redis")


def redis_with_tls() -> str:
    """The image of Redis to run: one of our own where the usual one, unlike the official, was built without TLS."""
    done = docker(
        "run", "--rm", "--entrypoint", "timeout", IMAGE, "2", "redis-server", "--port", "0", "--tls-port", "1"
    )
    if "Missing implement of connection type tls" not in done.stdout + done.stderr:
        return IMAGE
    name = "gardenbus-test/redis-with-tls"
    built = docker("build", "--quiet", "--tag", name, str(BUILT_WITH_TLS), within=600)
    assert built.returncode == 0, built.stderr
    return name


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    if not has_engine_with_compose():
        pytest.skip("no Docker engine with compose")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPOSE_PROJECT_NAME", f"gardenbus-identities-{os.getpid()}")
        patch.setenv("GARDENBUS_NATS_PORT", "0")
        patch.setenv("GARDENBUS_DASHBOARD_PORT", "0")
        patch.setenv("GARDENBUS_REDIS_IMAGE", redis_with_tls())
        deployment = Deployment(DockerCompose(COMPOSE_DIRECTORY, ["compose.yaml", "identities.yaml"]))
        try:
            deployment.run("build", within=900)
            deployment.run("up", "--detach", "--wait", within=600)
            yield deployment
        finally:
            deployment.down("--volumes")


@pytest.fixture(scope="module")
def operator(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The operator's credentials, brought to this machine by the documented command."""
    directory = tmp_path_factory.mktemp("operator") / "operator"
    deployment.run("cp", "keys:/keys/operator", str(directory))
    return directory


@contextlib.asynccontextmanager
async def as_operator(deployment: Deployment, operator: Path) -> AsyncGenerator[Client]:
    login = json.loads((operator / "operator.json").read_text())
    trust = ssl.create_default_context(cafile=str(operator / "ca.crt"))
    client = await nats.connect(  # pyright: ignore[reportUnknownMemberType]
        deployment.nats_url(), user=login["user"], password=login["password"], tls=trust, connect_timeout=10
    )
    try:
        yield client
    finally:
        await client.close()


@pytest.fixture
async def client(deployment: Deployment, operator: Path) -> AsyncIterator[Client]:
    async with as_operator(deployment, operator) as client:
        yield client


async def test_everything_comes_up_healthy_and_the_keys_container_has_ended(deployment: Deployment) -> None:
    async def healthy() -> None:
        health = await asyncio.to_thread(deployment.health)
        for service in ("nats", "redis", *OWN_SERVICES):
            assert health.get(service) == ["healthy"], (service, health.get(service))
        assert health["identity"] == ["healthy", "healthy"]

    await eventually(healthy, every=1)
    assert not (await asyncio.to_thread(deployment.run, "ps", "--quiet", "--status", "running", "keys")).strip()


async def test_shoots_are_carried_out_on_all_seeds(client: Client) -> None:
    await until_ready(client)
    await apply(client, a_project(), *(profile_of(provider) for provider in SEEDS))
    await apply(client, *(shoot_of(provider, f"first-{provider}") for provider in SEEDS))
    placed = await until_reconciled(client, [f"first-{provider}" for provider in SEEDS])
    assert placed == {f"first-{provider}": seed for provider, (_, seed) in SEEDS.items()}


async def test_who_has_no_credentials_is_refused(deployment: Deployment, operator: Path) -> None:
    trust = ssl.create_default_context(cafile=str(operator / "ca.crt"))
    url = deployment.nats_url()
    for login in ({}, {"user": "operator", "password": "a guess"}, {"user": "ann", "password": "a guess"}):
        with pytest.raises((nats.errors.Error, OSError)):
            await nats.connect(  # pyright: ignore[reportUnknownMemberType]
                url, tls=trust, allow_reconnect=False, connect_timeout=10, **login
            )
    with pytest.raises((nats.errors.Error, OSError)):
        await nats.connect(url, allow_reconnect=False, connect_timeout=10)  # pyright: ignore[reportUnknownMemberType]


def test_the_command_line_of_the_host_is_the_operators(deployment: Deployment, operator: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "GARDENBUS_CONFIG": str(tmp_path / "config.yaml")}
    trust = ("--credentials", str(operator / "operator.json"), "--ca", str(operator / "ca.crt"))
    url = deployment.nats_url().replace("nats://", "tls://")
    for arguments in (("config", "set-context", "compose", "--nats-url", url, *trust, "--current"), ("get", "seeds")):
        done = subprocess.run(
            [str(gardenbus_program()), *arguments], env=environ, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done
    assert "aws-eu1" in done.stdout


def test_keys_are_for_the_user_of_their_container_alone_and_nobody_else_has_them(deployment: Deployment) -> None:
    script = 'find /keys -type f -printf "%m %u %P\\n"; find / -xdev -name ca.key 2>/dev/null; ls /authority 2>&1; true'
    for service in ("relay", "scheduler", "dashboard"):
        reported = deployment.run("exec", "-T", service, "sh", "-c", script).split("\n")
        files = {line.split()[2]: line.split()[:2] for line in reported if len(line.split()) == 3}
        assert set(files) == {"ca.crt", "nats.nk", *(["redis.password"] if service != "dashboard" else [])}
        assert all(owned == ["600", "gardenbus"] for owned in files.values()), files
        assert not [line for line in reported if line.endswith("ca.key")]


def test_redis_asks_who_it_is(deployment: Deployment) -> None:
    query = "redis-cli --tls --cacert /keys/ca.crt -h localhost keys '*'; redis-cli -h localhost ping; true"
    reported = deployment.run("exec", "-T", "redis", "sh", "-c", query)
    assert "NOAUTH" in reported
    assert "PONG" not in reported


async def test_what_was_stored_survives_a_stop_and_a_start(deployment: Deployment, operator: Path) -> None:
    await asyncio.to_thread(deployment.run, "stop")
    await asyncio.to_thread(deployment.run, "up", "--detach", "--wait", within=600)
    async with as_operator(deployment, operator) as client:
        await until_reconciled(client, [f"first-{provider}" for provider in SEEDS])
        await until_ready(client)
        await apply(client, shoot_of("aws", "after-the-start"))
        await until_reconciled(client, ["after-the-start"])
