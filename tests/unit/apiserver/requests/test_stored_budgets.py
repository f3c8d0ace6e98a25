"""Budgets of what a Project holds in the store: for people and ServiceAccounts, by user, group and Project."""

from typing import Any

import pytest
from prometheus_client import REGISTRY

from gardenbus.apiserver.registry.stored_amounts import StoredAmounts
from gardenbus.common.api.budgets import BUDGETS, Budget
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.budget_settings import BudgetSettings
from gardenbus.common.controller.budget_use import BudgetUse
from tests.support.authorized_apiserver import AuthorizedApiserver, two_projects

HELD = 3
"""Objects of each Project of `two_projects`."""

ORDINARY = f"default: {{storedObjects: {HELD + 1}}}"
SERVICE_ACCOUNT = "system:serviceaccount:garden-dev:ci"


def settings_of(budgets: str) -> Document:
    metadata = {"name": BUDGETS.name, "namespace": BUDGETS.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"budgets": budgets}}


async def with_budgets(text: str) -> tuple[AuthorizedApiserver, BudgetSettings]:
    budgets = BudgetSettings()
    budgets.note(settings_of(text))
    apiserver = await two_projects(budgets)
    for name in ("dev", "prod"):
        project = await apiserver.store.get(ObjectKey("project", "", name))
        assert project is not None
        budgets.on_change(project.key, None, project)
    return apiserver, budgets


def a_config_map(name: str, namespace: str = "garden-dev", text: str = "") -> Document:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}


def rejections(limit: str) -> float:
    return REGISTRY.get_sample_value("gardenbus_apiserver_over_budget_total", {"limit": limit}) or 0


async def test_a_tenant_stores_no_more_than_its_budget_and_learns_which_limit_it_is() -> None:
    apiserver, _ = await with_budgets(ORDINARY)
    counted = rejections("storedObjects")
    assert await apiserver.code("adam", "apply", a_config_map("one")) == 200
    response = await apiserver.response("adam", "apply", a_config_map("two"))
    error = response["error"]
    assert (error["code"], error["reason"], error["limit"]) == (403, "Forbidden", "storedObjects")
    for part in ("'garden-dev'", f"storedObjects ({HELD + 1} of {HELD + 1} used)", "garden/budgets"):
        assert part in error["message"]
    assert rejections("storedObjects") == counted + 1
    assert await apiserver.code("paul", "apply", a_config_map("one", "garden-prod")) == 200
    assert await apiserver.code("adam", "delete.configmap.garden-dev.one") == 200
    assert await apiserver.code("adam", "apply", a_config_map("two")) == 200


async def test_of_many_in_one_message_those_are_stored_that_there_is_room_for() -> None:
    apiserver, _ = await with_budgets(ORDINARY)
    items = [a_config_map(f"c{each}") for each in range(3)]
    response = await apiserver.response("adam", "apply", {"apiVersion": "v1", "kind": "List", "items": items})
    assert [each["ok"] for each in response["result"]] == [True, False, False]
    assert {each["error"]["limit"] for each in response["result"][1:]} == {"storedObjects"}


async def test_bytes_are_bounded_by_patches_too_and_what_shrinks_passes() -> None:
    apiserver, _ = await with_budgets("default: {storedBytes: 8Ki}")
    assert await apiserver.code("adam", "apply", a_config_map("one", text="a" * 1000)) == 200
    grown = {"data": {"text": "a" * 12_000}}
    response = await apiserver.response("adam", "patch.configmap.garden-dev.one", grown)
    assert (response["error"]["code"], response["error"]["limit"]) == (403, "storedBytes")
    assert await apiserver.code("adam", "patch.configmap.garden-dev.one", {"data": {"text": ""}}) == 200


@pytest.mark.parametrize("user", ["root", ""])
async def test_operators_and_services_are_not_bounded(user: str) -> None:
    apiserver, _ = await with_budgets("default: {storedObjects: 1}")
    response = await apiserver.response(user, "apply", a_config_map("one"), is_insider=not user)
    assert response["ok"], response


@pytest.mark.parametrize(
    ("settings", "codes"),
    [
        (f"{ORDINARY}\nusers: {{adam: {{storedObjects: 99}}}}", [200, 200, 403]),
        (f"{ORDINARY}\nprojects: {{dev: {{storedObjects: 99}}}}", [200, 200, 403]),
        (f"{ORDINARY}\nprojects: {{prod: {{storedObjects: 99}}}}", [200, 403, 200]),
    ],
)
async def test_limits_are_set_by_user_and_by_the_project_that_holds_the_objects(
    settings: str, codes: list[int]
) -> None:
    apiserver, _ = await with_budgets(settings)
    requests = [("adam", "garden-dev", "one"), ("adam", "garden-dev", "two")]
    found = [await apiserver.code(user, "apply", a_config_map(name, where)) for user, where, name in requests]
    await apiserver.code("paul", "apply", a_config_map("one", "garden-prod"))
    found.append(await apiserver.code("paul", "apply", a_config_map("two", "garden-prod")))
    assert found == codes


async def test_a_limit_of_one_project_is_none_of_another_that_the_user_is_a_member_of() -> None:
    _, budgets = await with_budgets("projects: {dev: {storedObjects: 7}}\ngroups: {people: {storedObjects: 8}}")
    assert budgets.within("adam", "garden-dev").stored_objects == 7
    assert budgets.within("adam", "garden-prod").stored_objects == Budget().stored_objects
    assert budgets.within("", "garden-dev").stored_objects == 7
    budgets.note(settings_of('groups: {"system:serviceaccounts:garden-dev": {storedObjects: 9}}'))
    assert budgets.within(SERVICE_ACCOUNT, "garden-dev").stored_objects == 9


async def test_what_projects_hold_is_reported_beside_their_limits() -> None:
    apiserver, budgets = await with_budgets("projects: {dev: {storedObjects: 6}}")
    use = BudgetUse(budgets.of)
    stored = StoredAmounts(apiserver.store, budgets, use)
    await stored.read()
    reported: list[Any] = use.report()["budgets"]
    objects = {each["user"]: (each["held"], each["most"]) for each in reported if each["limit"] == "storedObjects"}
    assert objects == {"Project dev": (HELD, 6), "Project prod": (HELD, Budget().stored_objects)}
    assert REGISTRY.get_sample_value("gardenbus_budget_used_ratio", {"limit": "storedObjects"}) == HELD / 6
    assert all(each["held"] > 0 for each in reported if each["limit"] == "storedBytes")
