"""Overrides, as people write them: stored, refused, and one for an object whoever is first."""

import asyncio

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from tests.contract.apiserver.conftest import Apiserver
from tests.support.overrides import SETTINGS, a_cro, an_ro, for_clusters, to

BLUE = for_clusters(to("/data/colour", "blue"))


async def test_an_override_is_stored_and_something_acts_on_it(apiserver: Apiserver) -> None:
    reply = await apiserver.response("apply", a_cro(BLUE))
    assert reply["ok"]
    assert not reply.get("warnings")
    actors = {each["singular"]: each["actsOn"] for each in await apiserver.request("kinds")}
    assert actors["clusterresourceoverride"] == actors["resourceoverride"] == "placement"


async def test_a_refused_override_names_its_field_and_what_to_do(apiserver: Apiserver) -> None:
    rejection = await apiserver.rejection("apply", a_cro(for_clusters(to("/metadata/name", "x"))))
    assert [each["field"] for each in rejection["details"]] == [
        "spec.policy.overrideRules[0].jsonPatchOverrides[0].path"
    ]


async def test_an_override_in_kubefleets_older_version_is_stored_in_the_newer_one(apiserver: Apiserver) -> None:
    older: Document = {**a_cro(BLUE), "apiVersion": "placement.kubernetes-fleet.io/v1alpha1"}
    await apiserver.request("apply", older)
    stored = await apiserver.request(f"get.clusterresourceoverride._.{older['metadata']['name']}")
    assert stored["apiVersion"] == "placement.kubernetes-fleet.io/v1beta1"
    assert stored["spec"] == a_cro(BLUE)["spec"]
    placement = {"apiVersion": "placement.kubernetes-fleet.io/v1alpha1", "kind": "ClusterResourcePlacement"}
    rejected = await apiserver.rejection("apply", {**placement, "metadata": {"name": "web"}})
    assert "write apiVersion: placement.kubernetes-fleet.io/v1beta1" in rejected["message"]


async def test_of_two_overrides_for_an_object_one_is_taken(apiserver: Apiserver) -> None:
    await apiserver.start()  # of two replicas none knows what the other is about to write
    responses = await asyncio.gather(
        *(apiserver.response("apply", an_ro(BLUE, name=f"o{number}")) for number in range(4))
    )
    assert sorted(each["ok"] for each in responses) == [False, False, False, True], responses
    another = an_ro(BLUE, name="another", selectors=[{**SETTINGS, "name": "other"}])
    await apiserver.request("apply", another)
    late = await apiserver.rejection("apply", an_ro(BLUE, name="late"))
    assert "is changed by the ResourceOverride o" in late["message"]


async def test_nobody_writes_snapshots_of_overrides(apiserver: Apiserver) -> None:
    snapshot = {**a_cro(BLUE), "kind": "ClusterResourceOverrideSnapshot"}
    rejection = await apiserver.rejection("apply", {**snapshot, "spec": {}})
    assert "change the override's spec" in rejection["message"]
    assert await apiserver.kit.store.get(ObjectKey("clusterresourceoverridesnapshot", "", "all")) is None
