"""What the placement service writes for itself is not written by requests."""

import pytest

from gardenbus.apiserver.decide.service_objects import SERVICE_KINDS
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.kinds import KINDS
from tests.contract.apiserver.conftest import Apiserver


def an_object(singular: str) -> Document:
    spec = KINDS[singular]
    metadata = {"name": "web-0", **({"namespace": "team"} if spec.namespaced else {})}
    return {"apiVersion": spec.api_version, "kind": spec.kind, "metadata": metadata, "spec": {}}


@pytest.mark.parametrize("singular", sorted(SERVICE_KINDS))
async def test_nobody_applies_patches_or_deletes_one(apiserver: Apiserver, singular: str) -> None:
    document = an_object(singular)
    tail = ObjectKey(singular, document["metadata"].get("namespace", ""), "web-0").tail
    refusals = [await apiserver.refusal("apply", document)]
    await apiserver.kit.store.create(document)
    refusals.append(await apiserver.refusal("apply", document))
    refusals.append(await apiserver.refusal(f"patch.{tail}", {"spec": {"state": "Bound"}}))
    refusals.append(await apiserver.refusal(f"delete.{tail}"))

    for refusal in refusals:
        assert refusal["code"] == 403
        assert "the placement service" in refusal["message"]
    assert (await apiserver.now(ObjectKey.from_tail(tail))).document()["spec"] == {}


async def test_durable_requests_for_one_are_rejected(apiserver: Apiserver) -> None:
    await apiserver.publish("apply", an_object("clusterresourcebinding"))
    assert "ClusterResourcePlacementEviction" in await apiserver.reason()
