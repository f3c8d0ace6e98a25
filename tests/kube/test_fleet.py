"""A fleet of real clusters: shoots of one seed become seeds, these become members, and a placement goes out to them."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from gardenbus.common.api.document import section
from tests.support.eventually import eventually
from tests.support.kubectl import Kubectl
from tests.support.landscape import Landscape, a_landscape
from tests.support.member_agents import observed_conditions

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

Document = dict[str, Any]

NAMES = ("brest", "cascais", "kiel")
WITHIN = 150.0
FLEET = "placement.kubernetes-fleet.io/v1beta1"
EXAMPLES = Path(__file__).parents[2] / "examples"


def carried(api_version: str, kind: str, name: str, **content: Any) -> Document:
    metadata: Document = {"name": name} if kind == "Namespace" else {"name": name, "namespace": "tides"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def a_deployment(name: str) -> Document:
    """Nodes do not exist: a Deployment of no replicas is available once its controller has seen it."""
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": name, "image": "registry.example.org/tides:1"}]},
    }
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
    return carried("apps/v1", "Deployment", name, spec=spec)


def a_config_map(number: int, text: str) -> Document:
    return carried("v1", "ConfigMap", f"station-{number}", data={"text": text})


def twenty_objects() -> list[Document]:
    """Of six kinds."""
    service = {"ports": [{"port": 80}], "selector": {"app": "gauge"}}
    return [
        carried("v1", "Namespace", "tides"),
        *(a_config_map(number, "one") for number in range(6)),
        *(carried("v1", "Secret", f"key-{number}", stringData={"key": "k"}) for number in range(4)),
        *(carried("v1", "ServiceAccount", f"keeper-{number}") for number in range(3)),
        *(carried("v1", "Service", f"gauge-{number}", spec=service) for number in range(3)),
        *(a_deployment(f"gauge-{number}") for number in range(3)),
    ]


def a_placement(**strategy: Any) -> Document:
    rolling = {"maxUnavailable": 1, "maxSurge": 1, "unavailablePeriodSeconds": 1}
    return {
        "apiVersion": FLEET,
        "kind": "ClusterResourcePlacement",
        "metadata": {"name": "tides"},
        "spec": {
            "resourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": "tides"}],
            "policy": {"placementType": "PickN", "numberOfClusters": 3},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling, **strategy},
        },
    }


class RealFleet:
    """The landscape, and kubectl for each of its members."""

    def __init__(self, landscape: Landscape, binaries: str, directory: Path) -> None:
        self.landscape = landscape
        self.directory = directory
        self.clusters = {name: Kubectl(f"{binaries}/kubectl", directory / f"{name}.kubeconfig") for name in NAMES}

    async def obtain_kubeconfigs(self) -> None:
        for name, kubectl in self.clusters.items():
            done = await self.landscape.command("kubeconfig", f"garden/{name}", "--file", str(kubectl.kubeconfig))
            assert done.code == 0, done.stderr

    async def until_ready(self) -> None:
        async def ready() -> None:
            for name in NAMES:
                member = await self.landscape.query(f"get.membercluster._.{name}")
                agents: list[Document] = section(member, "status").get("agentStatus") or [{}]
                assert ("Healthy", "True") in {
                    (each["type"], each["status"]) for each in agents[0].get("conditions", [])
                }, member["status"]
                assert member["status"]["properties"]["k8s.io/k8s-version"]["value"] == "v1.34.4"

        await eventually(ready, within=WITHIN, every=0.5)

    async def until_conditions(self, **statuses: str) -> Document:
        async def reached() -> Document:
            placement = await self.landscape.query("get.clusterresourceplacement._.tides")
            found = observed_conditions(placement)
            for kind, status in statuses.items():
                condition = found.get(f"ClusterResourcePlacement{kind}", ("", ""))
                assert condition[0] == status, json.dumps(placement["status"], indent=1)
            stale = [
                each["type"]
                for each in placement["status"]["conditions"]
                if each.get("observedGeneration") != placement["metadata"]["generation"]
            ]
            assert stale == []
            return placement

        return await eventually(reached, within=WITHIN, every=0.2)

    async def texts(self, number: int = 0) -> dict[str, str]:
        """The text of a ConfigMap in each cluster."""
        path = ("-n", "tides", "get", "configmap", f"station-{number}", "-o", "jsonpath={.data.text}")
        return dict(zip(NAMES, await asyncio.gather(*(self.clusters[name].text(*path) for name in NAMES)), strict=True))

    async def until_texts(self, wanted: dict[str, str], number: int = 0) -> None:
        async def reached() -> None:
            assert await self.texts(number) == wanted

        await eventually(reached, within=WITHIN, every=0.3)


async def test_twenty_objects_live_on_three_real_clusters(
    tmp_path: Path, binaries: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", binaries)
    files = ("-f", str(EXAMPLES / "fleet-real"), "-f", str(EXAMPLES / "fleet" / "placements.yaml"))
    began = time.monotonic()
    async with a_landscape(tmp_path / "state", *files, ready_within=WITHIN) as landscape:
        fleet = RealFleet(landscape, binaries, tmp_path)
        await fleet.until_ready()
        await fleet.obtain_kubeconfigs()
        print(f"three shoots ordered, made seeds, and enrolled: {time.monotonic() - began:.1f} s")
        await the_example_is_there(fleet)
        await landscape.publish("garden.apply", [*twenty_objects(), a_placement()])
        await fleet.until_conditions(Applied="True", Available="True")
        for kubectl in fleet.clusters.values():
            kinds = "configmap,secret,serviceaccount,service,deployment"
            selector = ("-l", "kubernetes-fleet.io/applied-by=member-agent")
            found = await kubectl.text("-n", "tides", "get", kinds, *selector, "-o", "name")
            assert len(found.split()) == 19
        await a_change_is_rolled_out(fleet)
        await a_drift_is_corrected(fleet)
        await a_conflict_is_reported(fleet)
        await an_eviction_takes_everything_off(fleet)


async def the_example_is_there(fleet: RealFleet) -> None:
    """The museum is on two stations, and says at which: an override sees to that."""

    async def shown() -> None:
        for name in ("cascais", "kiel"):
            found = await fleet.clusters[name].text("get", "namespaces", "tide-museum", "--ignore-not-found")
            assert "tide-museum" in found, name
            shown_there = ("-n", "tide-museum", "get", "configmap", "museum", "-o", "jsonpath={.data.station}")
            assert await fleet.clusters[name].text(*shown_there) == name

    await eventually(shown, within=WITHIN, every=0.5)
    assert "tide-museum" not in await fleet.clusters["brest"].text("get", "namespaces", "-o", "name")


async def a_change_is_rolled_out(fleet: RealFleet) -> None:
    await fleet.landscape.query("apply", a_config_map(0, "two"))
    fleet.landscape.kill("memberagent")
    await fleet.until_texts(dict.fromkeys(NAMES, "two"))
    await fleet.until_conditions(Applied="True", Available="True")


async def a_drift_is_corrected(fleet: RealFleet) -> None:
    drift = ("-n", "tides", "patch", "configmap", "station-1", "--type=merge", "-p", '{"data":{"text":"drift"}}')
    await fleet.clusters["cascais"].text(*drift)
    await fleet.until_texts(dict.fromkeys(NAMES, "one"), 1)


async def a_conflict_is_reported(fleet: RealFleet) -> None:
    await fleet.landscape.query("apply", a_placement(applyStrategy={"type": "ServerSideApply"}))
    await fleet.until_conditions(Applied="True")
    take = ("-n", "tides", "patch", "configmap", "station-2", "--type=merge", "-p", '{"data":{"text":"mine"}}')
    await fleet.clusters["kiel"].text(*take, "--field-manager=harbour-master")
    placement = await fleet.until_conditions(Applied="False")
    (failed,) = [
        each for cluster in placement["status"]["placementStatuses"] for each in cluster.get("failedPlacements") or ()
    ]
    assert failed["name"] == "station-2"
    assert failed["condition"]["message"] == "fields belong to others: harbour-master manages .data.text"
    force = {"type": "ServerSideApply", "serverSideApplyConfig": {"force": True}}
    await fleet.landscape.query("apply", a_placement(applyStrategy=force))
    await fleet.until_texts(dict.fromkeys(NAMES, "one"), 2)
    await fleet.until_conditions(Applied="True", Available="True")


async def an_eviction_takes_everything_off(fleet: RealFleet) -> None:
    away = [{"key": "away", "value": "", "effect": "NoSchedule"}]
    await fleet.landscape.query("patch.membercluster._.brest", {"spec": {"taints": away}})
    eviction = {
        "apiVersion": FLEET,
        "kind": "ClusterResourcePlacementEviction",
        "metadata": {"name": "tides-off-brest"},
        "spec": {"placementName": "tides", "clusterName": "brest"},
    }
    await fleet.landscape.query("apply", eviction)

    async def gone() -> None:
        assert "namespace/tides" not in await fleet.clusters["brest"].text("get", "namespaces", "-o", "name")
        assert "tides-work" not in await fleet.clusters["brest"].text("get", "appliedworks", "-o", "name")

    await eventually(gone, within=WITHIN, every=0.5)
    assert "tides" in await fleet.clusters["kiel"].text("get", "namespaces", "-o", "name")
