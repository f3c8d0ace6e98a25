"""A landscape with its Kubernetes API, as clients find it: a kubeconfig, and the programs that read it."""

import asyncio
import contextlib
import json
import os
import subprocess
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.commands import INSTALLED

WITHIN_SECONDS = 150
CLIENTS = "GARDENBUS_KUBE_CLIENTS"
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "kubernetes-clients"

Document = dict[str, Any]


class KubernetesApi(NamedTuple):
    """A landscape with the example, and a kubeconfig of its operator with the namespace `garden-dev`."""

    place: Path

    @property
    def kubeconfig(self) -> Path:
        """The file."""
        return self.place / "kubeconfig"

    @property
    def environ(self) -> dict[str, str]:
        """Environment of its clients; what they remember and store of themselves is kept in its place."""
        kept = {name: str(self.place / name) for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")}
        own = {"KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": str(self.place / "cache"), "PYTHONUNBUFFERED": "1"}
        return {**os.environ, **kept, **own}

    def gardenbus(self, *arguments: str) -> str:
        """Run the command; what it prints. Fails with what it says to standard error."""
        done = _run([str(INSTALLED), *arguments, "--dir", str(self.place / "gb")], dict(os.environ))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, *command: str, given: str | None = None) -> "subprocess.CompletedProcess[str]":
        """Run a client."""
        return _run(command, self.environ, given)

    def text(self, *command: str, given: str | None = None) -> str:
        """What a client prints; fails with what it says to standard error."""
        done = self.run(*command, given=given)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextlib.asynccontextmanager
    async def running(self, *command: str, piped: bool = False) -> AsyncGenerator[asyncio.subprocess.Process]:
        """A client that goes on until the end of the block; what it prints is in a file unless it is `piped`."""
        with (self.place / "client.log").open("ab") as log:
            output = asyncio.subprocess.PIPE if piped else log
            process = await asyncio.create_subprocess_exec(
                *command, env=self.environ, stdout=output, stderr=asyncio.subprocess.STDOUT
            )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()

    def object(self, kind: str, name: str, namespace: str = "garden-dev") -> Document:
        """An object, as the landscape has it."""
        return json.loads(self.gardenbus("get", kind, name, "-n", namespace, "-o", "json"))

    def has(self, kind: str, name: str, namespace: str = "garden-dev") -> bool:
        """True while there is an object."""
        return bool(self.gardenbus("get", kind, name, "-n", namespace, "--ignore-not-found", "-o", "name").strip())

    def shoot(self, name: str, **spec: Any) -> Document:
        """The manifest of a Shoot that fits the landscape."""
        present = self.object("shoot", "apollo")
        kept = {field: value for field, value in present["spec"].items() if field not in ("seedName", "dns")}
        named = {field: present[field] for field in ("apiVersion", "kind")}
        return {**named, "metadata": {"name": name, "namespace": "garden-dev"}, "spec": {**kept, **spec}}

    def shoot_file(self, name: str) -> str:
        """A file with that manifest."""
        file = self.place / f"{name}.json"
        file.write_text(json.dumps(self.shoot(name)))
        return str(file)


def _run(
    command: "tuple[str, ...] | list[str]", environ: dict[str, str], given: str | None = None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=WITHIN_SECONDS, env=environ, input=given
    )


def a_kubernetes_api(place: Path, *arguments: str) -> Iterator[KubernetesApi]:
    """Start a landscape with the example, and `up` with these arguments besides; it is stopped afterwards."""
    api = KubernetesApi(place)
    api.gardenbus("up", "--example", "landscape", "--detach", *arguments)
    try:
        api.gardenbus("kubeconfig", "--landscape", "-n", "garden-dev", "--file", str(api.kubeconfig))
        yield api
    finally:
        api.gardenbus("down")


def missing(what: str) -> None:
    """Skip a test whose client is not here; in CI's step of real control planes, which brings all of them, fail."""
    if os.environ.get("CI") and os.environ.get("GARDENBUS_KUBE_BIN"):
        pytest.fail(what)
    pytest.skip(what)


def client_program(name: str) -> str:
    """The path of a client that .ci/kube-clients has built."""
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gardenbus" / "kube-clients"
    directories = [Path(each) for each in (os.environ.get(CLIENTS),) if each]
    for directory in (*directories, *sorted(cached.glob("v*"), reverse=True)):
        if (directory / name).exists():
            return str(directory / name)
    missing(f"there is no {name}: .ci/kube-clients builds it")
    raise AssertionError
