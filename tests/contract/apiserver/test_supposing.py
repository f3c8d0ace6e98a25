"""A supposition about a live landscape leaves the store as it was."""

from gardenbus.cli.client import ApiClient
from gardenbus.cli.survey import present
from gardenbus.common.adapters.jetstream import connect
from gardenbus.scheduling.what_if import Supposition, difference
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot


async def test_supposing_writes_nothing(apiserver: Apiserver) -> None:
    landscape = [a_project(), a_cloudprofile(), a_seed("old"), a_seed("new"), a_shoot("one"), a_shoot("two")]
    for document in landscape:
        await apiserver.ask("apply", document)
    before = await apiserver.ask("list.shoot"), await apiserver.ask("census")

    async with connect(apiserver.nats_url, "operator", apiserver.subjects.prefix) as bus:
        documents, strategy = await present(ApiClient(bus, apiserver.subjects))
    supposition = Supposition(removed=("old",), shoots=5, like="one", added=(a_seed("newest"),))
    found = difference(documents, supposition, strategy=strategy)

    assert [each.after for each in found.shoots if each.is_new] == ["newest"] * 5
    after = await apiserver.ask("list.shoot"), await apiserver.ask("census")
    assert after == before
    assert after[0]["resourceVersion"] == before[0]["resourceVersion"]
