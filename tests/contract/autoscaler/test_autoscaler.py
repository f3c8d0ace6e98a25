"""Whole autoscalers on real NATS and Redis: shoots wait, a set is scaled, seeds come, shoots go."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from tests.contract.autoscaler.conftest import AUTOSCALER, SET, Scene, guests, the_set
from tests.support.autoscaling import a_metric, an_autoscaler
from tests.support.builders import a_seed, a_shoot, merged
from tests.support.eventually import eventually


def _sizes(reported: Sequence[Document]) -> list[int]:
    """Sizes in the Events of changes, in order."""
    return [int(each["message"].partition(";")[0].removeprefix("New size: ")) for each in reported]


async def test_waiting_shoots_grow_a_set_and_their_leaving_shrinks_it_again(scene: Scene) -> None:
    await scene.hold(the_set(), an_autoscaler())
    await scene.build("grove-0")
    async with scene.autoscaler():
        await scene.expect_ordered(1)
    await scene.hold(*guests(27))  # while no autoscaler runs, so that it sees all of them at once
    await scene.expect_placed(10, waiting=17)
    async with scene.autoscaler():
        await scene.expect_ordered(3)
        await scene.build("grove-1", "grove-2")
        await scene.expect_placed(27)
        await scene.expect_ordered(4)  # 27 of 30 places are used, and four fifths are aimed at
        await scene.build("grove-3")
        await scene.stays_ordered(4, seconds=2.5)
        await scene.remove(*(ObjectKey("shoot", "garden-dev", f"guest-{number:03}") for number in range(20)))
        await scene.expect_ordered(1)
        status = (await scene.get(AUTOSCALER))["status"]
        assert status["currentReplicas"] == 4
        assert status["currentMetrics"][0]["resource"]["current"]["value"] == "7"
        assert status["lastScaleTime"]

        async def all_reported() -> Sequence[Document]:
            found = await scene.events("SuccessfulRescale")  # the Event comes after the change
            assert _sizes(found)[-1] == 1
            return found

        reported = await eventually(all_reported)
        sizes = _sizes(reported)
        assert sizes[:2] == [3, 4]
        assert sizes[2:] == sorted(set(sizes[2:]), reverse=True), "it only shrinks; at once, if it saw all go at once"
        assert "pending shoots fit a new seed" in reported[0]["message"]


async def test_two_replicas_of_the_service_make_each_change_once(scene: Scene) -> None:
    await scene.hold(the_set(), an_autoscaler())
    await scene.build("grove-0")
    await scene.hold(*guests(40))
    async with scene.autoscaler(), scene.autoscaler(), scene.autoscaler():
        await scene.expect_ordered(4)
        await scene.stays_ordered(4, seconds=2.5)
        generation = (await scene.get(SET))["metadata"]["generation"]
        assert generation == 2
        (reported,) = await scene.events("SuccessfulRescale")
        assert reported["message"].startswith("New size: 4; reason: ")


async def test_a_seed_that_becomes_ready_while_shoots_wait_is_not_ordered_twice(scene: Scene) -> None:
    await scene.hold(the_set(), an_autoscaler(metrics=[a_metric(utilization=100)]))
    await scene.build("grove-0")
    await scene.hold(*guests(20))
    async with scene.autoscaler():
        await scene.expect_ordered(2)
        await scene.build("grove-1", ready=False)
        await scene.stays_ordered(2, seconds=2)
        await scene.finish("grove-1")
        await scene.expect_placed(20)
        await scene.stays_ordered(2, seconds=2.5)
        assert (await scene.get(SET))["metadata"]["generation"] == 2


async def test_shoots_that_would_not_fit_a_new_seed_do_not_grow_it_nor_do_those_that_become_seeds(scene: Scene) -> None:
    await scene.hold(the_set(), an_autoscaler())
    await scene.build("grove-0")
    elsewhere = guests(10, first=500, region="eu-central-1")
    own = merged(guests(1, first=800)[0], {"metadata": {"name": "grove-7", "namespace": "garden"}})
    owner = {"apiVersion": "seedmanagement.gardener.cloud/v1alpha1", "kind": "ManagedSeedSet", "name": "grove"}
    owned = {"metadata": {"ownerReferences": [{**owner, "uid": "another", "controller": True}]}}
    cluster_shoots = merged(guests(1, first=801)[0], {"metadata": {"name": "hill", "namespace": "garden"}})
    managed_seed: Document = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {"name": "hill", "namespace": "garden"},
        "spec": {"shoot": {"name": "hill"}, "seedTemplate": {"spec": {}}},
    }
    await scene.hold(*guests(10))
    await scene.expect_placed(10)
    async with scene.autoscaler():
        await scene.expect_ordered(2)  # ten of ten
        await scene.hold(managed_seed, *elsewhere, merged(own, owned), cluster_shoots)
        await scene.expect_placed(10, waiting=10)
        await scene.stays_ordered(2, seconds=2.5)
        assert (await scene.get(AUTOSCALER))["status"]["pendingShoots"] == 0
        await scene.hold(*guests(1, first=900))

        async def counted() -> None:
            assert (await scene.get(AUTOSCALER))["status"]["pendingShoots"] == 1

        await eventually(counted)


async def test_a_set_that_is_not_there_is_said_and_looked_at_when_it_comes(scene: Scene) -> None:
    await scene.hold(an_autoscaler(minReplicas=3))
    async with scene.autoscaler():
        message = await scene.expect_condition("AbleToScale", "False", "FailedGetScale")
        assert message == "ManagedSeedSet garden/grove not found"
        await scene.hold(the_set())
        await scene.expect_ordered(3)
        await scene.expect_condition("AbleToScale", "True", "ReadyForNewScale")
        await scene.expect_condition("ScalingLimited", "True", "TooFewReplicas")


async def test_a_change_of_the_autoscaler_is_seen_at_once(scene: Scene) -> None:
    await scene.hold(the_set(), an_autoscaler())
    async with scene.autoscaler():
        await scene.expect_ordered(1)
        await scene.change(AUTOSCALER, {"spec": {"minReplicas": 2}})
        await scene.expect_ordered(2)
        await scene.change(AUTOSCALER, {"spec": {"minReplicas": 0, "maxReplicas": 1}})
        await scene.expect_ordered(0)


async def test_a_restart_keeps_the_window_and_does_not_begin_a_new_one(scene: Scene) -> None:
    await scene.hold(the_set(), an_autoscaler())
    await scene.build("grove-0")
    await scene.hold(*guests(10))
    await scene.expect_placed(10)
    window = timedelta(seconds=4)
    async with scene.autoscaler(window=window):
        await scene.expect_ordered(2)
        await scene.build("grove-1")
    await scene.remove(*(ObjectKey("shoot", "garden-dev", f"guest-{number:03}") for number in range(10)))
    async with scene.autoscaler(window=window):
        await scene.expect_condition("AbleToScale", "True", "ScaleDownStabilized")
        await scene.stays_ordered(2, seconds=1.5)
    async with scene.autoscaler(window=window):
        await scene.expect_ordered(1)


async def test_a_resource_nobody_reports_stops_shrinking_and_is_told(scene: Scene) -> None:
    await scene.hold(the_set(spec={"replicas": 3}), an_autoscaler(metrics=[a_metric(), a_metric("cpu", amount="2")]))
    await scene.build("grove-0", "grove-1", "grove-2")
    async with scene.autoscaler():
        message = await scene.expect_condition("ScalingActive", "False", "FailedGetResourceMetric")
        assert "does not report status.usage.cpu" in message
        await scene.stays_ordered(3, seconds=2)
        for number, cpu in enumerate(("3", "1500m", "1")):
            await scene.change(ObjectKey("seed", "", f"grove-{number}"), {"status": {"usage": {"cpu": cpu}}})
        await scene.expect_condition("ScalingActive", "True", "ValidMetricFound")
        await scene.stays_ordered(3, seconds=1.5)  # 5.5 / 2
        await scene.change(ObjectKey("seed", "", "grove-0"), {"status": {"usage": {"cpu": "1"}}})
        await scene.expect_ordered(2)


async def test_an_own_shoot_without_a_seed_is_said(scene: Scene) -> None:
    condition = {
        "type": "ReplicaUnschedulable",
        "status": "True",
        "reason": "Pending",
        "message": "no host seed is left",
    }
    await scene.hold(merged(the_set(), {"status": {"conditions": [condition]}}), an_autoscaler())
    async with scene.autoscaler():
        assert await scene.expect_condition("ScalingLimited", "True", "ReplicaUnschedulable") == "no host seed is left"


async def test_a_change_that_is_refused_is_told_and_tried_again(scene: Scene) -> None:
    broken = merged(the_set(), {"metadata": {"annotations": {"large": "x" * 1024 * 1024}}})
    await scene.hold(broken, an_autoscaler(minReplicas=2))
    async with scene.autoscaler():
        message = await scene.expect_condition("AbleToScale", "False", "FailedUpdateScale")
        assert "262144 are allowed" in message

        async def reported() -> None:
            assert [event["type"] for event in await scene.events("FailedRescale")] == ["Warning"]

        await eventually(reported)
        await scene.change(SET, {"metadata": {"annotations": {"large": None}}})
        await scene.expect_ordered(2)
        await scene.expect_condition("AbleToScale", "True", "ReadyForNewScale")


async def test_two_autoscalers_that_name_one_set_cannot_both_be_made(scene: Scene) -> None:
    await scene.hold(the_set(), an_autoscaler())
    other = merged(an_autoscaler(), {"metadata": {"name": "other"}})
    with pytest.raises(Exception, match="grove"):
        await scene.hold(other)


async def test_places_elsewhere_are_taken_before_a_seed_is_ordered(scene: Scene) -> None:
    await scene.hold(the_set(), an_autoscaler())
    await scene.build("grove-0")
    await scene.hold(a_seed("rock", shoots="30", spec={"networks": {"pods": "10.44.0.0/16"}}))
    async with scene.autoscaler():
        await scene.hold(*guests(14))
        await scene.expect_placed(14)
        await scene.stays_ordered(1, seconds=1.5)
        await scene.hold(a_shoot("other", spec={"networking": {"nodes": "10.9.0.0/16"}}))
        await scene.expect_placed(15)
        await scene.stays_ordered(1, seconds=1.5)
