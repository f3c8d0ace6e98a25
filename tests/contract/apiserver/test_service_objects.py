"""What the placement service writes for itself is not written by requests."""

import pytest

from gardenbus.apiserver.domain.controller_owned_kinds import CONTROLLER_OWNED_KINDS
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.kinds import KINDS
from tests.contract.apiserver.conftest import Apiserver


def an_object(singular: str) -> Document:
    spec = KINDS[singular]
    metadata = {"name": "web-0", **({"namespace": "team"} if spec.namespaced else {})}
    return {"apiVersion": spec.api_version, "kind": spec.kind, "metadata": metadata, "spec": {}}


@pytest.mark.parametrize("singular", sorted(CONTROLLER_OWNED_KINDS))
async def test_nobody_applies_patches_or_deletes_one(apiserver: Apiserver, singular: str) -> None:
    document = an_object(singular)
    tail = ObjectKey(singular, document["metadata"].get("namespace", ""), "web-0").tail
    rejections = [await apiserver.rejection("apply", document)]
    await apiserver.kit.store.create(document)
    rejections.append(await apiserver.rejection("apply", document))
    rejections.append(await apiserver.rejection(f"patch.{tail}", {"spec": {"state": "Bound"}}))
    rejections.append(await apiserver.rejection(f"delete.{tail}"))

    for rejection in rejections:
        assert rejection["code"] == 403
        assert "the placement service" in rejection["message"]
    assert (await apiserver.now(ObjectKey.from_tail(tail))).document()["spec"] == {}


async def test_durable_requests_for_one_are_rejected(apiserver: Apiserver) -> None:
    await apiserver.publish("apply", an_object("clusterresourcebinding"))
    assert "ClusterResourcePlacementEviction" in await apiserver.reason()
