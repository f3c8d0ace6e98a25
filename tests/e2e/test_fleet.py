"""A fleet of thirty clusters and twenty placements with real processes: it changes, and every placement follows."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.eventually import eventually
from tests.support.landscape import Landscape, a_landscape

Document = dict[str, Any]

CLUSTERS = 30
REGIONS = ("north", "south", "west")
FLEET = "placement.kubernetes-fleet.io/v1beta1"
FAIL = "local.backend.gardenbus.io/fail"


def cluster_name(number: int) -> str:
    return f"member-{number:02}"


def region_of(number: int) -> str:
    return REGIONS[number % len(REGIONS)]


def the_agents() -> list[Document]:
    """Two processes, fifteen clusters each, in three regions; every fifth has more nodes."""
    return [
        {
            "apiVersion": "memberagent.config.gardenbus.io/v1alpha1",
            "kind": "MemberAgentConfiguration",
            "metadata": {"name": half},
            "heartbeatPeriodSeconds": 5,
            "clusters": [
                {
                    "metadata": {"name": cluster_name(number), "labels": {"region": region_of(number)}},
                    "properties": {"kubernetes-fleet.io/node-count": "10" if number % 5 == 0 else "3"},
                }
                for number in numbers
            ],
        }
        for half, numbers in (("one", range(CLUSTERS // 2)), ("two", range(CLUSTERS // 2, CLUSTERS)))
    ]


def region_affinity(region: str) -> Document:
    term = {"labelSelector": {"matchLabels": {"region": region}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"clusterSelectorTerms": [term]}}
    return {"clusterAffinity": required}


def policy_of(number: int) -> Document | None:
    """Eight times PickAll, eight times PickN (half of them spread), four times PickFixed."""
    if number < 2:
        return None
    if number < 8:
        return {"placementType": "PickAll", "affinity": region_affinity(REGIONS[number % 3])}
    if number < 12:
        return {"placementType": "PickN", "numberOfClusters": 4, "affinity": region_affinity(REGIONS[number % 3])}
    if number < 16:
        constraint = {"topologyKey": "region", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        return {"placementType": "PickN", "numberOfClusters": 6, "topologySpreadConstraints": [constraint]}
    return {"placementType": "PickFixed", "clusterNames": [cluster_name(number), cluster_name(number + 5)]}


def app(number: int) -> str:
    return f"app-{number:02}"


def a_placement(number: int) -> Document:
    policy = policy_of(number)
    rolling = {"maxUnavailable": "50%", "maxSurge": 1, "unavailablePeriodSeconds": 1}
    spec: Document = {
        "resourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": app(number)}],
        "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
    }
    return {
        "apiVersion": FLEET,
        "kind": "ClusterResourcePlacement",
        "metadata": {"name": app(number)},
        "spec": spec | ({"policy": policy} if policy is not None else {}),
    }


def a_config_map(number: int, version: str, annotations: Mapping[str, str] = {}) -> Document:
    metadata = {"name": "version", "namespace": app(number), "annotations": dict(annotations)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"version": version}}


def manifests() -> list[Document]:
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": app(number)}} for number in range(20)]
    config_maps = [a_config_map(number, "1") for number in range(20)]
    return [*namespaces, *config_maps, *(a_placement(number) for number in range(20))]


class Fleet:
    """The landscape, and what is in its clusters."""

    def __init__(self, landscape: Landscape) -> None:
        self.landscape = landscape

    async def apply(self, *documents: Document) -> None:
        await self.landscape.query("apply", {"apiVersion": "v1", "kind": "List", "items": list(documents)})

    def versions(self, number: int) -> dict[str, str]:
        """What is really in the clusters: cluster → version of an app."""
        found: dict[str, str] = {}
        for file in (self.landscape.directory / "members").glob(f"*/manifests/ConfigMap,,{app(number)},version.json"):
            found[file.parent.parent.name] = json.loads(file.read_text())["manifest"]["data"]["version"]
        return found

    async def bound(self, number: int) -> set[str]:
        """The clusters to which a placement is bound."""
        bindings = await self.landscape.list("clusterresourcebinding")
        return {
            binding["spec"]["targetCluster"]
            for binding in bindings
            if binding["metadata"]["labels"]["kubernetes-fleet.io/parent-CRP"] == app(number)
            and binding["spec"]["state"] == "Bound"
            and "deletionTimestamp" not in binding["metadata"]
        }

    async def until_placed(self, number: int, clusters: set[str], version: str = "1") -> None:
        """Wait until an app of a version is in these clusters, and in no other."""

        async def placed() -> None:
            assert self.versions(number) == dict.fromkeys(clusters, version)
            assert await self.bound(number) == clusters

        await eventually(placed, every=0.5)

    async def conditions(self, number: int) -> dict[str, str]:
        placement = await self.landscape.query(f"get.clusterresourceplacement._.{app(number)}")
        conditions = placement.get("status", {}).get("conditions", [])
        return {each["type"].removeprefix("ClusterResourcePlacement"): each["status"] for each in conditions}

    async def until_condition(self, number: int, kind: str, status: str) -> None:
        async def reports() -> None:
            conditions = await self.conditions(number)
            assert conditions.get(kind) == status, (app(number), conditions)

        await eventually(reports, every=0.5)


@pytest.fixture
async def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Fleet]:
    """Thirty clusters that have joined."""
    monkeypatch.setenv("GARDENBUS_RESOURCE_COLLECTION_SECONDS", "0.5")
    monkeypatch.setenv("GARDENBUS_RESOURCE_INTERVAL_SECONDS", "1")
    configuration = tmp_path / "agents.yaml"
    configuration.write_text(yaml.safe_dump_all(the_agents()))
    async with a_landscape(tmp_path / "landscape", "-f", str(configuration)) as landscape:

        async def joined() -> None:
            clusters = await landscape.list("membercluster")
            agents = [cluster for cluster in clusters if cluster.get("status", {}).get("agentStatus")]
            assert len(agents) == CLUSTERS

        await eventually(joined, every=0.5)
        yield Fleet(landscape)


def in_region(region: str) -> set[str]:
    return {cluster_name(number) for number in range(CLUSTERS) if region_of(number) == region}


async def test_a_fleet_is_placed_on_changed_left_evicted_from_and_rolled_out_to(fleet: Fleet) -> None:
    everywhere = {cluster_name(number) for number in range(CLUSTERS)}
    await fleet.apply(*manifests())
    await _is_placed(fleet, everywhere)
    await _follows_a_label(fleet)
    await _survives_a_cluster_that_leaves(fleet, everywhere)
    await _evicts(fleet)
    await _rolls_out_with_one_cluster_failing(fleet)
    await _overrides(fleet)
    await _leaves_nothing_behind(fleet)


async def _is_placed(fleet: Fleet, everywhere: set[str]) -> None:
    """All twenty get what their policies say, and report it."""
    await asyncio.gather(*(fleet.until_condition(number, "Available", "True") for number in range(20)))
    for number in range(2):
        await fleet.until_placed(number, everywhere)
    for number in range(2, 8):
        await fleet.until_placed(number, in_region(REGIONS[number % 3]))
    for number in range(8, 12):
        bound = await fleet.bound(number)
        assert len(bound) == 4
        assert bound <= in_region(REGIONS[number % 3])
    for number in range(12, 16):
        bound = await fleet.bound(number)
        assert sorted(len(bound & in_region(region)) for region in REGIONS) == [2, 2, 2]
    for number in range(16, 20):
        await fleet.until_placed(number, {cluster_name(number), cluster_name(number + 5)})


async def _follows_a_label(fleet: Fleet) -> None:
    """A cluster that changes its region gets what all of the new region get, and loses nothing."""
    moved = cluster_name(0)
    assert moved in in_region("north")
    before = {number: await fleet.bound(number) for number in range(20)}
    await fleet.apply(
        {
            "apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
            "kind": "MemberCluster",
            "metadata": {"name": moved, "labels": {"region": "south"}},
        }
    )
    for number in range(20):
        is_for_all_of_south = 2 <= number < 8 and REGIONS[number % 3] == "south"
        await fleet.until_placed(number, before[number] | ({moved} if is_for_all_of_south else set()))


async def _survives_a_cluster_that_leaves(fleet: Fleet, everywhere: set[str]) -> None:
    """What a cluster held that leaves is taken off; who counted on it finds another."""
    leaving = min(await fleet.bound(12))
    everywhere.discard(leaving)
    await fleet.landscape.query(f"delete.membercluster._.{leaving}")
    await fleet.until_placed(0, everywhere)

    async def replaced() -> None:
        bound = await fleet.bound(12)
        assert len(bound) == 6
        assert leaving not in bound
        assert leaving not in {each["metadata"]["name"] for each in await fleet.landscape.list("membercluster")}

    await eventually(replaced, every=0.5)
    left = fleet.landscape.directory / "members" / leaving / "manifests"
    assert not list(left.glob("*.json"))


async def _evicts(fleet: Fleet) -> None:
    """An eviction is carried out once; a taint keeps the placement from coming back."""
    bound = await fleet.bound(8)
    evicted = min(bound)
    await fleet.apply(
        {
            "apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
            "kind": "MemberCluster",
            "metadata": {"name": evicted},
            "spec": {"taints": [{"key": "drained", "value": "true", "effect": "NoSchedule"}]},
        },
        {
            "apiVersion": FLEET,
            "kind": "ClusterResourcePlacementEviction",
            "metadata": {"name": "off"},
            "spec": {"placementName": app(8), "clusterName": evicted},
        },
    )

    async def refilled() -> None:
        now = await fleet.bound(8)
        assert evicted not in now
        assert len(now) == 4
        assert fleet.versions(8) == dict.fromkeys(now, "1")
        eviction = await fleet.landscape.query("get.clusterresourceplacementeviction._.off")
        executed = {each["type"]: each["status"] for each in eviction["status"]["conditions"]}
        assert executed.get("Executed") == "True"

    await eventually(refilled, every=0.5)


async def _rolls_out_with_one_cluster_failing(fleet: Fleet) -> None:
    """A new version reaches all clusters but the one that fails, whoever dies meanwhile; a better one reaches all."""
    clusters = await fleet.bound(2)
    failing = min(clusters)
    await fleet.apply(a_config_map(2, "2", {FAIL: f"apply={failing}"}))
    for service in ("memberagent", "placement", "apiserver", "relay"):
        fleet.landscape.kill(service)
        await asyncio.sleep(0.7)
    expected = {cluster: "1" if cluster == failing else "2" for cluster in clusters}

    async def rolled_out() -> None:
        assert fleet.versions(2) == expected
        assert (await fleet.conditions(2)).get("Applied") == "False"

    await eventually(rolled_out, every=0.5)
    await fleet.apply(a_config_map(2, "3", {FAIL: "available=nowhere"}))
    await fleet.until_placed(2, clusters, "3")
    await fleet.until_condition(2, "Available", "True")


async def _overrides(fleet: Fleet) -> None:
    """An override changes what each cluster gets; when it is deleted, its snapshots and what it did go."""
    selector = {"group": "", "version": "v1", "kind": "ConfigMap", "name": "version"}
    patch = {"op": "replace", "path": "/data/version", "value": "${MEMBER-CLUSTER-NAME}"}
    rules: list[Document] = [{"clusterSelector": {}, "jsonPatchOverrides": [patch]}]
    metadata = {"name": "own", "namespace": app(16)}
    override: Document = {"apiVersion": FLEET, "kind": "ResourceOverride", "metadata": metadata}
    await fleet.apply({**override, "spec": {"resourceSelectors": [selector], "policy": {"overrideRules": rules}}})
    clusters = {cluster_name(16), cluster_name(21)}

    async def overridden() -> None:
        assert fleet.versions(16) == {cluster: cluster for cluster in clusters}

    await eventually(overridden, every=0.5)
    await fleet.until_condition(16, "Overridden", "True")
    await fleet.landscape.query(f"delete.resourceoverride.{app(16)}.own")
    await fleet.until_placed(16, clusters)
    assert await fleet.landscape.list("resourceoverridesnapshot") == []


async def _leaves_nothing_behind(fleet: Fleet) -> None:
    """With the placements goes all that was placed."""
    for number in range(20):
        await fleet.landscape.query(f"delete.clusterresourceplacement._.{app(number)}")

    async def nothing() -> None:
        for kind in ("clusterresourceplacement", "clusterresourcebinding", "work"):
            assert await fleet.landscape.list(kind) == []
        assert not list((fleet.landscape.directory / "members").glob("*/manifests/*.json"))

    await eventually(nothing, every=0.5)
