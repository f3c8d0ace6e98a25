"""Shoots that are real: ordered, reached by kubectl, put to sleep, woken, moved, and gone without a trace."""

import base64
import json
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from gardenbus.common.api.document import section
from gardenbus.gardenlet.backend.processes.child import running_below
from tests.support.builders import a_cloudprofile, a_gardenlet_configuration, a_project, a_shoot, merged
from tests.support.control_plane_processes import left_below, listening, ports_below
from tests.support.eventually import eventually
from tests.support.kubectl import Kubectl
from tests.support.landscape import Landscape, RequestRejected, a_landscape

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

Document = dict[str, Any]

SEEDS = ("seed-a", "seed-b")
NAMES = ("apollo", "hermes", "zeus")
NAMESPACE = "garden-dev"
WITHIN = 150.0
SECRET: Document = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "backup", "namespace": "garden"},
    "stringData": {"accessKeyID": "example"},
}
BACKUP: Document = {
    "provider": "aws",
    "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "backup", "namespace": "garden"},
}


def manifests(binaries: str) -> list[Document]:
    gardenlets = [
        merged(
            a_gardenlet_configuration(seed, shoots=5),
            {
                "backend": {"type": "processes", "binaries": binaries},
                "seedConfig": {"spec": {"backup": BACKUP}},
                "controllers": {"seed": {"leaseResyncSeconds": 1}, "shootCare": {"syncPeriod": "2s"}},
            },
        )
        for seed in SEEDS
    ]
    return [
        a_project("garden", "garden"),
        a_project(),
        a_cloudprofile(spec={"kubernetes": {"versions": [{"version": "1.34.4"}]}}),
        SECRET,
        *gardenlets,
    ]


def an_order(name: str) -> Document:
    workers: Document = {} if name == "zeus" else {"provider": {"workers": []}}
    return merged(a_shoot(name, NAMESPACE), {"spec": {"kubernetes": {"version": "1.34.4"}, **workers}})


class Clusters:
    """The shoots of the landscape, and kubectl."""

    def __init__(self, landscape: Landscape, binaries: str, directory: Path) -> None:
        self.landscape = landscape
        self.kubectl_program = f"{binaries}/kubectl"
        self.directory = directory

    async def shoot(self, name: str) -> Document:
        return await self.landscape.query(f"get.shoot.{NAMESPACE}.{name}")

    async def until(self, name: str, holds: Callable[[Document], bool]) -> Document:
        async def held() -> Document:
            shoot = await self.shoot(name)
            assert holds(shoot), json.dumps(shoot.get("status"))
            return shoot

        return await eventually(held, within=WITHIN, every=0.2)

    async def kubeconfig(self, name: str, *options: str) -> Path:
        file = self.directory / f"{name}.kubeconfig"
        done = await self.landscape.command("kubeconfig", f"{NAMESPACE}/{name}", "--file", str(file), *options)
        assert done.code == 0, done.stderr
        return file

    async def kubectl(self, file: Path, *arguments: str) -> str:
        return await Kubectl(self.kubectl_program, file).text(*arguments)


def is_done(operation: str) -> Callable[[Document], bool]:
    """The last operation was of this type, and succeeded."""

    def holds(shoot: Document) -> bool:
        status = section(shoot, "status")
        last = section(status, "lastOperation")
        is_current = status.get("observedGeneration") == shoot["metadata"]["generation"]
        return last.get("type") == operation and last.get("state") == "Succeeded" and is_current

    return holds


def conditions(shoot: Document) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["message"]) for each in shoot["status"]["conditions"]}


async def test_three_shoots_live_their_lives_on_two_seeds(tmp_path: Path, binaries: str) -> None:
    file = tmp_path / "landscape.yaml"
    file.write_text(yaml.safe_dump_all(manifests(binaries)))
    async with a_landscape(tmp_path / "state", "-f", str(file)) as landscape:
        clusters = Clusters(landscape, binaries, tmp_path)
        began = time.monotonic()
        await landscape.publish("garden.apply", [an_order(name) for name in NAMES])
        await clusters.until("apollo", lambda shoot: bool(section(shoot, "status", "lastOperation")))
        landscape.kill("gardenlet")
        for name in NAMES:
            await clusters.until(name, is_done("Create"))
        print(f"ordered, and the gardenlet killed meanwhile: {time.monotonic() - began:.1f} s")

        files = {name: await clusters.kubeconfig(name) for name in NAMES}
        for name, each in files.items():
            assert (each.stat().st_mode & 0o077) == 0
            assert "kube-system" in await clusters.kubectl(each, "get", "namespaces", "-o", "name")
            await clusters.kubectl(each, "create", "configmap", "written", f"--from-literal=by={name}")
        await conditions_report_what_is_there(clusters)
        await what_ends_is_started_anew(clusters, files["hermes"])
        await a_shoot_sleeps_and_wakes(clusters, "apollo")
        await a_shoot_moves_with_its_data(clusters, "hermes", files["hermes"])
        await all_are_gone_without_a_trace(clusters)
        await one_of_the_same_name_is_another(clusters, "apollo")


async def conditions_report_what_is_there(clusters: Clusters) -> None:
    apollo = await clusters.until("apollo", lambda shoot: bool(shoot["status"].get("conditions")))
    found = conditions(apollo)
    assert found["APIServerAvailable"] == ("True", "API server /healthz endpoint responded with success status code.")
    assert {status for status, _ in found.values()} == {"True"}
    zeus = await clusters.until("zeus", lambda shoot: "EveryNodeReady" in conditions(shoot))
    assert conditions(zeus)["EveryNodeReady"][0] == "False"


async def what_ends_is_started_anew(clusters: Clusters, file: Path) -> None:
    directory = next(clusters.directory.glob("**/control-planes/shoot--dev--hermes--*"))
    for running in list(running_below(directory)):
        running.child.signal(signal.SIGKILL)

    async def responses() -> None:
        assert "written" in await clusters.kubectl(file, "get", "configmaps", "-o", "name")

    await eventually(responses, within=WITHIN, every=1.0)


async def a_shoot_sleeps_and_wakes(clusters: Clusters, name: str) -> None:
    directory = next(clusters.directory.glob(f"**/control-planes/shoot--dev--{name}--*"))
    at = f"patch.shoot.{NAMESPACE}.{name}"
    await clusters.landscape.query(at, {"spec": {"hibernation": {"enabled": True}}})
    asleep = await clusters.until(name, lambda shoot: shoot["status"].get("hibernated") is True)
    assert list(running_below(directory)) == []
    assert conditions(asleep)["APIServerAvailable"] == ("True", "Shoot cluster has been hibernated.")
    with pytest.raises(RequestRejected, match="hibernated"):
        await clusters.landscape.query(f"adminkubeconfig.{NAMESPACE}.{name}")
    await clusters.landscape.query(at, {"spec": {"hibernation": {"enabled": False}}})
    clusters.landscape.kill("gardenlet")
    await clusters.until(name, lambda shoot: shoot["status"].get("hibernated") is False)
    assert "written" in await clusters.kubectl(await clusters.kubeconfig(name), "get", "configmaps", "-o", "name")


def life_of(kubeconfig: Document) -> timedelta:
    """Of the certificate, from now on."""
    data = base64.b64decode(kubeconfig["users"][0]["user"]["client-certificate-data"])
    return x509.load_pem_x509_certificate(data).not_valid_after_utc - datetime.now(UTC)


def port_of(kubeconfig: Document) -> int:
    return int(kubeconfig["clusters"][0]["cluster"]["server"].rpartition(":")[2])


async def a_shoot_moves_with_its_data(clusters: Clusters, name: str, old_file: Path) -> None:
    old = yaml.safe_load(old_file.read_text())
    old_file = old_file.rename(old_file.with_suffix(".old"))
    source = (await clusters.shoot(name))["status"]["seedName"]
    destination = next(seed for seed in SEEDS if seed != source)
    (left,) = clusters.directory.glob(f"**/{source}/control-planes/shoot--dev--{name}--*")
    ports = ports_below(left)
    assert port_of(old) in listening(ports)
    done = await clusters.landscape.command("bind", f"{NAMESPACE}/{name}", destination)
    assert done.code == 0, done.stderr
    await clusters.until(
        name, lambda shoot: shoot["status"].get("seedName") == destination and is_done("Restore")(shoot)
    )
    new_file = await clusters.kubeconfig(name)
    new = yaml.safe_load(new_file.read_text())
    (before,), (after,) = old["clusters"], new["clusters"]
    assert after["cluster"]["certificate-authority-data"] == before["cluster"]["certificate-authority-data"]
    assert after["cluster"]["server"] != before["cluster"]["server"]
    written = await clusters.kubectl(new_file, "get", "configmap", "written", "-o", "jsonpath={.data.by}")
    assert written == name
    at_the_new_address = ("--server", after["cluster"]["server"])
    assert "written" in await clusters.kubectl(old_file, *at_the_new_address, "get", "configmaps", "-o", "name")
    assert not left.exists()
    assert list(running_below(left)) == []
    assert listening(ports) == set()
    assert len(list(clusters.directory.glob(f"**/.backups/*/{left.name}"))) == 1


async def all_are_gone_without_a_trace(clusters: Clusters) -> None:
    file = await clusters.kubeconfig("zeus")
    await clusters.kubectl(file, "create", "namespace", "mine")
    await clusters.kubectl(file, "create", "configmap", "more", "--namespace=mine")
    ports = ports_below(clusters.directory)
    assert port_of(yaml.safe_load(file.read_text())) in listening(ports)
    await delete(clusters, *NAMES)
    clusters.landscape.kill("gardenlet")
    await until_gone(clusters, ports)


async def delete(clusters: Clusters, *names: str) -> None:
    for name in names:
        done = await clusters.landscape.command("delete", "shoot", name, "-n", NAMESPACE, "--confirm")
        assert done.code == 0, done.stderr


async def until_gone(clusters: Clusters, ports: set[int]) -> None:
    async def gone() -> None:
        assert await clusters.landscape.list("shoot") == []
        assert left_below(clusters.directory) == []
        assert listening(ports) == set()

    await eventually(gone, within=WITHIN, every=0.5)


async def one_of_the_same_name_is_another(clusters: Clusters, name: str) -> None:
    """It has an authority of its own: a kubeconfig of the one before lets nobody in, also where nobody checks."""
    old_file = (clusters.directory / f"{name}.kubeconfig").rename(clusters.directory / f"{name}.before")
    await clusters.landscape.publish("garden.apply", [an_order(name)])
    await clusters.until(name, is_done("Create"))
    new_file = await clusters.kubeconfig(name, "--expiration", "10m")
    assert life_of(yaml.safe_load(new_file.read_text())) < timedelta(minutes=12)
    assert "written" not in await clusters.kubectl(new_file, "get", "configmaps", "-o", "name")
    server = yaml.safe_load(new_file.read_text())["clusters"][0]["cluster"]["server"]
    with pytest.raises(AssertionError, match="unknown authority"):
        await clusters.kubectl(old_file, "--server", server, "get", "namespaces")
    careless = yaml.safe_load(old_file.read_text())
    careless["clusters"][0]["cluster"] = {"server": server, "insecure-skip-tls-verify": True}
    old_file.write_text(yaml.safe_dump(careless))
    with pytest.raises(AssertionError, match="Unauthorized"):
        await clusters.kubectl(old_file, "get", "namespaces")
    ports = ports_below(clusters.directory)
    await delete(clusters, name)
    await until_gone(clusters, ports)
