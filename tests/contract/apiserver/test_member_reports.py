"""What agents of member clusters report, of their clusters and of the Works addressed to them."""

from typing import Any

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.member_clusters import AGENT_CLEANUP, AGENT_LEFT, namespace_of, reporter_of
from gardenbus.common.api.keys import ObjectKey
from tests.contract.apiserver.conftest import Apiserver

EAST = ObjectKey("membercluster", "", "east")
WORK = ObjectKey("work", namespace_of("east"), "web-work")
AGENT = reporter_of("east")
LEFT = {"conditions": [{"type": "Joined", "status": "False", "reason": AGENT_LEFT}]}


def a_cluster(name: str = "east", **spec: Any) -> Document:
    return {
        "apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
        "kind": "MemberCluster",
        "metadata": {"name": name, "labels": {"region": "eu"}},
        "spec": spec,
    }


def a_work(key: ObjectKey = WORK) -> Document:
    return {
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "Work",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {"workload": {"manifests": []}},
    }


async def reported(apiserver: Apiserver, key: ObjectKey, status: Document, reporter: str = AGENT) -> None:
    await apiserver.report(reporter, key, {"status": status})
    await apiserver.until_handled()


async def registered(apiserver: Apiserver) -> None:
    await apiserver.report(AGENT, EAST, a_cluster(), verb="apply")
    await apiserver.until_handled()


async def test_a_fence_in_an_agents_name_shuts_it_out_of_nothing(apiserver: Apiserver) -> None:
    await apiserver.report(AGENT, EAST, a_cluster(), verb="apply", fence="9.9")
    await reported(apiserver, EAST, {"properties": {}})

    assert await apiserver.rejected() == []


async def test_an_agent_registers_its_cluster_reports_and_leaves(apiserver: Apiserver) -> None:
    await registered(apiserver)
    await reported(apiserver, EAST, {"properties": {"nodes": {"value": "4"}}, "conditions": []})
    await reported(apiserver, EAST, {"resourceUsage": {"capacity": {"cpu": "8"}}})
    stored = await apiserver.now(EAST)
    assert stored.parts.finalizers == (AGENT_CLEANUP,)
    assert stored.document()["status"]["properties"] == {"nodes": {"value": "4"}}
    assert stored.document()["status"]["resourceUsage"] == {"capacity": {"cpu": "8"}}

    await apiserver.request("delete.membercluster._.east")
    await registered(apiserver)
    await reported(apiserver, EAST, {"properties": {"nodes": {"value": "3"}}})
    assert (await apiserver.now(EAST)).is_deleting
    await reported(apiserver, EAST, LEFT)
    assert await apiserver.kit.store.get(EAST) is None
    assert await apiserver.rejected() == []


async def test_a_registration_leaves_what_people_said_of_the_cluster(apiserver: Apiserver) -> None:
    await registered(apiserver)
    taint = {"key": "drain", "effect": "NoSchedule"}
    patch = {"metadata": {"labels": {"tier": "gold"}}, "spec": {"taints": [taint]}}
    await apiserver.request("patch.membercluster._.east", patch)
    await registered(apiserver)

    document = (await apiserver.now(EAST)).document()
    assert document["spec"]["taints"] == [taint]
    assert document["metadata"]["labels"] == {"region": "eu", "tier": "gold"}


async def test_a_taint_goes_with_the_registration_that_stated_it(apiserver: Apiserver) -> None:
    gpu, drain = ({"key": name, "effect": "NoSchedule"} for name in ("gpu", "drain"))
    await apiserver.report(AGENT, EAST, a_cluster(taints=[gpu]), verb="apply")
    await apiserver.until_handled()
    await apiserver.request("patch.membercluster._.east", {"spec": {"taints": [gpu, drain]}})
    await registered(apiserver)
    assert (await apiserver.now(EAST)).document()["spec"]["taints"] == [drain]


async def test_an_agent_reports_on_the_works_of_its_cluster(apiserver: Apiserver) -> None:
    await apiserver.kit.store.create(a_work())
    applied = {"type": "Applied", "status": "True", "reason": "AllWorkHaveBeenApplied", "observedGeneration": 1}
    await reported(apiserver, WORK, {"conditions": [applied], "manifestConditions": []})

    assert (await apiserver.now(WORK)).document()["status"]["conditions"] == [applied]
    assert await apiserver.rejected() == []


async def test_an_agent_says_nothing_of_others(apiserver: Apiserver) -> None:
    other = ObjectKey("work", namespace_of("west"), "web-work")
    west = ObjectKey("membercluster", "", "west")
    await apiserver.kit.store.create(a_work(other))
    await apiserver.kit.store.create(a_work())
    await apiserver.request("apply", a_cluster("west"))
    await apiserver.report(AGENT, other, {"status": {"a": 1}})
    await apiserver.report(AGENT, west, {"status": {"a": 1}})
    await apiserver.report(AGENT, west, a_cluster("west"), verb="apply")
    await apiserver.report(AGENT, EAST, a_cluster("west"), verb="apply")
    await apiserver.report(AGENT, WORK, a_work(), verb="apply")
    await apiserver.report(AGENT, EAST, b"", verb="delete")
    await apiserver.report("east", WORK, {"status": {"a": 1}})
    await apiserver.report("east", west, {"status": {"a": 1}})
    await apiserver.until_handled()

    reasons = [message.headers["Gardenbus-Reason"] for message in await apiserver.rejected()]
    assert len(reasons) == 8  # each of them
    assert all("Forbidden" in reason or "cluster" in reason or "seed east" in reason for reason in reasons), reasons
    for key in (other, west, WORK):
        assert "status" not in (await apiserver.now(key)).document()
    assert await apiserver.kit.store.get(EAST) is None


async def test_an_agent_has_its_own_cluster_leave_and_no_later_one_of_the_name(apiserver: Apiserver) -> None:
    await registered(apiserver)
    uid = (await apiserver.now(EAST)).uid
    await apiserver.report(AGENT, EAST, b"", verb="delete", uid="another")
    await apiserver.until_handled()
    assert not (await apiserver.now(EAST)).is_deleting
    await apiserver.report(AGENT, EAST, b"", verb="delete", uid=uid)
    await apiserver.until_handled()
    assert await apiserver.kit.store.get(EAST) is None
    assert await apiserver.rejected() == []


async def test_an_agent_records_events_in_its_own_name(apiserver: Apiserver) -> None:
    await registered(apiserver)
    event = {"type": "Warning", "reason": "ApplyFailed", "message": "disk full"}
    await apiserver.report(AGENT, EAST, event, verb="event")
    await apiserver.until_handled()

    (warning,) = await apiserver.warnings()
    assert (warning.event.reason, warning.event.reporter) == ("ApplyFailed", "memberagent-east")
