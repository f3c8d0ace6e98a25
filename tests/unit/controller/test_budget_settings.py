from gardenbus.common.api.budgets import BUDGETS, DEFAULT_BUDGET
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.budget_settings import BudgetSettings
from tests.support.builders import a_project
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore


async def stored(document: Document) -> StoredObject:
    created = await MemoryStore(FakeClock()).create(document)
    assert isinstance(created, StoredObject)
    return created


def settings_of(budgets: str) -> Document:
    metadata = {"name": BUDGETS.name, "namespace": BUDGETS.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"budgets": budgets}}


def a_project_of(*members: Document, name: str = "dev") -> Document:
    return a_project(name, spec={"members": list(members)})


async def test_settings_take_effect_when_they_change_and_go_with_the_configmap() -> None:
    settings = BudgetSettings()
    assert settings.of("ann") == DEFAULT_BUDGET
    settings.on_change(BUDGETS, None, await stored(settings_of("users: {ann: {watches: 3}}")))
    assert (settings.of("ann").watches, settings.of("bob")) == (3, DEFAULT_BUDGET)
    settings.on_change(BUDGETS, None, await stored(settings_of("default: {watches: 5}")))
    assert (settings.of("ann").watches, settings.of("bob").watches) == (5, 5)
    settings.on_change(BUDGETS, None, None)
    assert settings.of("ann") == DEFAULT_BUDGET


async def test_settings_that_cannot_be_read_and_other_configmaps_change_nothing() -> None:
    settings = BudgetSettings()
    settings.on_change(BUDGETS, None, await stored(settings_of("default: {watches: 5}")))
    settings.on_change(BUDGETS, None, await stored(settings_of("default: {watches: none}")))
    other = ObjectKey("configmap", "garden", "others")
    settings.on_change(other, None, await stored(settings_of("default: {watches: 7}")))
    assert settings.of("ann").watches == 5


async def test_the_groups_of_a_credential_count() -> None:
    settings = BudgetSettings()
    settings.on_change(
        BUDGETS, None, await stored(settings_of('groups: {"gardener.cloud:system:seeds": {watches: 3}}'))
    )
    assert settings.of("seed:aws").watches == 3
    accounts = 'groups: {"system:serviceaccounts:ci": {watches: 4}}'
    settings.on_change(BUDGETS, None, await stored(settings_of(accounts)))
    assert settings.of("system:serviceaccount:ci:robot").watches == 4
    assert settings.of("ann") == settings.of("seed:") == DEFAULT_BUDGET


async def test_agents_get_few_connections_unless_a_number_is_set_for_them() -> None:
    settings = BudgetSettings()
    agents = ("seed:aws", "member:rome", "scheduler:mine", "extension:aws", "plugin:carbon")
    assert [settings.of(user).connections for user in (*agents, "ann")] == [3, 3, 8, 3, 3, 64]
    limits = "default: {agentsConnections: 4, schedulersConnections: 5}"
    text = f'{limits}\nusers: {{"seed:aws": {{connections: 64}}}}'
    settings.on_change(BUDGETS, None, await stored(settings_of(text)))
    assert [settings.of(user).connections for user in (*agents, "ann")] == [64, 4, 5, 4, 4, 64]
    settings.on_change(BUDGETS, None, await stored(settings_of("default: {connections: 2}")))
    assert [settings.of(user).connections for user in (*agents, "ann")] == [2] * 6


async def test_a_projects_budget_is_its_members_whatever_they_are_and_while_they_are() -> None:
    settings = BudgetSettings()
    settings.on_change(BUDGETS, None, await stored(settings_of("projects: {dev: {watches: 3}, ops: {watches: 9}}")))
    dev, ops = ObjectKey("project", "", "dev"), ObjectKey("project", "", "ops")
    members = (
        {"kind": "User", "name": "ann", "role": "viewer"},
        {"kind": "ServiceAccount", "name": "robot", "namespace": "garden-dev", "role": "admin"},
        {"kind": "Group", "name": "gardener.cloud:system:seeds", "role": "viewer"},
        {"kind": "User", "name": 5},
    )
    settings.on_change(dev, None, await stored(a_project_of(*members)))
    settings.on_change(ops, None, await stored(a_project("ops", spec={"owner": {"kind": "User", "name": "ann"}})))
    users = ("ann", "system:serviceaccount:garden-dev:robot", "seed:aws", "bob")
    assert [settings.of(user).watches for user in users] == [9, 3, 3, 16]
    settings.on_change(dev, None, await stored(a_project_of(name="dev")))
    settings.on_change(ops, None, None)
    assert [settings.of(user).watches for user in users] == [DEFAULT_BUDGET.watches] * 4
