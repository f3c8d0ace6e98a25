"""A compose project that is brought up on a real engine."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from testcontainers.compose import DockerCompose

from tests.support.sessions import ROOT

COMPOSE_DIRECTORY = Path(__file__).parents[2] / "deploy" / "compose"
OWN_SERVICES = (
    "relay",
    "apiserver",
    "scheduler",
    "lifecycle",
    "controllermanager",
    "managedseedset",
    "autoscaler",
    "placement",
    "gardenlet-earth",
    "gardenlet-aws",
    "gardenlet-gcp",
    "memberagent",
)

LEAKED_ENDPOINT = "has active endpoints"


def has_engine_with_compose() -> bool:
    if shutil.which("docker") is None:
        return False
    for command in (["docker", "info"], ["docker", "compose", "version"]):
        if subprocess.run(command, capture_output=True, timeout=30, check=False).returncode:
            return False
    return True


class HealthCheck(NamedTuple):
    """What the engine knows of a container's health; `failures` among the last five checks, and what the last said."""

    status: str
    failures: int
    output: str


class Deployment:
    """The compose project of this test run."""

    def __init__(self, compose: DockerCompose) -> None:
        self.compose = compose

    def run(self, *arguments: str, within: float = 120) -> str:
        """Run `docker compose` on it."""
        command = [*self.compose.compose_command_property, *arguments]
        done = subprocess.run(
            command, cwd=COMPOSE_DIRECTORY, capture_output=True, text=True, timeout=within, check=False
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
        return done.stdout

    def down(self, *options: str) -> None:
        """Take it down, whatever profiles were started.

        An engine that is busy can leak an endpoint of a network, which it then cannot remove.
        """
        try:
            self.run("--profile", "*", "down", *options)
        except AssertionError as error:
            if LEAKED_ENDPOINT not in str(error):
                raise

    def health(self) -> dict[str, list[str]]:
        """The health of each service's containers."""
        found: dict[str, list[str]] = {}
        for line in self.run("ps", "--all", "--format", "json").splitlines():
            container = json.loads(line)
            found.setdefault(container["Service"], []).append(container["Health"])
        return found

    def last_check(self, service: str) -> HealthCheck:
        """The health of a service's only container."""
        container = self.run("ps", "--all", "--quiet", service).strip()
        health = json.loads(docker("inspect", "--format", "{{json .State.Health}}", container).stdout)
        failed = [check["Output"] for check in health["Log"] or () if check["ExitCode"] != 0]
        return HealthCheck(health["Status"], len(failed), failed[-1] if failed else "")

    def nats_url(self) -> str:
        """Where NATS is published."""
        return f"nats://{self.run('port', 'nats', '4222').strip()}"


def docker(*words: str, within: float = 120) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["docker", *words], cwd=ROOT, capture_output=True, text=True, timeout=within, check=False)
