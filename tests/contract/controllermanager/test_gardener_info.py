"""The landscape's ConfigMaps about itself on real servers: over restarts, and read by a gardenlet."""

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import CLUSTER_IDENTITY, GARDENER_INFO, ObjectKey
from tests.contract.controllermanager.conftest import Landscape
from tests.support.eventually import eventually


async def present(landscape: Landscape, key: ObjectKey) -> Document:
    async def is_there() -> Document:
        document = await landscape.get(key)
        assert document is not None
        return document

    return await eventually(is_there)


async def test_an_identity_is_made_once_and_what_is_deleted_comes_back(landscape: Landscape) -> None:
    async with landscape.controllermanager(), landscape.controllermanager():
        identity = await present(landscape, CLUSTER_IDENTITY)
        info = await present(landscape, GARDENER_INFO)
        await landscape.delete(GARDENER_INFO)
        assert (await present(landscape, GARDENER_INFO))["data"] == info["data"]
    await landscape.delete(GARDENER_INFO)
    async with landscape.controllermanager():
        assert (await present(landscape, GARDENER_INFO))["data"] == info["data"]
        assert await landscape.get(CLUSTER_IDENTITY) == identity
