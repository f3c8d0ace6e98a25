"""Overrides with all that they rely on: a queue of their own, snapshots, and rollouts that follow on other replicas."""

from gardenbus.common.api.document import section
from gardenbus.common.api.keys import ObjectKey
from tests.contract.placement.conftest import Landscape
from tests.support.eventually import eventually
from tests.support.overrides import an_ro, for_clusters, nothing_for, to
from tests.support.placements import WEB, a_configmap, a_crp

ONE = ObjectKey("resourceoverride", "web", "one")
AT_ONCE = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%", "unavailablePeriodSeconds": 1}}


async def until_coloured(landscape: Landscape, **expected: str | None) -> None:
    """Wait for the colour in the Work of each cluster; None where the ConfigMap is kept away."""

    async def reached() -> None:
        found: dict[str, str | None] = {}
        for work in await landscape.all("work"):
            manifests = section(work.document(), "spec", "workload")["manifests"]
            colours = [each["data"]["colour"] for each in manifests if each["kind"] == "ConfigMap"]
            found[work.key.namespace.removeprefix("fleet-member-")] = colours[0] if colours else None
        assert found == expected

    await eventually(reached, every=0.05)


async def test_overrides_come_change_and_go_whichever_replica_acts(landscape: Landscape) -> None:
    await landscape.clusters("a", region="east")
    await landscape.clusters("b", region="west")
    await landscape.add(a_configmap(colour="red"), a_crp(spec={"strategy": AT_ONCE}))
    async with landscape.replica("one"), landscape.replica("two"):
        await until_coloured(landscape, a="red", b="red")
        at_home = "${MEMBER-CLUSTER-LABEL-KEY-region}"
        await landscape.add(an_ro(for_clusters(to("/data/colour", at_home))))
        await until_coloured(landscape, a="east", b="west")
        await landscape.change(ObjectKey("membercluster", "", "b"), {"metadata": {"labels": {"region": "north"}}})
        await until_coloured(landscape, a="east", b="north")
        await landscape.change(ONE, {"spec": an_ro(nothing_for(region="east"))["spec"]})
        await until_coloured(landscape, a=None, b="red")

        async def reports_it() -> None:
            clusters = {each["clusterName"]: each for each in (await landscape.get(WEB))["status"]["placementStatuses"]}
            assert clusters["a"]["applicableResourceOverrides"] == [{"namespace": "web", "name": "one-1"}]
            assert "applicableResourceOverrides" not in clusters["b"]

        await eventually(reports_it, every=0.05)
        await landscape.delete(ONE)
        for name in ("one-0", "one-1"):  # as the garbage collector does
            await landscape.delete(ObjectKey("resourceoverridesnapshot", "web", name))
        await until_coloured(landscape, a="red", b="red")
