"""A compose project of clusters: its servers, a client of it, and shoots that are ordered while servers are away."""

import asyncio
import contextlib
import json
import os
import subprocess
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

import pytest
import yaml
from testcontainers.compose import DockerCompose

from tests.docker.deployment import COMPOSE_DIRECTORY, Deployment, has_engine_with_compose
from tests.support.commands import gardenbus_program
from tests.support.eventually import eventually
from tests.support.sessions import ROOT

SERVICES = ("relay", "apiserver", "scheduler", "lifecycle", "gardenlet-earth")
"""Those that a shoot on one seed takes."""

SERVERS = tuple(f"{kind}{number}" for kind in ("nats", "redis") for number in ("", "-2", "-3"))
SENTINELS = ("sentinel-1", "sentinel-2", "sentinel-3")
SESSION = ROOT / "examples" / "session"


@contextlib.contextmanager
def cluster(
    project: str, files: Sequence[str], services: Sequence[str], *options: str, **environ: str
) -> Generator[Deployment]:
    """Bring all servers and some services up, with options of `up`; take them down with their volumes."""
    if not has_engine_with_compose():
        pytest.skip("no Docker engine with compose")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"COMPOSE_PROJECT_NAME": project, "GARDENBUS_NATS_PORT": "0", **environ}.items():
            patch.setenv(name, value)
        deployment = Deployment(DockerCompose(COMPOSE_DIRECTORY, [*files]))
        try:
            up = ("up", "--build", "--detach", "--wait", *options)
            deployment.run(*up, *SERVERS, *SENTINELS, *services, within=900)
            yield deployment
        finally:
            deployment.down("--volumes")


class Person:
    """Somebody at the command line of this machine, with settings beside those of the environment."""

    def __init__(self, url: str, settings: Mapping[str, str]) -> None:
        self._environ = {**os.environ, "GARDENBUS_NATS_URL": url, **settings}

    def run(self, *arguments: str) -> str:
        """Run `gardenbus`. Raises AssertionError where it fails."""
        command = [str(gardenbus_program()), *arguments]
        done = subprocess.run(command, env=self._environ, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout


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

    await eventually(applied, every=0.5)
    await eventually(made, every=0.5)


async def orders_survive_a_kill(deployment: Deployment, person: Person, directory: Path, nats_server: str) -> None:
    """Kill a server of NATS and the first master of Redis, start them again, and have shoots made all the while."""
    await asyncio.to_thread(person.run, "apply", "-f", str(SESSION / "landscape.yaml"))
    await order(person, directory, "before")
    await asyncio.to_thread(deployment.run, "kill", "--signal", "KILL", nats_server, "redis")
    await order(person, directory, "meanwhile")
    await asyncio.to_thread(deployment.run, "start", nats_server, "redis")

    async def together() -> None:
        assert await asyncio.to_thread(routes, deployment) == ["nats-2", "nats-3"]
        monitored = await asyncio.to_thread(inside, deployment, "sentinel-1", "cat /data/sentinel.conf")
        assert "sentinel monitor garden redis " not in monitored
        followed = await asyncio.to_thread(inside, deployment, "redis", "grep ^replicaof /data/redis.conf")
        assert followed.split()[1] in ("redis-2", "redis-3")

    await eventually(together, every=1)
    await order(person, directory, "after")


def inside(deployment: Deployment, server: str, script: str) -> str:
    """What a script says in a server's container."""
    return deployment.run("exec", "-T", server, "sh", "-c", f"{script}; true")


def routes(deployment: Deployment) -> list[str]:
    """Names of the servers that the first one has routes to."""
    reported = inside(deployment, "nats", "wget -q -O - http://127.0.0.1:8222/routez")
    return sorted({route["remote_name"] for route in json.loads(reported)["routes"]})
