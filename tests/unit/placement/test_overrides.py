"""Overrides reach the Works of the clusters that they are for, step by step, and leave them again."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import Store
from tests.support.overrides import a_cro, an_ro, for_clusters, nothing_for, to
from tests.support.placements import WEB, a_configmap, a_crp, a_live_cluster, a_namespace
from tests.support.rolling import RollingBench

ONE = ObjectKey("resourceoverride", "web", "one")
ONE_AT_A_TIME = {"maxUnavailable": 1, "maxSurge": 1, "unavailablePeriodSeconds": 1}


async def a_rolled_out_bench(*overrides: Document) -> RollingBench:
    bench = RollingBench()
    for name, region in (("a", "east"), ("b", "east"), ("c", "west")):
        await bench.add(a_live_cluster(name, bench.clock, {"region": region}))
    await bench.add(a_namespace(), a_configmap(colour="red"), *overrides)
    await bench.add(a_crp(spec={"strategy": {"type": "RollingUpdate", "rollingUpdate": ONE_AT_A_TIME}}))
    await bench.rest()
    return bench


def blue(**labels: str) -> Document:
    return an_ro(for_clusters(to("/data/colour", "blue"), **labels))


async def colours(bench: RollingBench) -> dict[str, Any]:
    """The ConfigMap's data in the Work of each cluster; None where it is not brought."""
    found: dict[str, Any] = {}
    for work in await bench.all_works():
        manifests = section(work.document(), "spec", "workload")["manifests"]
        data = [each["data"].get("colour") for each in manifests if each["kind"] == "ConfigMap"]
        found[work.key.namespace.removeprefix("fleet-member-")] = data[0] if data else None
    return found


async def delete(bench: RollingBench, key: ObjectKey) -> None:
    """Delete an override, and what the garbage collector takes along."""
    store: Store = bench.kit.store
    stored = await bench.kit.now(key)
    await store.delete(stored)
    for dependent in await store.dependents(stored.uid):
        await store.delete(await bench.kit.now(dependent))


async def per_cluster(bench: RollingBench) -> dict[str, Document]:
    return {each["clusterName"]: each for each in (await bench.get())["status"]["placementStatuses"]}


def overridden_of(cluster: Document) -> tuple[str, str]:
    return next((each["status"], each["reason"]) for each in cluster["conditions"] if each["type"] == "Overridden")


async def test_an_override_reaches_its_clusters_and_the_status_names_its_snapshot() -> None:
    bench = await a_rolled_out_bench(blue(region="east"), a_cro(for_clusters(to("/metadata/labels", {}, "add"))))
    assert await colours(bench) == {"a": "blue", "b": "blue", "c": "red"}
    clusters = await per_cluster(bench)
    assert clusters["a"]["applicableResourceOverrides"] == [{"namespace": "web", "name": "one-0"}]
    assert clusters["a"]["applicableClusterResourceOverrides"] == ["all-0"]
    assert "applicableResourceOverrides" not in clusters["c"]
    assert overridden_of(clusters["a"]) == ("True", "OverriddenSucceeded")
    conditions = {each["type"]: each["reason"] for each in (await bench.get())["status"]["conditions"]}
    assert conditions["ClusterResourcePlacementOverridden"] == "OverriddenSucceeded"


async def test_a_changed_override_goes_out_one_cluster_after_the_other() -> None:
    bench = await a_rolled_out_bench(blue())
    await bench.change({"spec": an_ro(for_clusters(to("/data/colour", "green")))["spec"]}, ONE)
    await bench.snapshot_overrides()
    await bench.reconcile_once()
    for _ in range(3):
        await bench.roll()
    await bench.work()
    assert sorted((await colours(bench)).values()) == ["blue", "blue", "green"]
    await bench.rest()
    assert set((await colours(bench)).values()) == {"green"}
    snapshots = (await bench.kit.store.list_page("resourceoverridesnapshot")).objects
    latest = {each.key.name: each.labels["kubernetes-fleet.io/is-latest-snapshot"] for each in snapshots}
    assert latest == {"one-0": "false", "one-1": "true"}


async def test_a_new_override_changes_what_is_placed_already_and_a_deleted_one_changes_it_back() -> None:
    bench = await a_rolled_out_bench()
    await bench.add(blue())
    await bench.rest()
    assert set((await colours(bench)).values()) == {"blue"}
    await delete(bench, ONE)
    await bench.roll()
    await bench.work()
    assert sorted((await colours(bench)).values()) == ["blue", "blue", "red"], "the others wait, and keep theirs"
    assert overridden_of((await per_cluster(bench))["c"]) == ("True", "OverriddenSucceeded")
    await bench.rest()
    assert set((await colours(bench)).values()) == {"red"}
    assert overridden_of((await per_cluster(bench))["c"]) == ("True", "NoOverrideSpecified")
    works = [each.document() for each in await bench.all_works()]
    assert not any("override" in name for work in works for name in work["metadata"]["annotations"])


async def test_a_bad_patch_is_a_condition_leaves_the_works_and_is_mended_without_a_budget() -> None:
    bench = await a_rolled_out_bench()
    await bench.add(an_ro(for_clusters(to("/data/missing", "x"))))
    await bench.rest()
    assert await colours(bench) == {"a": "red", "b": "red", "c": "red"}
    failed = [each for each in (await per_cluster(bench)).values() if overridden_of(each)[0] == "False"]
    assert len(failed) == 1, "the rollout stops at the first"
    (condition,) = [each for each in failed[0]["conditions"] if each["type"] == "Overridden"]
    assert condition["reason"] == "OverriddenFailed"
    assert condition["message"] == (
        "ResourceOverride web/one-0: ConfigMap web/settings: replace /data/missing: there is no such field."
    )
    await bench.change({"spec": blue()["spec"]}, ONE)
    await bench.rest()
    assert set((await colours(bench)).values()) == {"blue"}


async def test_an_object_is_kept_from_a_cluster_and_comes_when_the_cluster_changes() -> None:
    bench = await a_rolled_out_bench(an_ro(nothing_for(region="west")))
    assert await colours(bench) == {"a": "red", "b": "red", "c": None}
    await bench.change({"metadata": {"labels": {"region": "east"}}}, ObjectKey("membercluster", "", "c"))
    await bench.rest()
    assert await colours(bench) == {"a": "red", "b": "red", "c": "red"}


async def test_an_override_for_another_placement_changes_nothing() -> None:
    bench = await a_rolled_out_bench({**blue(), "spec": {**blue()["spec"], "placement": {"name": "other"}}})
    assert set((await colours(bench)).values()) == {"red"}


async def test_the_history_of_an_override_is_limited_and_counts_on() -> None:
    bench = await a_rolled_out_bench(blue())
    for number in range(14):
        rule = for_clusters(to("/data/colour", f"shade-{number}"))
        await bench.change({"spec": {"policy": {"overrideRules": [rule]}}}, ONE)
        await bench.snapshot_overrides()
    snapshots = (await bench.kit.store.list_page("resourceoverridesnapshot")).objects
    assert sorted(int(each.key.name.removeprefix("one-")) for each in snapshots) == list(range(5, 15))
    await bench.rest()
    assert set((await colours(bench)).values()) == {"shade-13"}


@pytest.mark.parametrize("lost", ["one-0", "one-1"])
async def test_a_service_that_dies_between_its_writes_leaves_an_override_with_a_latest_snapshot(lost: str) -> None:
    bench = await a_rolled_out_bench(blue())
    await bench.change({"spec": an_ro(for_clusters(to("/data/colour", "green")))["spec"]}, ONE)
    await bench.snapshot_overrides()
    for name in ("one-0", "one-1"):
        label = "true" if lost == "one-0" else "false"  # not retired yet; or: labels that somebody has lost
        await bench.change(
            {"metadata": {"labels": {"kubernetes-fleet.io/is-latest-snapshot": label}}},
            ObjectKey("resourceoverridesnapshot", "web", name),
        )
    if lost == "one-0":
        await bench.cache.read(bench.kit.store)
        assert [each.name for each in bench.cache.override_snapshots()] == ["one-1"]
    await bench.rest()
    assert [each.name for each in bench.cache.override_snapshots()] == ["one-1"]
    assert set((await colours(bench)).values()) == {"green"}


async def test_a_placement_of_a_namespace_follows_overrides_of_its_own() -> None:
    bench = await a_rolled_out_bench({**blue(), "spec": {**blue()["spec"], "placement": {"name": "web"}}})
    assert (await bench.get(WEB))["status"]["placementStatuses"][0]["applicableResourceOverrides"]
    assert set((await colours(bench)).values()) == {"blue"}
