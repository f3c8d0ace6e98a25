"""What is ordered in a namespace that leaves, on real servers."""

import asyncio

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Conflict, Forbidden
from gardenbus.common.ports.store import WritePrecondition
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_project, a_shoot

NAMESPACE = ObjectKey("namespace", "", "garden-dev")
SECRET: Document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kept", "namespace": "garden-dev"}}
REASON = "unable to create new content in namespace garden-dev because it is being terminated"


async def a_namespace(apiserver: Apiserver) -> None:
    metadata = {"name": NAMESPACE.name, "finalizers": ["gardener"]}
    await apiserver.kit.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


async def mark(apiserver: Apiserver) -> bool:
    """Delete the namespace as its Project does; whether it was empty of shoots."""
    stored = await apiserver.now(NAMESPACE)
    try:
        await apiserver.kit.store.delete(
            stored, preconditions=(WritePrecondition("references", NAMESPACE.stored, "there are shoots"),)
        )
    except (Forbidden, Conflict):
        return False
    return True


async def test_nothing_new_comes_about_in_a_namespace_that_leaves(apiserver: Apiserver) -> None:
    await a_namespace(apiserver)
    await apiserver.request("apply", SECRET)
    assert await mark(apiserver)
    for document, what in (
        (a_shoot(), 'shoots.core.gardener.cloud "apollo"'),
        ({**SECRET, **_named("late")}, 'secrets "late"'),
    ):
        error = await apiserver.rejection("apply", document)
        assert error["code"] == 403
        assert error["message"].endswith(f"{what} is forbidden: {REASON}")
    await apiserver.request("apply", {**SECRET, "stringData": {"a": "b"}})

    await apiserver.publish("apply", a_shoot("one"))
    await apiserver.until_handled()
    assert REASON in await apiserver.reason()
    assert (await apiserver.kit.store.list_page("shoot")).objects == []


async def test_of_orders_and_a_deletion_at_once_either_the_namespace_stays_or_no_shoot_is_left_in_it(
    apiserver: Apiserver,
) -> None:
    await a_namespace(apiserver)
    await apiserver.request("apply", a_project())
    orders = [apiserver.response("apply", a_shoot(f"s{number}")) for number in range(20)]
    _, is_marked = await asyncio.gather(asyncio.gather(*orders), mark(apiserver))
    shoots = (await apiserver.kit.store.list_page("shoot")).objects
    assert bool(shoots) is not is_marked


def _named(name: str) -> Document:
    return {"metadata": {"name": name, "namespace": "garden-dev"}}
