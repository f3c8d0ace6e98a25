"""Two Kubernetes APIs beside each other: that of a landscape, and a real kube-apiserver with etcd.

The landscape is one of `gardenbus up`, with the defaults. The real API server is that of a shoot of it, on a seed of
the backend `processes`: etcd, which syncs each write, and kube-apiserver with its watch cache.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import aiohttp

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.agent.kubernetes.kubeconfig import parse_kubeconfig
from gardenbus.bench.harness.process_costs import cpu_seconds
from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.common.errors import GardenbusError

OWN, PEER = "Gardenbus", "kube-apiserver"
NAMESPACE = "garden-bench"
KUBE_BINARIES = "GARDENBUS_KUBE_BIN"
"""Variable: a directory with etcd, kube-apiserver and the other programs of control planes."""

_PROGRAMS = ("etcd", "kube-apiserver")
_READY_SECONDS = 300.0
_TIMEOUT_SECONDS = 60.0

_LANDSCAPE = """\
apiVersion: gardenlet.config.gardener.cloud/v1alpha1
kind: GardenletConfiguration
seedConfig:
  metadata: {{name: peer}}
  spec:
    provider: {{type: local, region: here, zones: [a]}}
resources: {{capacity: {{shoots: "1"}}}}
backend: {{type: processes, binaries: {binaries}}}
---
apiVersion: core.gardener.cloud/v1beta1
kind: CloudProfile
metadata: {{name: local}}
spec:
  type: local
  kubernetes: {{versions: [{{version: {version}}}]}}
  machineImages: [{{name: none, versions: [{{version: 1.0.0}}]}}]
  machineTypes: [{{name: none, cpu: "1", gpu: "0", memory: 1Gi}}]
  regions: [{{name: here, zones: [{{name: a}}]}}]
---
apiVersion: core.gardener.cloud/v1beta1
kind: Project
metadata: {{name: bench}}
spec: {{namespace: {namespace}}}
---
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {{name: peer, namespace: {namespace}}}
spec:
  cloudProfile: {{kind: CloudProfile, name: local}}
  region: here
  kubernetes: {{version: {version}}}
  provider: {{type: local}}
"""


class ApiServer(NamedTuple):
    """One of the two: a client, and the processes behind it by their names."""

    name: str
    client: KubernetesClient
    pids: Mapping[str, Sequence[int]]
    others: frozenset[int]
    """Processes below those that are not its own."""

    def cpu_seconds(self) -> Mapping[str, float]:
        """CPU of each process so far. Raises BenchFailed when one is gone."""
        try:
            return {name: sum(cpu_seconds(pid, self.others) for pid in pids) for name, pids in self.pids.items()}
        except ProcessLookupError as error:
            raise BenchFailed(f"{self.name}: {error}") from error


@asynccontextmanager
async def two_api_servers() -> AsyncGenerator[tuple[ApiServer, ApiServer, str]]:
    """Both, and the version of the real one; they end with the block. Raises BenchFailed where one does not start."""
    binaries = os.environ.get(KUBE_BINARIES, "")
    if not all((Path(binaries) / name).is_file() for name in _PROGRAMS):
        raise BenchFailed(f"{KUBE_BINARIES} names no directory with {' and '.join(_PROGRAMS)} (.ci/kube builds one)")
    version = _run(f"{binaries}/kube-apiserver", "--version").split()[-1]
    with tempfile.TemporaryDirectory(prefix="gardenbus-peers-") as folder:
        directory = Path(folder) / "landscape"
        manifests = Path(folder) / "landscape.yaml"
        manifests.write_text(
            _LANDSCAPE.format(binaries=binaries, version=version.removeprefix("v"), namespace=NAMESPACE)
        )
        _gardenbus(directory, "up", "-f", str(manifests), "--detach")
        try:
            peer = parse_kubeconfig(await _kubeconfig_of_shoot(directory), source=PEER)
            own = parse_kubeconfig(_gardenbus(directory, "kubeconfig", "--landscape"), source=OWN)
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
                of_peer = peer.client(session, timeout_seconds=_TIMEOUT_SECONDS)
                await _until_responding(of_peer)
                pids = _processes(directory)
                kube = {name: pids[name] for name in _PROGRAMS}
                yield (
                    ApiServer(
                        OWN,
                        own.client(session, timeout_seconds=_TIMEOUT_SECONDS),
                        {"all": pids["up"]},
                        frozenset(chain.from_iterable(kube.values())),
                    ),
                    ApiServer(PEER, of_peer, kube, frozenset()),
                    version,
                )
        finally:
            _gardenbus(directory, "down")
            _end_control_plane(directory)


async def _until_responding(peer: KubernetesClient) -> None:
    """Create the namespace of the loads, once the API server of the shoot responds: all of its processes run then."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        try:
            await peer.apply(f"/api/v1/namespaces/{NAMESPACE}", namespace, manager="bench")
        except GardenbusError as error:
            if time.monotonic() > deadline:
                raise BenchFailed(f"{PEER} does not respond: {error.message}") from error
        else:
            return
        await asyncio.sleep(1.0)


async def _kubeconfig_of_shoot(directory: Path) -> str:
    """The kubeconfig of the shoot, once it has an API server."""
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        try:
            return _gardenbus(directory, "kubeconfig", f"{NAMESPACE}/peer")
        except BenchFailed:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(1.0)


def _processes(directory: Path) -> Mapping[str, Sequence[int]]:
    """Process ids of the supervisor (`up`) and of the programs of the control plane."""
    found: dict[str, list[int]] = {}
    for pid, words in _commands(directory):
        program = Path(words[0]).name
        if program in _PROGRAMS:
            found.setdefault(program, []).append(pid)
        elif "up" in words and "up" not in found:
            found["up"] = [pid]
    missing = {"up", *_PROGRAMS} - found.keys()
    if missing:
        raise BenchFailed(f"no process of {', '.join(sorted(missing))} was found for {directory}")
    return found


def _end_control_plane(directory: Path) -> None:
    """End what is left of a landscape that is down: control planes go on without their gardenlet."""
    for pid, _ in _commands(directory):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _commands(directory: Path) -> Iterator[tuple[int, Sequence[str]]]:
    """Process ids and command lines that name a directory."""
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if entry.name.isdigit() and any(str(directory) in word for word in words):
            yield int(entry.name), words


def _gardenbus(directory: Path, *arguments: str) -> str:
    return _run(str(Path(sys.executable).with_name("gardenbus")), *arguments, "--dir", str(directory))


def _run(*command: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - programs of ours
    if ended.returncode:
        raise BenchFailed(f"{' '.join(command[:2])}: {(ended.stderr or ended.stdout).strip()[-2000:]}")
    return ended.stdout
