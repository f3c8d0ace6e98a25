"""Placements with all that they rely on: NATS, Redis, relay, and one replica of the service or two."""

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta

from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.document import section
from gardenbus.common.api.fleet.works import is_abandoned
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.clock import timestamp
from tests.contract.placement.conftest import CLOCK, Landscape
from tests.support.eventually import eventually
from tests.support.placements import WEB, a_configmap, a_crp, a_live_cluster, pick_n


def cluster(name: str) -> ObjectKey:
    return ObjectKey("membercluster", "", name)


async def until_scheduled(landscape: Landscape, status: str, placement: ObjectKey = WEB) -> None:
    async def reached() -> None:
        document = await landscape.get(placement)
        condition = get_condition(conditions_of(document), f"{document['kind']}Scheduled")
        assert condition is not None
        assert condition["status"] == status, condition

    await eventually(reached, every=0.05)


async def test_a_placement_goes_to_the_clusters_of_its_policy(landscape: Landscape) -> None:
    await landscape.clusters("a", "b", "c")
    await landscape.add(a_crp(policy=pick_n(2)))
    async with landscape.replica():
        await landscape.until_chosen("b", "c")
        await until_scheduled(landscape, "True")
        await landscape.change(WEB, {"spec": {"policy": {"numberOfClusters": 3}}})
        await landscape.until_chosen("a", "b", "c")


async def test_what_lacks_clusters_gets_one_that_comes_and_one_that_recovers(landscape: Landscape) -> None:
    stale = timestamp(CLOCK.now() - timedelta(minutes=6))
    await landscape.clusters("a")
    agents = a_live_cluster("b", CLOCK)["status"]["agentStatus"]
    silent = [{**agents[0], "lastReceivedHeartbeat": stale}]
    await landscape.add(a_live_cluster("b", CLOCK, status={"agentStatus": silent}), a_crp(policy=pick_n(3)))
    async with landscape.replica():
        await landscape.until_chosen("a")
        await until_scheduled(landscape, "False")
        await landscape.clusters("c")
        await landscape.until_chosen("a", "c")
        await landscape.change(cluster("b"), {"status": {"agentStatus": agents}})
        await landscape.until_chosen("a", "b", "c")
        await until_scheduled(landscape, "True")


async def test_a_heartbeat_that_goes_stale_makes_what_lacks_clusters_look_again(landscape: Landscape) -> None:
    soon = timestamp(CLOCK.now() - timedelta(minutes=5) + timedelta(seconds=4))
    agents = a_live_cluster("b", CLOCK)["status"]["agentStatus"]
    await landscape.add(
        a_live_cluster("b", CLOCK, status={"agentStatus": [{**agents[0], "lastReceivedHeartbeat": soon}]}),
        a_crp(policy={"placementType": "PickFixed", "clusterNames": ["b"]}),
    )
    async with landscape.replica():
        await landscape.until_chosen("b")
        await until_scheduled(landscape, "True")
        await until_scheduled(landscape, "False")
        await landscape.until_chosen("b")


async def test_a_label_moves_only_what_is_not_placed_yet(landscape: Landscape) -> None:
    terms = [{"labelSelector": {"matchLabels": {"region": "eu"}}}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"clusterSelectorTerms": terms}}
    await landscape.clusters("a", region="eu")
    await landscape.clusters("b", region="us")
    await landscape.add(a_crp(policy={"placementType": "PickAll", "affinity": {"clusterAffinity": required}}))
    async with landscape.replica():
        await landscape.until_chosen("a")
        await landscape.change(cluster("b"), {"metadata": {"labels": {"region": "eu"}}})
        await landscape.until_chosen("a", "b")
        await landscape.change(cluster("a"), {"metadata": {"labels": {"region": "us"}}})
        await asyncio.sleep(0.5)
        await landscape.until_chosen("a", "b")


async def test_a_change_of_what_is_selected_makes_a_snapshot_and_moves_nothing(landscape: Landscape) -> None:
    await landscape.clusters("a")
    await landscape.add(a_configmap(color="red"), a_crp())
    async with landscape.replica():
        await landscape.until_chosen("a")

        async def at_index(index: str) -> None:
            assert section(await landscape.get(), "status").get("observedResourceIndex") == index

        await eventually(lambda: at_index("0"))
        await asyncio.sleep(0.5)
        await landscape.change(ObjectKey("configmap", "web", "settings"), {"data": {"color": "blue"}})
        await eventually(lambda: at_index("1"))
        await landscape.add(a_configmap("more"))
        await eventually(lambda: at_index("2"))
        latest = await landscape.get(ObjectKey("clusterresourcesnapshot", "", "web-2-snapshot"))
        names = [each["metadata"]["name"] for each in latest["spec"]["selectedResources"]]
        assert names == ["web", "more", "settings"]
        assert (await landscape.chosen()).keys() == {"a"}


async def test_a_resource_placement_stays_in_its_namespace(landscape: Landscape) -> None:
    key = ObjectKey("resourceplacement", "web", "settings")
    selector = {"group": "", "version": "v1", "kind": "ConfigMap", "name": "settings"}
    document = a_crp("settings", spec={"resourceSelectors": [selector]})
    document |= {"kind": "ResourcePlacement", "metadata": {"name": "settings", "namespace": "web"}}
    await landscape.clusters("a", "b")
    await landscape.add(a_configmap(), a_configmap(namespace="other"), document)
    async with landscape.replica():
        await landscape.until_chosen("a", "b", placement=key)
        await until_scheduled(landscape, "True", key)
        snapshot = await landscape.get(ObjectKey("resourcesnapshot", "web", "settings-0-snapshot"))
        assert [each["metadata"]["namespace"] for each in snapshot["spec"]["selectedResources"]] == ["web"]


async def test_everything_is_available_in_the_end_and_status_says_so(landscape: Landscape) -> None:
    await landscape.clusters("a", "b", "c")
    await landscape.add(a_configmap(), a_crp())
    async with landscape.replica():

        async def available() -> None:
            document = await landscape.get()
            conditions = {each["type"]: each["status"] for each in conditions_of(document)}
            steps = ("Scheduled", "RolloutStarted", "Overridden", "WorkSynchronized", "Applied", "Available")
            assert conditions == {f"ClusterResourcePlacement{step}": "True" for step in steps}, conditions
            assert await landscape.chosen() == {"a": "Bound", "b": "Bound", "c": "Bound"}
            clusters = document["status"]["placementStatuses"]
            assert [each["clusterName"] for each in clusters] == ["a", "b", "c"]
            assert [each["observedResourceIndex"] for each in clusters] == ["0"] * 3
            assert all([each["type"] for each in one["conditions"]] == list(steps) for one in clusters)

        await eventually(available)


async def test_a_cluster_that_fails_is_told_of_and_a_fixed_one_recovers(landscape: Landscape) -> None:
    await landscape.clusters("a", "b")
    landscape.agents.broken.add("b")
    await landscape.add(a_crp())
    async with landscape.replica():

        async def applied(status: str) -> None:
            condition = get_condition(conditions_of(await landscape.get()), "ClusterResourcePlacementApplied")
            assert condition is not None
            assert condition["status"] == status, condition

        await eventually(lambda: applied("False"))
        landscape.agents.broken.clear()
        await eventually(lambda: applied("True"))


async def test_an_evicted_placement_goes_elsewhere(landscape: Landscape) -> None:
    await landscape.clusters("a", "b")
    await landscape.add(a_crp(policy=pick_n(1)))
    async with landscape.replica():

        async def bound(cluster: str) -> None:
            assert await landscape.chosen() == {cluster: "Bound"}

        await eventually(lambda: bound("b"))
        await landscape.change(cluster("b"), {"spec": {"taints": [{"key": "drained", "effect": "NoSchedule"}]}})
        await landscape.add(
            {
                "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
                "kind": "ClusterResourcePlacementEviction",
                "metadata": {"name": "off-b"},
                "spec": {"placementName": "web", "clusterName": "b"},
            }
        )
        await eventually(lambda: bound("a"))


async def test_a_placement_that_is_deleted_leaves_nothing(landscape: Landscape) -> None:
    await landscape.clusters("a", "b")
    await landscape.add(a_crp())
    async with landscape.replica():
        await landscape.until_chosen("a", "b")
        await landscape.delete(WEB)

        async def gone() -> None:
            for kind in ("placement", "binding", "snapshot"):
                assert await landscape.all(f"clusterresource{kind}") == []
            assert await landscape.all("clusterschedulingpolicysnapshot") == []

        await eventually(gone)


async def test_a_placement_that_abandons_has_its_agents_leave_the_manifests(landscape: Landscape) -> None:
    await landscape.clusters("a", "b")
    strategy = {"deleteStrategy": {"propagationPolicy": "Abandon"}}
    await landscape.add(a_configmap(), a_crp(spec={"strategy": strategy}))
    async with landscape.replica():

        async def placed() -> None:
            assert {each.key.namespace for each in await landscape.all("work")} == {
                "fleet-member-a",
                "fleet-member-b",
            }

        await eventually(placed)
        landscape.agents.are_silent = True
        await landscape.delete(WEB)

        async def abandoned() -> None:
            works = await landscape.all("work")
            assert [(each.is_deleting, is_abandoned(each.document())) for each in works] == [(True, True)] * 2

        await eventually(abandoned)
        landscape.agents.are_silent = False

        async def gone() -> None:
            for kind in ("clusterresourceplacement", "clusterresourcebinding", "work"):
                assert await landscape.all(kind) == []

        await eventually(gone)


async def test_replicas_never_place_more_than_wanted_whatever_changes(landscape: Landscape) -> None:
    names = [f"c{number}" for number in range(12)]
    await landscape.clusters(*names)
    keys = [ObjectKey("clusterresourceplacement", "", f"p{number}") for number in range(6)]
    wanted = dict.fromkeys(keys, 3)
    async with AsyncExitStack() as stack:
        for name in ("one", "two"):
            await stack.enter_async_context(landscape.replica(name))
        await landscape.add(*(a_crp(key.name, pick_n(3)) for key in keys))
        for turn in range(4):
            for key in keys:
                number = 2 + (turn + len(key.name) + int(key.name[1:])) % 4
                most = max(wanted[key], number)
                wanted[key] = number
                await landscape.change(key, {"spec": {"policy": {"numberOfClusters": number}}})
                assert len(await landscape.chosen(key)) <= max(most, 5)
            await landscape.change(cluster(names[turn]), {"metadata": {"labels": {"turn": str(turn)}}})
            await landscape.delete(cluster(names[-1 - turn]))
            for key in keys:
                assert len(await landscape.chosen(key)) <= 5

        async def all_settled() -> None:
            for key in keys:
                chosen = await landscape.chosen(key)
                assert len(chosen) == wanted[key], (key, wanted[key], chosen)
                assert not set(chosen) & set(names[-4:])

        await eventually(all_settled, every=0.1)
        await asyncio.sleep(1)
        await all_settled()
