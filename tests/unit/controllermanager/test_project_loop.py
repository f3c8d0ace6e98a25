"""The loop of projects on the store in memory."""

from datetime import timedelta

import msgspec
import pytest

from gardenbus.common.api.configuration.controller_manager import (
    ControllerManagerConfiguration,
    ProjectControllerConfiguration,
    ProjectQuota,
)
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.issued_credentials import credentials_secret
from gardenbus.common.api.identity.names import service_account
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.selectors import parse_selector
from gardenbus.common.controller.controller import Done, RequeueAfter
from gardenbus.common.errors import Conflict, Unavailable
from gardenbus.controllermanager.controllers.project import CONTENTS, LOOP
from gardenbus.controllermanager.domain.projects import DEFAULT_QUOTA
from gardenbus.controllermanager.namespace_contents import NamespaceContents
from tests.support.builders import a_project, a_shoot
from tests.support.loops import Garden

PROJECT = ObjectKey("project", "", "dev")
SHOOT = ObjectKey("shoot", "garden-dev", "apollo")
NAMESPACE = ObjectKey("namespace", "", "garden-dev")


def a_new_project(name: str = "dev") -> Document:
    project = a_project(name)
    del project["status"]
    return project


def a_secret(name: str, namespace: str = "garden-dev", **metadata: object) -> Document:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace, **metadata}}


@pytest.fixture
def garden() -> Garden:
    return Garden()


async def phase(garden: Garden) -> str:
    project = await garden.now("project", "dev")
    return "gone" if project is None else project.get("status", {}).get("phase", "")


async def test_a_new_project_gets_its_namespace_and_is_ready(garden: Garden) -> None:
    await garden.add(a_new_project())
    assert await garden.reconcile(LOOP, PROJECT) == Done()
    project = await garden.now("project", "dev")
    assert project is not None
    assert project["metadata"]["finalizers"] == ["gardener"]
    assert project["status"] == {"phase": "Ready", "observedGeneration": 1}
    namespace = await garden.now("namespace", "garden-dev")
    assert namespace is not None
    assert namespace["metadata"]["annotations"]["namespace.gardener.cloud/project"] == project["metadata"]["uid"]
    assert garden.events("NamespaceReconcileSuccessful") == [
        'Successfully reconciled namespace "garden-dev" for project'
    ]


async def test_a_second_reconcile_writes_nothing(garden: Garden) -> None:
    await garden.add(a_new_project())
    await garden.reconcile(LOOP, PROJECT)
    before = await garden.store.get(PROJECT), await garden.store.get(NAMESPACE)
    await garden.reconcile(LOOP, PROJECT)
    assert (await garden.store.get(PROJECT), await garden.store.get(NAMESPACE)) == before


async def test_a_project_whose_namespace_is_somebody_elses_fails_until_it_may_have_it(garden: Garden) -> None:
    await garden.add(a_new_project(), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden-dev"}})
    assert isinstance(await garden.reconcile(LOOP, PROJECT), Unavailable)
    assert await phase(garden) == "Failed"
    (message,) = garden.events("NamespaceReconcileFailed")
    assert "needs the labels of the project" in message

    labels = {"gardener.cloud/role": "project", "project.gardener.cloud/name": "dev"}
    await garden.change(NAMESPACE, lambda namespace: namespace["metadata"].update(labels=labels))
    assert await garden.reconcile(LOOP, PROJECT) == Done()
    assert await phase(garden) == "Ready"


async def test_the_resource_quota_is_made_and_what_people_raised_stays() -> None:
    quota = ProjectQuota(config={"spec": {"hard": {"count/shoots.core.gardener.cloud": "10"}}})
    section = ProjectControllerConfiguration(quotas=(quota,))
    garden = Garden(ControllerManagerConfiguration(project=section))
    await garden.add(a_new_project())
    await garden.reconcile(LOOP, PROJECT)
    key = ObjectKey("resourcequota", "garden-dev", "gardener")

    def raise_limit(document: Document) -> None:
        document["spec"]["hard"]["count/shoots.core.gardener.cloud"] = "100"

    raised = await garden.change(key, raise_limit)
    await garden.reconcile(LOOP, PROJECT)
    assert await garden.store.get(key) == raised


async def test_a_new_project_gets_the_default_quota_once_and_one_that_is_there_already_none() -> None:
    garden = Garden()
    await garden.add(a_new_project())
    await garden.reconcile(LOOP, PROJECT)
    assert await hard_of(garden) == DEFAULT_QUOTA.config["spec"]["hard"]

    quota = await garden.store.get(ObjectKey("resourcequota", "garden-dev", "gardener"))
    assert quota is not None
    await garden.store.delete(quota)
    await garden.reconcile(LOOP, PROJECT)
    assert await garden.now("resourcequota", "gardener", "garden-dev") is None, "an operator took it away"


async def test_a_project_whose_namespace_could_not_be_had_at_first_gets_the_default_quota_too(garden: Garden) -> None:
    await garden.add(a_new_project(), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden-dev"}})
    assert isinstance(await garden.reconcile(LOOP, PROJECT), Unavailable)
    labels = {"gardener.cloud/role": "project", "project.gardener.cloud/name": "dev"}
    await garden.change(NAMESPACE, lambda namespace: namespace["metadata"].update(labels=labels))
    await garden.reconcile(LOOP, PROJECT)
    assert await hard_of(garden) == DEFAULT_QUOTA.config["spec"]["hard"]


async def test_where_no_quotas_are_configured_on_purpose_a_project_gets_none() -> None:
    garden = Garden(ControllerManagerConfiguration(project=ProjectControllerConfiguration(quotas=())))
    await garden.add(a_new_project())
    await garden.reconcile(LOOP, PROJECT)
    assert await garden.now("resourcequota", "gardener", "garden-dev") is None


def quotas_of(*sizes: tuple[str, dict[str, str]]) -> ControllerManagerConfiguration:
    """A configuration with a quota for each size of project ("": any)."""
    quotas = tuple(
        ProjectQuota(
            config={"spec": {"hard": hard}},
            project_selector=parse_selector({"matchLabels": {"size": size} if size else {}}),
        )
        for size, hard in sizes
    )
    return ControllerManagerConfiguration(project=ProjectControllerConfiguration(quotas=quotas))


async def hard_of(garden: Garden) -> Document:
    found = await garden.now("resourcequota", "gardener", "garden-dev")
    assert found is not None
    return dict(found["spec"]["hard"])


async def test_the_resource_quota_follows_the_configuration_and_the_labels_of_the_project() -> None:
    shoots, secrets, configs = "count/shoots.core.gardener.cloud", "count/secrets", "count/configmaps"
    garden, key = Garden(), ObjectKey("resourcequota", "garden-dev", "gardener")
    garden.configuration = quotas_of(("", {shoots: "10", secrets: "40"}))
    await garden.add(a_new_project())
    await garden.reconcile(LOOP, PROJECT)
    assert await hard_of(garden) == {shoots: "10", secrets: "40"}

    garden.configuration = quotas_of(("large", {shoots: "99"}), ("", {shoots: "20", configs: "5"}))
    changed = LOOP.build(garden.context(LOOP.name)).changed
    project = await garden.store.get(PROJECT)
    changed(PROJECT, None, project)
    assert garden.enqueued == [(LOOP.name, PROJECT)], "after a start each project is looked at"
    await garden.reconcile(LOOP, PROJECT)
    assert await hard_of(garden) == {shoots: "10", configs: "5"}, "what is hard already stays"

    await garden.delete(key)
    await garden.reconcile(LOOP, PROJECT)
    assert await hard_of(garden) == {shoots: "20", configs: "5"}
    labelled = await garden.change(PROJECT, lambda dev: dev["metadata"].update(labels={"size": "large"}))
    changed(PROJECT, project, labelled)
    assert garden.enqueued == [(LOOP.name, PROJECT)] * 2
    await garden.delete(key)
    await garden.reconcile(LOOP, PROJECT)
    assert await hard_of(garden) == {shoots: "99"}


async def test_a_deleted_project_waits_for_its_shoots_then_for_its_namespace_and_goes(garden: Garden) -> None:
    await garden.add(a_new_project())
    await garden.reconcile(LOOP, PROJECT)
    await garden.add(a_shoot(), a_secret("plain"), a_secret("held", finalizers=["somebody"]))
    assert await garden.delete(PROJECT)

    assert isinstance(await garden.reconcile(LOOP, PROJECT), RequeueAfter)
    assert await phase(garden) == "Terminating"
    assert garden.events("NamespaceNotEmpty") == [
        'Cannot release namespace "garden-dev" because it still contains Shoots'
    ]
    assert await garden.now("secret", "plain", "garden-dev") is not None

    await garden.delete(SHOOT)
    assert isinstance(await garden.reconcile(LOOP, PROJECT), RequeueAfter)
    namespace = await garden.now("namespace", "garden-dev")
    assert namespace is not None
    assert namespace["metadata"]["deletionTimestamp"]
    assert await garden.now("secret", "plain", "garden-dev") is None
    assert await phase(garden) == "Terminating"

    await garden.change(
        ObjectKey("secret", "garden-dev", "held"), lambda secret: secret["metadata"].update(finalizers=[])
    )
    assert await garden.reconcile(LOOP, PROJECT) == Done("it is released")
    assert await phase(garden) == "gone"
    assert await garden.now("namespace", "garden-dev") is None
    assert await garden.now("secret", "held", "garden-dev") is None


async def test_with_its_namespace_the_tokens_of_its_service_accounts_end(garden: Garden) -> None:
    await garden.add(a_new_project())
    await garden.reconcile(LOOP, PROJECT)
    robot = service_account("garden-dev", "robot")
    await garden.add(credentials_secret("robot", robot, garden.clock.now() + timedelta(days=1), password="secret"))
    await garden.delete(PROJECT)

    assert await garden.reconcile(LOOP, PROJECT) == Done("it is released")

    assert await garden.now("secret", "robot", "garden") is None
    revoked = await garden.now("configmap", "revoked-credentials", "garden")
    assert revoked is not None
    assert list(revoked["data"]) == ["system:serviceaccount:garden-dev:robot"]


async def test_an_adopted_namespace_is_kept_with_all_that_is_in_it(garden: Garden) -> None:
    labels = {"gardener.cloud/role": "project", "project.gardener.cloud/name": "dev"}
    await garden.add(
        a_new_project(),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden-dev", "labels": labels}},
        a_secret("plain"),
    )
    await garden.reconcile(LOOP, PROJECT)
    await garden.delete(PROJECT)
    assert await garden.reconcile(LOOP, PROJECT) == Done("it is released")
    assert await phase(garden) == "gone"
    namespace = await garden.now("namespace", "garden-dev")
    assert namespace is not None
    assert not {*namespace["metadata"].get("labels", {})} & {*labels}
    assert await garden.now("secret", "plain", "garden-dev") is not None


async def test_a_shoot_that_comes_while_the_project_is_released_keeps_it(garden: Garden) -> None:
    await garden.add(a_new_project())
    await garden.reconcile(LOOP, PROJECT)
    await garden.delete(PROJECT)
    listed = garden.store.list_page

    async def list_page(kind: str, namespace: str | None = None, **options: object) -> object:
        page = await listed(kind, namespace, **options)  # pyright: ignore[reportArgumentType]
        if kind == "shoot" and await garden.store.get(SHOOT) is None:
            await garden.add(a_shoot())
        return page

    garden.store.list_page = list_page  # pyright: ignore[reportAttributeAccessIssue]
    assert isinstance(await garden.reconcile(LOOP, PROJECT), RequeueAfter)
    namespace = await garden.now("namespace", "garden-dev")
    assert namespace is not None
    assert not namespace["metadata"].get("deletionTimestamp")


async def test_a_replica_that_was_held_up_deletes_nothing_in_a_namespace_made_since(garden: Garden) -> None:
    await garden.add(a_new_project())
    await garden.reconcile(LOOP, PROJECT)
    await garden.delete(PROJECT)
    (stale,) = await garden.store.get_many([NAMESPACE])
    assert stale is not None
    await garden.reconcile(LOOP, PROJECT)
    assert await phase(garden) == "gone"

    await garden.add(a_new_project())
    await garden.reconcile(LOOP, PROJECT)
    await garden.add(a_secret("plain"))
    with pytest.raises(Conflict):
        await NamespaceContents(garden.store).delete(stale)
    assert await garden.now("secret", "plain", "garden-dev") is not None


async def test_a_project_is_enqueued_by_what_concerns_it_alone(garden: Garden) -> None:
    stored = await garden.add(a_new_project())
    changed = LOOP.build(garden.context(LOOP.name)).changed
    changed(PROJECT, None, stored)
    assert garden.enqueued == [("project", PROJECT)]
    garden.enqueued.clear()

    busy = await garden.change(PROJECT, lambda project: project.update(status={"lastActivityTimestamp": "x"}))
    changed(PROJECT, stored, busy)
    shoot = await garden.add(a_shoot())
    changed(SHOOT, None, shoot)
    changed(SHOOT, shoot, None)
    assert garden.enqueued == []

    await garden.change(PROJECT, lambda project: project["metadata"].update(finalizers=["gardener"]))
    await garden.delete(PROJECT)
    changed(SHOOT, shoot, None)
    assert garden.enqueued == [("project", PROJECT)]


@pytest.mark.parametrize("kind", CONTENTS)
async def test_a_deleted_project_goes_on_when_what_was_held_has_gone(garden: Garden, kind: str) -> None:
    stored = await garden.add(a_new_project())
    changed = LOOP.build(garden.context(LOOP.name)).changed
    held = msgspec.structs.replace(stored, key=ObjectKey(kind, "garden-dev", "held"))
    changed(held.key, held, None)
    assert garden.enqueued == []
    await garden.reconcile(LOOP, PROJECT)
    await garden.delete(PROJECT)
    changed(held.key, None, held)
    assert garden.enqueued == []
    changed(held.key, held, None)
    assert garden.enqueued == [("project", PROJECT)]
