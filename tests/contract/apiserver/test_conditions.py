"""What is decided on one object is written to another only while the first one stays as it was."""

import asyncio
from typing import Any

import pytest

from gardenbus.common.api.keys import ObjectKey
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
BASIS = ObjectKey("configmap", "garden", "basis")
CONFIRM = {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}


def a_basis(value: str) -> dict[str, Any]:
    metadata = {"name": BASIS.name, "namespace": BASIS.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


@pytest.fixture
async def prepared(apiserver: Apiserver) -> Apiserver:
    """A landscape with one waiting shoot, and an object that decisions are based on."""
    backup = {"backup": {"provider": "aws"}}
    seeds = [a_seed(name, ready=False, spec=backup) for name in ("here", "there")]
    for document in (a_project(), a_cloudprofile(), *seeds, a_basis("one"), a_shoot(metadata=CONFIRM)):
        await apiserver.request("apply", document)
    return apiserver


WRITES: list[tuple[str, Any]] = [
    ("apply", a_shoot(metadata={**CONFIRM, "labels": {"a": "b"}})),
    ("apply", a_shoot("new")),
    ("patch.shoot.garden-dev.apollo", {"metadata": {"labels": {"a": "b"}}}),
    ("bind", {"namespace": "garden-dev", "name": "apollo", "seed": "here"}),
    ("delete.shoot.garden-dev.apollo", b""),
]


@pytest.mark.parametrize(("verb", "body"), WRITES)
async def test_a_condition_that_holds_lets_the_write_through(prepared: Apiserver, verb: str, body: Any) -> None:
    response = await prepared.response(verb, body, condition=await prepared.condition(BASIS))

    assert response["ok"], response
    assert response["outcome"] in ("created", "configured", "deleted")


@pytest.mark.parametrize(("verb", "body"), WRITES)
async def test_a_stale_condition_writes_nothing(prepared: Apiserver, verb: str, body: Any) -> None:
    stale = await prepared.condition(BASIS)
    await prepared.request("apply", a_basis("two"))
    before = await prepared.now(APOLLO)
    for condition in (stale, f"{BASIS.tail}=0", "shoot.garden-dev.nobody=7"):
        error = await prepared.rejection(verb, body, condition=condition)
        assert (error["code"], "Gardenbus-Condition" in error["message"]) == (409, True), error

    assert (await prepared.now(APOLLO)).version == before.version
    assert await prepared.kit.store.get(ObjectKey("shoot", "garden-dev", "new")) is None


async def test_a_condition_may_be_that_an_object_is_not_there(prepared: Apiserver) -> None:
    absence = "shoot.garden-dev.nobody=0"
    assert (await prepared.response("apply", a_basis("two"), condition=absence))["ok"]
    await prepared.request("apply", a_shoot("nobody"))
    assert (await prepared.rejection("apply", a_basis("three"), condition=absence))["code"] == 409


@pytest.mark.parametrize("condition", ["nonsense", "shoot.garden-dev=5", "shoot.garden-dev.apollo=new", "a.b.c=-1"])
async def test_a_condition_that_cannot_be_read_is_refused(prepared: Apiserver, condition: str) -> None:
    assert (await prepared.rejection("apply", a_basis("two"), condition=condition))["code"] == 400


async def test_of_two_hands_on_one_version_one_wins(prepared: Apiserver) -> None:
    await prepared.start()
    for turn in range(20):
        condition = await prepared.condition(BASIS)
        responses = await asyncio.gather(
            *(prepared.response("apply", a_basis(f"{turn} by {hand}"), condition=condition) for hand in range(4))
        )
        assert sorted(response["ok"] for response in responses) == [False, False, False, True]
        assert {response["error"]["code"] for response in responses if not response["ok"]} == {409}


async def test_of_what_is_bound_on_one_version_one_goes(prepared: Apiserver) -> None:
    """As a controller does that may move one shoot a version of its set, and has two replicas."""
    names = [f"shoot{number}" for number in range(6)]
    for name in names:
        await prepared.request("apply", a_shoot(name, spec={"seedName": "here"}))
    condition = await prepared.condition(BASIS)

    async def move_and_note(name: str) -> bool:
        wish = {"namespace": "garden-dev", "name": name, "seed": "there"}
        bound = await prepared.response("bind", wish, condition=condition)
        if bound["ok"]:
            return (await prepared.response("apply", a_basis(name), condition=condition))["ok"]
        return False

    assert sum(await asyncio.gather(*map(move_and_note, names))) == 1


async def test_a_first_bind_on_a_condition_is_like_any_other(prepared: Apiserver) -> None:
    wish = {"namespace": "garden-dev", "name": "apollo", "seed": "here"}
    await prepared.kit.fresh_entries()
    bound = await prepared.response("bind", wish, condition=await prepared.condition(BASIS))

    assert bound["result"]["spec"]["seedName"] == "here"
    assert bound["result"]["metadata"]["finalizers"] == ["gardener"]
    (event,) = await prepared.kit.events()
    assert (event.event.reason, event.event.message) == ("SchedulingSuccessful", 'Scheduled to seed "here"')
    assert (await prepared.kit.store.usage()).seeds["here"] == 1
    assert (await prepared.kit.store.census())["shoots.pending"] == 0
