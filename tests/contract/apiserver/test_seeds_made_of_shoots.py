"""Shoots become seeds: ManagedSeeds are admitted by their shoots, and made of annotations, on the real servers."""

import asyncio
import contextlib

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.relay.relay import Relay
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_cloudprofile, a_managed_seed, a_project, a_shoot
from tests.support.eventually import eventually

USE_AS_SEED = "shoot.gardener.cloud/use-as-seed"
MANAGED_SEED = "managedseed.garden.child"
ADDON = {"spec": {"addons": {"nginxIngress": {"enabled": True}}}}


def a_child(annotation: str | None = None) -> Document:
    annotations = {USE_AS_SEED: annotation} if annotation else {}
    spec = {"dns": {"domain": "child.example.org"}}
    return a_shoot("child", "garden", metadata={"annotations": annotations}, spec=spec)


async def with_garden(apiserver: Apiserver) -> None:
    await apiserver.request("apply", a_project("garden", "garden"))
    await apiserver.request("apply", a_cloudprofile())


async def test_a_managed_seed_and_its_shoot_hold_each_other(apiserver: Apiserver) -> None:
    await with_garden(apiserver)
    error = await apiserver.rejection("apply", a_managed_seed("child"))
    assert error["details"] == [{"field": "spec.shoot.name", "message": "shoot garden/child not found: apply it first"}]
    await apiserver.request("apply", a_child())
    made = await apiserver.request("apply", a_managed_seed("child"))
    assert "ingress.child.example.org" in str(made)
    error = await apiserver.rejection("apply", a_managed_seed("twin", "child"))
    assert error["details"][0]["field"] == "spec.shoot.name"
    assert "ManagedSeed child stands on" in error["message"]
    error = await apiserver.rejection("patch.shoot.garden.child", ADDON)
    assert error["details"][0]["field"] == "spec.addons.nginxIngress.enabled"
    await apiserver.request("delete." + MANAGED_SEED)
    await apiserver.request("patch.shoot.garden.child", ADDON)
    assert "nginxIngress" in str(await apiserver.rejection("apply", a_managed_seed("child")))


async def test_both_in_one_message_are_taken_in_whatever_order(apiserver: Apiserver) -> None:
    await with_garden(apiserver)
    everything = {"apiVersion": "v1", "kind": "List", "items": [a_managed_seed("child"), a_child()]}
    await apiserver.publish("apply", everything)
    await apiserver.until_handled()
    assert await apiserver.rejected() == []
    assert await apiserver.request("get." + MANAGED_SEED)


async def test_durable_and_answered_annotations_alike_make_a_managed_seed(apiserver: Apiserver) -> None:
    await with_garden(apiserver)
    await apiserver.publish("as.ann.apply", a_child("true,protected"))
    await apiserver.until_handled()
    made = await apiserver.request("get." + MANAGED_SEED)
    assert made["metadata"]["annotations"]["gardener.cloud/created-by"] == "ann"

    response = await apiserver.response("apply", a_child("true,wonderful"))
    assert [warning for warning in response["warnings"] if "wonderful" in warning]
    changed = await apiserver.request("get." + MANAGED_SEED)
    assert "taints" not in changed["spec"]["gardenlet"]["config"]["seedConfig"]["spec"]
    await apiserver.request("apply", a_child())
    assert (await apiserver.rejection("get." + MANAGED_SEED))["code"] == 404


async def test_replicas_do_what_a_dead_one_left_undone(idle_apiserver: Apiserver) -> None:
    store, key = idle_apiserver.kit.store, ObjectKey("managedseed", "garden", "child")
    for document in (a_project("garden", "garden"), a_child("true")):
        kubernetes = {**document["spec"].get("kubernetes", {}), "verticalPodAutoscaler": {"enabled": True}}
        await store.create({**document, "spec": {**document["spec"], "kubernetes": kubernetes}})
    bus = await idle_apiserver.start()
    await idle_apiserver.start()
    relay = asyncio.create_task(Relay(idle_apiserver.kit.outbox, bus, idle_apiserver.subjects, SystemClock()).run())

    async def made() -> int:
        return (await idle_apiserver.now(key)).version

    version = await eventually(made, every=0.02)
    shoot = await idle_apiserver.now(ObjectKey("shoot", "garden", "child"))
    without = shoot.document()
    del without["metadata"]["annotations"]
    await asyncio.sleep(0.3)
    assert await made() == version
    await store.update(shoot, without)

    async def gone() -> None:
        assert await store.get(key) is None

    await eventually(gone, every=0.02)
    relay.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await relay
