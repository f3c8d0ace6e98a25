"""A dry run is answered as the request would be, and nothing is written."""

from typing import Any, cast

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_project, a_seed, a_shoot

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
CONFIRM = {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}
DECIDED_BY_STORE = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
PATCH = {"metadata": {"labels": {"a": "b"}}, "spec": {"purpose": "testing"}}

WRITES: list[tuple[str, Any]] = [
    ("apply", a_shoot(metadata={**CONFIRM, "labels": {"a": "b"}})),
    ("apply", a_shoot("new")),
    ("apply", [a_shoot("new"), a_shoot("newer")]),
    ("patch.shoot.garden-dev.apollo", PATCH),
    ("patch", {"kind": "Shoot", "namespace": "garden-dev", "name": "apollo", "patch": PATCH}),
    ("delete.shoot.garden-dev.apollo", b""),
    ("delete", {"kind": "Shoot", "namespace": "garden-dev", "name": "gemini", "confirm": True}),
    ("delete", {"kind": "Shoot", "namespace": "garden-dev", "name": "gemini", "confirm": "yes"}),
    ("delete", {"kind": "Shoot", "namespace": "garden-dev", "name": "nobody", "confirm": True}),
    ("delete.seed.full", b""),
    ("delete", {"kind": "Seed", "name": "full", "confirm": True}),
    ("delete", {"kind": "Project", "name": "dev", "confirm": True}),
    ("apply", a_seed("full", ready=False, spec={"provider": {"type": "gcp"}})),
    ("apply", a_shoot("new", spec={"provider": {}})),
    ("apply", a_project("other")),
    ("apply", a_project("other", namespace="garden-dev")),
    ("apply", a_shoot("new", spec={"seedName": "full"})),
    ("apply", a_shoot("new", spec={"seedName": "nowhere"})),
    ("patch.shoot.garden-dev.nobody", PATCH),
    ("delete.project._.dev", b""),
]


@pytest.fixture
async def prepared(apiserver: Apiserver) -> Apiserver:
    """A landscape with a waiting shoot, and a seed that is full by another one."""
    seed = a_seed("full", shoots="1", ready=False)
    for document in (a_project(), seed, a_shoot(metadata=CONFIRM), a_shoot("gemini")):
        await apiserver.kit.created(document)
    await apiserver.kit.bound(await apiserver.now(ObjectKey("shoot", "garden-dev", "gemini")), "full")
    return apiserver


def _without_what_each_request_has(response: Document) -> Document:
    """A response without its own id in the log, and without what the store decides."""
    response.get("error", {}).pop("reconcileId", None)
    result: Any = response.get("result") or {}
    for one in cast("list[Any]", result) if isinstance(result, list) else [result]:
        for field in DECIDED_BY_STORE:
            one.get("metadata", {}).pop(field, None)
    return response


def _message(body: Any) -> Any:
    return {"kind": "List", "items": cast("list[Any]", body)} if isinstance(body, list) else body


@pytest.mark.parametrize(("verb", "body"), WRITES)
async def test_a_dry_run_is_answered_as_the_request_is_and_leaves_no_trace(
    prepared: Apiserver, verb: str, body: Any
) -> None:
    await prepared.kit.fresh_entries()
    before = {key: await prepared.kit.store.get(key) for key in (APOLLO, ObjectKey("shoot", "garden-dev", "new"))}
    rehearsed = await prepared.response(verb, _message(body), dry_run="true")

    assert not await prepared.kit.fresh_entries()
    assert {key: await prepared.kit.store.get(key) for key in before} == before
    performed = await prepared.response(verb, _message(body))
    assert _without_what_each_request_has(rehearsed) == _without_what_each_request_has(performed)


async def test_a_shoot_sees_the_project_of_the_same_dry_run(prepared: Apiserver) -> None:
    set_of = [a_project("fresh"), a_shoot("first", "garden-fresh")]
    response = await prepared.response("apply", _message(set_of), dry_run="true")
    assert response["ok"]
    assert "belongs to no Project" not in str(response)
    alone = await prepared.response("apply", a_shoot("first", "garden-fresh"), dry_run="true")
    assert "belongs to no Project" in str(alone)


async def test_documents_of_one_dry_run_see_each_other(prepared: Apiserver) -> None:
    classed = a_shoot("new", spec={"exposureClassName": "public"})
    exposure_class = {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "ExposureClass",
        "metadata": {"name": "public"},
        "handler": "public",
    }
    both = {"kind": "List", "items": [exposure_class, classed, classed]}

    assert not (await prepared.response("apply", classed, dry_run="true"))["ok"]
    together = await prepared.response("apply", both, dry_run="true")
    assert together["ok"], together
    assert together["outcome"] == ["created", "created", "unchanged"]


async def test_a_dry_run_keeps_to_its_condition(prepared: Apiserver) -> None:
    error = await prepared.rejection("apply", a_shoot("new"), condition=f"{APOLLO.tail}=1", dry_run="true")
    assert error["code"] == 409


async def test_what_has_no_dry_run_says_so_and_writes_nothing(prepared: Apiserver) -> None:
    body = {"namespace": "garden-dev", "name": "apollo", "seed": "full"}
    for verb in ("bind", "retry.garden-dev.apollo"):
        assert "Gardenbus-Dry-Run" in (await prepared.rejection(verb, body, dry_run="true"))["message"]
    assert "true or false" in (await prepared.rejection("apply", a_shoot("new"), dry_run="yes"))["message"]

    await prepared.publish("apply", a_shoot("new"), {"Gardenbus-Dry-Run": "true"})
    assert "garden.api." in await prepared.reason()
    assert await prepared.kit.store.get(ObjectKey("shoot", "garden-dev", "new")) is None


async def test_an_explained_dry_run_says_what_each_plugin_did_and_writes_nothing(prepared: Apiserver) -> None:
    good, bad = a_shoot("new"), a_shoot("newer", spec={"region": "nowhere", "exposureClassName": "none"})
    response = await prepared.response("apply", {"kind": "List", "items": [good, bad, good]}, dry_run="explain")
    assert not response["ok"]
    created, rejected, unchanged = response["result"]
    assert (created["outcome"], unchanged["outcome"]) == ("created", "unchanged")
    steps = {step["plugin"]: step for step in created["admission"]}
    assert steps["ResourceReferenceManager"]["changes"][0]["path"] == "metadata.annotations[gardener.cloud/created-by]"
    assert steps["ShootValidator"] == {"plugin": "ShootValidator", "outcome": "passed"}
    assert "KubeconfigSecret" not in steps, "it is for Secrets"
    assert any(step["outcome"] == "refuses" and step["messages"] for step in rejected["admission"])
    assert not rejected["ok"]
    assert await prepared.kit.store.get(ObjectKey("shoot", "garden-dev", "new")) is None

    both = await prepared.response("apply", {"kind": "List", "items": [good, good]}, dry_run="explain")
    assert [len(steps) > 1 for steps in both["admission"]] == [True, True]
    assert "admission" not in await prepared.response("apply", good, dry_run="true")
    assert "for apply" in (await prepared.rejection("delete.shoot.garden-dev.apollo", dry_run="explain"))["message"]


async def test_all_plugins_that_would_refuse_are_told_and_the_error_is_that_of_the_request(prepared: Apiserver) -> None:
    wrong = a_shoot(
        "new", metadata={"labels": {"a": "b"}}, spec={"secretBindingName": "none", "tolerations": [{"key": "mine"}]}
    )
    explained = await prepared.response("apply", wrong, dry_run="explain")
    refusing = [step["plugin"] for step in explained["admission"] if step["outcome"] == "refuses"]
    assert refusing == ["ResourceReferenceManager", "ShootTolerationRestriction"]
    rejection = await prepared.rejection("apply", wrong)
    assert explained["error"] | {"reconcileId": ""} == rejection | {"reconcileId": ""}
