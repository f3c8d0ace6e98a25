"""Informers of client-go on the Kubernetes API of a landscape, through kills of the process that serves it."""

import asyncio
import json
import os
import signal
from typing import Any

import pytest

from tests.support.commands import INSTALLED
from tests.support.eventually import eventually
from tests.support.kubernetes_api import KubernetesApi, client_program

pytestmark = pytest.mark.slow
NAMESPACE = "garden-dev"
MAPS = "configmaps.v1."


class Informer:
    """The objects of an informer, as its events say."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.versions: dict[str, str] = {}
        self.has_synced = False

    async def read(self) -> None:
        """Apply events until there are no more."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            text = line.decode()
            if text.startswith("synced"):
                self.has_synced = True
            if not text.startswith("{"):
                continue
            event: dict[str, Any] = json.loads(text)
            if event["verb"].startswith("delete"):
                del self.versions[event["name"]]
            else:
                self.versions[event["name"]] = event["version"]


def stored(kubernetes_api: KubernetesApi) -> dict[str, str]:
    """ConfigMaps of the landscape with their versions."""
    listed = json.loads(kubernetes_api.gardenbus("get", "configmaps", "-A", "-o", "json"))
    metadata = [each["metadata"] for each in listed["items"]]
    return {f"{each['namespace']}/{each['name']}": each["resourceVersion"] for each in metadata}


def write(kubernetes_api: KubernetesApi, *names: str, value: str) -> None:
    """Apply ConfigMaps."""
    file = kubernetes_api.place / "maps.json"
    maps = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "data": {"value": value},
        }
        for name in names
    ]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": maps}))
    kubernetes_api.gardenbus("apply", "-f", str(file))


def kill_server(kubernetes_api: KubernetesApi) -> None:
    """Kill the process that serves the API; it is started anew."""
    status = kubernetes_api.run(str(INSTALLED), "status", "-o", "json", "--dir", str(kubernetes_api.place / "gb"))
    listed = json.loads(status.stdout)  # whatever the state of others is
    (pid,) = (each["pid"] for each in listed["services"] if each["name"] == "kubeapi")
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("form", ["whole", "metadata"])
async def test_informers_end_with_what_is_stored_through_kills_of_the_server(
    kubernetes_api: KubernetesApi, form: str
) -> None:
    program = client_program("informer")
    options = ("-metadata",) if form == "metadata" else ()
    names = [f"{form}-{number}" for number in range(12)]
    command = (program, "-kinds", MAPS, "-seconds", "600", *options)
    async with kubernetes_api.running(*command, piped=True) as process:
        informer = Informer(process)
        reading = asyncio.create_task(informer.read())

        async def agrees() -> None:
            assert informer.has_synced
            assert informer.versions == stored(kubernetes_api)

        write(kubernetes_api, *names[:6], value="1")
        await eventually(agrees, every=0.3)
        kill_server(kubernetes_api)
        write(kubernetes_api, *names, value="2")
        kubernetes_api.gardenbus("delete", "configmap", *names[:3], "-n", NAMESPACE)
        await eventually(agrees, every=0.3)
        kill_server(kubernetes_api)
        kubernetes_api.gardenbus("delete", "configmap", *names[3:], "-n", NAMESPACE)
        await eventually(agrees, every=0.3)
        process.terminate()
        await reading


@pytest.mark.parametrize("content", ["application/json", "application/vnd.kubernetes.protobuf"])
def test_typed_clients_write_kubernetes_own_kinds(kubernetes_api: KubernetesApi, content: str) -> None:
    printed = kubernetes_api.text(client_program("informer"), "-writes", NAMESPACE, "-content", content)
    results = dict(line.rsplit(" -> ", 1) for line in printed.splitlines())
    assert len(results) == 8
    assert set(results.values()) == {"<nil>"}, printed
