"""The compose deployment, built and brought up for real. Skipped where there is no Docker engine with compose."""

import asyncio
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import nats
import nats.errors
import pytest
import yaml
from nats.aio.client import Client
from testcontainers.compose import DockerCompose

from tests.docker.deployment import COMPOSE_DIRECTORY, OWN_SERVICES, Deployment, docker, has_engine_with_compose
from tests.support.builders import a_cloudprofile, a_project, a_shoot
from tests.support.eventually import eventually
from tests.support.sessions import PAGES, ROOT, blocks

pytestmark = [pytest.mark.docker, pytest.mark.slow]

PROJECT = f"gardenbus-test-{os.getpid()}"
AGENTS = ("gardenlet-earth", "memberagent")
RETRIES = 3
SEEDS = {"local": ("earth", "earth"), "aws": ("eu-west-1", "aws-eu1"), "gcp": ("europe-west1", "gcp-eu1")}

Document = dict[str, Any]


def await_streams(deployment: Deployment) -> None:
    """Agents alone, before anybody has made the streams: they fail more checks than are allowed, and wait on."""
    deadline = time.monotonic() + 120
    while True:
        checks = {service: deployment.last_check(service) for service in AGENTS}
        assert {check.status for check in checks.values()} == {"starting"}, checks
        if all(check.failures > RETRIES for check in checks.values()):
            break
        assert time.monotonic() < deadline, checks
        time.sleep(0.5)
    for check in checks.values():
        assert "does not exist yet" in check.output


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    if not has_engine_with_compose():
        pytest.skip("no Docker engine with compose")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPOSE_PROJECT_NAME", PROJECT)
        patch.setenv("GARDENBUS_NATS_PORT", "0")
        compose = DockerCompose(COMPOSE_DIRECTORY, "compose.yaml", build=True, wait=True)
        deployment = Deployment(compose)
        try:
            deployment.run("up", "--build", "--detach", *AGENTS, within=600)
            deployment.run("build", within=600)  # the agents wait meanwhile
            await_streams(deployment)
            compose.start()
            yield deployment
        finally:
            deployment.down("--volumes")


@pytest.fixture
async def client(deployment: Deployment) -> AsyncIterator[Client]:
    client = await nats.connect(deployment.nats_url(), connect_timeout=10)  # pyright: ignore[reportUnknownMemberType]
    yield client
    await client.close()


async def query(client: Client, tail: str, body: bytes = b"") -> Any:
    try:
        response = json.loads((await client.request(f"garden.api.{tail}", body, timeout=10)).data)
    except (nats.errors.Error, OSError) as error:
        raise AssertionError(str(error) or type(error).__name__) from error
    assert response["ok"], response
    return response["result"]


async def apply(client: Client, *documents: Document) -> None:
    """Apply durably, as `nats pub garden.apply` does."""
    response = await client.request("garden.apply", yaml.safe_dump_all(documents).encode(), timeout=10)
    assert json.loads(response.data)["seq"]


def profile_of(provider: str) -> Document:
    region, _ = SEEDS[provider]
    return a_cloudprofile(provider, spec={"type": provider, "regions": [{"name": region}]})


def shoot_of(provider: str, name: str) -> Document:
    region, _ = SEEDS[provider]
    networking = {"nodes": "10.180.0.0/16", "pods": "100.96.0.0/11", "services": "100.64.0.0/13"}
    spec = {
        "cloudProfile": {"name": provider},
        "region": region,
        "provider": {"type": provider},
        "networking": networking,
    }
    return a_shoot(name, spec=spec)


async def until_reconciled(client: Client, names: Sequence[str]) -> dict[str, str]:
    """Wait until the shoots are reconciled; answer their seeds."""

    async def reconciled() -> dict[str, str]:
        shoots = {shoot["metadata"]["name"]: shoot for shoot in (await query(client, "list.shoot"))["items"]}
        for name in names:
            status: Document = shoots[name].get("status", {}) if name in shoots else {}
            assert status.get("lastOperation", {}).get("state") == "Succeeded", (name, status)
        return {name: shoots[name]["spec"]["seedName"] for name in names}

    return await eventually(reconciled, every=0.5)


async def until_ready(client: Client) -> None:
    async def ready() -> None:
        seeds = (await query(client, "list.seed"))["items"]
        states = {
            seed["metadata"]["name"]: condition["status"]
            for seed in seeds
            for condition in seed.get("status", {}).get("conditions", [])
            if condition["type"] == "GardenletReady"
        }
        assert states == {seed: "True" for _, seed in SEEDS.values()}

    await eventually(ready, every=0.5)


async def until_healthy(deployment: Deployment, **replicas: int) -> None:
    async def healthy() -> None:
        health = await asyncio.to_thread(deployment.health)
        for service in ("nats", "redis", *OWN_SERVICES):
            expected = ["healthy"] * replicas.get(service.replace("-", "_"), 1)
            assert health.get(service) == expected, (service, health.get(service))

    await eventually(healthy, every=1)


async def test_everything_comes_up_healthy(deployment: Deployment) -> None:
    await until_healthy(deployment)


def test_no_service_of_ours_is_root_or_can_build_anything(deployment: Deployment) -> None:
    for service in OWN_SERVICES:
        script = "id -u; command -v gcc cc make pip pip3 uv curl || true; python -c 'import pip' 2>&1 | tail -n 1"
        reported = deployment.run("exec", "-T", service, "sh", "-c", script).split("\n")
        assert reported[:2] == ["10001", "ModuleNotFoundError: No module named 'pip'"], (service, reported)


async def test_manifests_through_the_published_port_are_carried_out_on_all_seeds(client: Client) -> None:
    await until_ready(client)
    await apply(client, a_project(), *(profile_of(provider) for provider in SEEDS))
    await apply(client, *(shoot_of(provider, f"first-{provider}") for provider in SEEDS))
    placed = await until_reconciled(client, [f"first-{provider}" for provider in SEEDS])
    assert placed == {f"first-{provider}": seed for provider, (_, seed) in SEEDS.items()}


async def test_every_service_scales(deployment: Deployment, client: Client) -> None:
    scales = {"scheduler": 3, **{service: 2 for service in OWN_SERVICES if service != "scheduler"}}
    arguments = [part for service, count in scales.items() for part in ("--scale", f"{service}={count}")]
    await asyncio.to_thread(deployment.run, "up", "--detach", "--no-recreate", *arguments)
    await until_healthy(deployment, **{service.replace("-", "_"): count for service, count in scales.items()})
    names = [f"second-{provider}-{number}" for provider in SEEDS for number in range(5)]
    await apply(client, *(shoot_of(name.split("-")[1], name) for name in names))
    placed = await until_reconciled(client, names)
    assert set(placed.values()) == {seed for _, seed in SEEDS.values()}
    await asyncio.to_thread(deployment.run, "up", "--detach", "--no-recreate", "--scale", "scheduler=1")


async def test_what_was_stored_survives_a_restart(deployment: Deployment) -> None:
    await asyncio.to_thread(deployment.run, "restart")
    client = await nats.connect(deployment.nats_url(), connect_timeout=10)  # pyright: ignore[reportUnknownMemberType]
    try:

        async def responding() -> list[Document]:
            return (await query(client, "list.shoot"))["items"]

        shoots = await eventually(responding, every=0.5)
        assert {f"first-{provider}" for provider in SEEDS} <= {shoot["metadata"]["name"] for shoot in shoots}
        await until_ready(client)
        await apply(client, shoot_of("aws", "third"))
        await until_reconciled(client, ["third"])
    finally:
        await client.close()


async def test_going_down_keeps_the_data(deployment: Deployment) -> None:
    await asyncio.to_thread(deployment.down)
    await asyncio.to_thread(deployment.run, "up", "--detach", "--wait")
    client = await nats.connect(deployment.nats_url(), connect_timeout=10)  # pyright: ignore[reportUnknownMemberType]
    try:
        await until_reconciled(client, ["third"])
    finally:
        await client.close()


DOCUMENTED = [
    command
    for page in PAGES
    for block in blocks(page)
    if block.how == "needs: docker"
    for command in block.text.splitlines()
]


def foreign_images_missing() -> list[str]:
    """Images of the profile that are not built here, and are neither on this machine nor in a registry it can reach."""
    profile = docker(
        "compose",
        "-f",
        str(COMPOSE_DIRECTORY / "compose.yaml"),
        "--profile",
        "observability",
        "config",
        "--format",
        "json",
    )
    services = json.loads(profile.stdout)["services"]
    foreign = [services[name]["image"] for name in ("prometheus", "grafana")]
    return [
        image
        for image in foreign
        if docker("image", "inspect", image).returncode != 0 and docker("pull", "--quiet", image).returncode != 0
    ]


@pytest.mark.parametrize("command", dict.fromkeys(DOCUMENTED))
def test_a_documented_command_does_what_it_should(deployment: Deployment, command: str) -> None:
    if "--profile observability" in command and (missing := foreign_images_missing()):
        pytest.skip(f"{', '.join(missing)}: neither here nor to be pulled")
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
    assert all(state == "healthy" for states in deployment.health().values() for state in states)
