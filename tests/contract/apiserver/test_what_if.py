"""A supposition about a live landscape leaves the store as it was."""

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.state_collector import current_documents
from gardenbus.cli.simulate.what_if import WhatIfChanges, compare_schedules
from gardenbus.common.adapters.nats.jetstream import connect
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot


async def test_supposing_writes_nothing(apiserver: Apiserver) -> None:
    landscape = [a_project(), a_cloudprofile(), a_seed("old"), a_seed("new"), a_shoot("one"), a_shoot("two")]
    for document in landscape:
        await apiserver.request("apply", document)
    before = await apiserver.request("list.shoot"), await apiserver.request("census")

    async with connect(apiserver.nats_url, "operator", apiserver.subjects.prefix) as bus:
        documents, strategy = await current_documents(ApiClient(bus, apiserver.subjects))
    supposition = WhatIfChanges(removed=("old",), shoots=5, like="one", added=(a_seed("newest"),))
    found = compare_schedules(documents, supposition, strategy=strategy)

    assert [each.after for each in found.shoots if each.is_new] == ["newest"] * 5
    after = await apiserver.request("list.shoot"), await apiserver.request("census")
    assert after == before
    assert after[0]["resourceVersion"] == before[0]["resourceVersion"]
