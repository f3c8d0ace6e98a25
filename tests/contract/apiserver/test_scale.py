"""The scale of a set is read and written by itself."""

import asyncio
from typing import Any

import pytest

from gardenbus.common.api.keys import ObjectKey
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_project, a_shoot

SET = ObjectKey("managedseedset", "garden", "grove")
LABELS = {"name": "grove"}


def a_set(**spec: Any) -> dict[str, Any]:
    seed = {"metadata": {"labels": LABELS}, "spec": {"provider": {"type": "aws", "region": "eu-west-1"}}}
    config = {
        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
        "kind": "GardenletConfiguration",
        "seedConfig": seed,
    }
    return {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeedSet",
        "metadata": {"name": SET.name, "namespace": SET.namespace},
        "spec": {
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": {"gardenlet": {"config": config}}},
            "shootTemplate": {"metadata": {"labels": LABELS}, "spec": a_shoot()["spec"]},
            **spec,
        },
    }


@pytest.fixture
async def grove(apiserver: Apiserver) -> Apiserver:
    """A set of one."""
    await apiserver.request("apply", a_project("garden", "garden"))
    await apiserver.request("apply", a_set(replicas=1))
    return apiserver


async def test_a_scale_says_what_is_wanted_and_what_is_there(grove: Apiserver) -> None:
    stored = await grove.now(SET)
    await grove.kit.store.update(stored, {**stored.document(), "status": {"replicas": 3}})

    assert await grove.request("scale", {"name": "grove"}) == {
        "replicas": 1,
        "statusReplicas": 3,
        "selector": "name=grove",
        "resourceVersion": str((await grove.now(SET)).version),
    }


async def test_a_set_is_scaled_and_nothing_else_of_it_changes(grove: Apiserver) -> None:
    before = (await grove.now(SET)).document()
    response = await grove.response("scale", {"namespace": "garden", "name": "grove", "replicas": 4}, user="autoscaler")

    stored = await grove.now(SET)
    assert (response["outcome"], response["result"]["replicas"]) == ("configured", 4)
    assert response["result"]["resourceVersion"] == str(stored.version)
    assert stored.document()["spec"] == {**before["spec"], "replicas": 4}
    again = await grove.response("scale", {"name": "grove", "replicas": 4})
    assert (again["outcome"], (await grove.now(SET)).version) == ("unchanged", stored.version)


async def test_of_two_who_scale_one_version_one_wins(grove: Apiserver) -> None:
    for turn in range(1, 11):
        version = (await grove.request("scale", {"name": "grove"}))["resourceVersion"]
        operations = [{"name": "grove", "replicas": turn * 10 + hand, "resourceVersion": version} for hand in range(2)]
        responses = await asyncio.gather(*(grove.response("scale", wish) for wish in operations))

        assert sorted(response["ok"] for response in responses) == [False, True]
        assert [response["error"]["code"] for response in responses if not response["ok"]] == [409]
        (won,) = (response["result"]["replicas"] for response in responses if response["ok"])
        assert (await grove.request("scale", {"name": "grove"}))["replicas"] == won


async def test_a_scale_that_cannot_be_is_refused(grove: Apiserver) -> None:
    assert (await grove.rejection("scale", {"name": "nowhere"}))["code"] == 404
    assert (await grove.rejection("scale", {"name": "nowhere", "replicas": 1}))["code"] == 404
    assert (await grove.rejection("scale", {"replicas": 1}))["code"] == 400
    assert (await grove.rejection("scale", {"name": "grove", "replicas": "many"}))["code"] == 400
    assert (await grove.rejection("scale", {"name": "grove", "replicas": -1}))["code"] == 400
    assert (await grove.rejection("scale", {"name": "grove", "replicas": 2}, condition=f"{SET.tail}=1"))["code"] == 409
    assert (await grove.request("scale", {"name": "grove"}))["replicas"] == 1
