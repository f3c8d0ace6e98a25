"""Projects: each case of Gardener's that applies here, of their namespaces, quotas, activity and staleness.

Source: the unit tests of `project/{project,stale,activity}`, and their integration tests.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardenbus.common.api.configuration.controller_manager import (
    ControllerManagerConfiguration,
    ProjectControllerConfiguration,
    ProjectQuota,
)
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import RequeueAfter
from gardenbus.common.errors import Transient
from gardenbus.common.ports.clock import timestamp
from gardenbus.controllermanager.controllers import project, project_activity, stale_project
from tests.support.builders import CORE, a_project, a_shoot, merged
from tests.support.clocks import FakeClock
from tests.support.loops import Garden

PROJECT, NAMESPACE = ObjectKey("project", "", "dev"), ObjectKey("namespace", "", "garden-dev")
QUOTA = ObjectKey("resourcequota", "garden-dev", "gardener")
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
DAY, HOUR = 24 * 3600.0, 3600.0
LIMITS: Document = {
    "metadata": {"labels": {"foo": "bar"}, "annotations": {"foo": "bar"}},
    "spec": {"hard": {"count/shoots.core.gardener.cloud": "1"}},
}
CONFIGURATION = ControllerManagerConfiguration(
    project=ProjectControllerConfiguration(
        minimum_lifetime_days=5,
        stale_grace_period_days=10,
        stale_expiration_time_days=15,
        quotas=(ProjectQuota(config=LIMITS),),
    )
)


@pytest.fixture
def garden() -> Garden:
    return Garden(CONFIGURATION, FakeClock(NOW))


async def the_project(garden: Garden) -> Document | None:
    return await garden.now("project", "dev")


def a_new_project(**spec: Any) -> Document:
    return a_project(status=None, spec=spec)


def a_namespace(**labels: str) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden-dev", "labels": labels}}


OWN = {"gardener.cloud/role": "project", "project.gardener.cloud/name": "dev"}
KEEP = "namespace.gardener.cloud/keep-after-project-deletion"
NAMESPACES: dict[str, tuple[Document | None, bool, str, bool]] = {
    "there is none": (None, False, "Ready", False),
    "there is none, and it is kept": (None, True, "Ready", True),
    "it is there without labels": (a_namespace(), False, "Failed", True),
    "it is there with the project's labels": (a_namespace(**OWN), False, "Ready", True),
    "it is another project's": (a_namespace(**{**OWN, "project.gardener.cloud/name": "foo"}), False, "Failed", True),
}


@pytest.mark.parametrize("spec", [{}, {"namespace": None}], ids=["named", "by default"])
@pytest.mark.parametrize(("existing", "is_kept", "phase", "stays"), NAMESPACES.values(), ids=NAMESPACES)
async def test_the_namespace_of_a_project(
    garden: Garden, spec: Document, existing: Document | None, *, is_kept: bool, phase: str, stays: bool
) -> None:
    if existing is not None:
        await garden.add(existing)
    await garden.add(a_new_project(**spec))
    failed = isinstance(await garden.reconcile(project.LOOP, PROJECT), Transient)
    found = await the_project(garden)
    assert found is not None
    assert (failed, found["status"]["phase"]) == (phase == "Failed", phase)
    assert found["metadata"]["finalizers"] == ["gardener"]
    namespace: Any = await garden.now("namespace", "garden-dev")
    owners = namespace["metadata"].get("ownerReferences", [])
    assert [(each["kind"], each["name"]) for each in owners] == ([("Project", "dev")] if phase == "Ready" else [])
    if is_kept:
        await garden.change(NAMESPACE, lambda each: each["metadata"]["annotations"].update({KEEP: "true"}))

    await garden.delete(PROJECT)
    for _ in range(3):
        if await the_project(garden) is not None:
            await garden.reconcile(project.LOOP, PROJECT)
    assert await the_project(garden) is None
    left = await garden.now("namespace", "garden-dev")
    assert (left is not None) is stays
    if left is not None and phase == "Ready":
        assert not left["metadata"].get("ownerReferences")
        assert not OWN.keys() & left["metadata"].get("labels", {}).keys()


async def test_a_project_with_shoots_is_not_released(garden: Garden) -> None:
    await garden.add(a_new_project())
    await garden.reconcile(project.LOOP, PROJECT)
    shoot = await garden.add(a_shoot())
    await garden.delete(PROJECT)
    assert isinstance(await garden.reconcile(project.LOOP, PROJECT), RequeueAfter)
    found = await the_project(garden)
    assert found is not None
    assert found["status"]["phase"] == "Terminating"
    await garden.delete(shoot.key)
    await garden.reconcile(project.LOOP, PROJECT)
    assert await the_project(garden) is None


async def test_the_default_resource_quota(garden: Garden) -> None:
    await garden.add(a_new_project())
    await garden.reconcile(project.LOOP, PROJECT)
    quota: Any = await garden.now("resourcequota", "gardener", "garden-dev")
    assert quota["spec"]["hard"] == LIMITS["spec"]["hard"]
    assert (quota["metadata"]["labels"], quota["metadata"]["annotations"]) == ({"foo": "bar"}, {"foo": "bar"})

    def change(stored: Document) -> None:
        stored["metadata"]["labels"]["bar"] = stored["metadata"]["annotations"]["bar"] = "baz"
        stored["spec"]["hard"] = {"count/shoots.core.gardener.cloud": "50"}

    await garden.change(QUOTA, change)
    more = merged(LIMITS, {"spec": {"hard": {"count/secrets": "42"}}})
    garden.configuration = ControllerManagerConfiguration(
        project=ProjectControllerConfiguration(quotas=(ProjectQuota(config=more),))
    )
    await garden.reconcile(project.LOOP, PROJECT)
    quota = await garden.now("resourcequota", "gardener", "garden-dev")
    assert quota["spec"]["hard"] == {"count/shoots.core.gardener.cloud": "50", "count/secrets": "42"}
    assert quota["metadata"]["labels"] == quota["metadata"]["annotations"] == {"foo": "bar", "bar": "baz"}


# ---------------------------------------------------------------------------------------------------- staleness


def an_object(kind: str, name: str, namespace: str = "garden-dev", **more: Any) -> Document:
    core = {"Secret": "v1", "CredentialsBinding": "security.gardener.cloud/v1alpha1"}
    version = core.get(kind, "security.gardener.cloud/v1alpha1" if kind == "WorkloadIdentity" else CORE)
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **more}


def a_binding(kind: str, of: str, namespace: str) -> Document:
    """A binding to an object of the project's namespace."""
    used = {"name": "used", "namespace": "garden-dev"}
    other = {"name": "other", "namespace": "garden-other"}
    credentials = other if of == "Quota" else used
    reference: Document = {"secretRef": credentials}
    if kind == "CredentialsBinding":
        api = {"Secret": "v1", "InternalSecret": CORE, "WorkloadIdentity": "security.gardener.cloud/v1alpha1"}
        named = "Secret" if of == "Quota" else of
        reference = {"credentialsRef": {"apiVersion": api[named], "kind": named, **credentials}}
    quotas = {"quotas": [used]} if of == "Quota" else {}
    return an_object(kind, "mine", namespace, provider={"type": "aws"}, **reference, **quotas)


async def staleness(garden: Garden, days: float, *objects: Document) -> Document:
    """What a project's status says, so many days after its creation, with objects in it."""
    await garden.add(a_project())
    await garden.reconcile(project.LOOP, PROJECT)
    garden.clock.advance(days * DAY)
    for each in objects:
        await garden.add(each)
    await garden.reconcile(stale_project.LOOP, PROJECT)
    found = await the_project(garden)
    assert found is not None
    return found["status"]


USED = [
    *((kind, of) for kind in ("SecretBinding", "CredentialsBinding") for of in ("Secret", "Quota")),
    ("CredentialsBinding", "InternalSecret"),
    ("CredentialsBinding", "WorkloadIdentity"),
]


@pytest.mark.parametrize("namespace", ["garden-dev", "garden-other", None])
@pytest.mark.parametrize(("kind", "of"), USED)
async def test_what_shoots_use_by_a_binding_is_in_use(
    garden: Garden, kind: str, of: str, namespace: str | None
) -> None:
    where = namespace or "garden-other"
    objects = [an_object(of, "used"), a_binding(kind, of, where)]
    field = "secretBindingName" if kind == "SecretBinding" else "credentialsBindingName"
    if namespace is not None:
        objects.append(a_shoot("user", where, spec={field: "mine"}))
    status = await staleness(garden, 5.1, *objects)
    assert ("staleSinceTimestamp" in status) is (namespace is None)


@pytest.mark.parametrize(
    ("days", "objects", "is_stale"),
    [
        (2, [], False),
        (5.1, [], True),
        (5.1, [a_shoot()], False),
        (5.1, [an_object("BackupEntry", "entry", spec={"bucketName": "b"})], False),
    ],
)
async def test_when_a_project_is_stale(garden: Garden, days: float, objects: list[Document], *, is_stale: bool) -> None:
    status = await staleness(garden, days, *objects)
    since = timestamp(NOW + timedelta(days=days)) if is_stale else None
    assert status.get("staleSinceTimestamp") == since
    assert "staleAutoDeleteTimestamp" not in status


async def later(garden: Garden, days: float) -> Document | None:
    garden.clock.advance(days * DAY)
    await garden.reconcile(stale_project.LOOP, PROJECT)
    found = await the_project(garden)
    return None if found is None else {**found["status"], "deleted": found["metadata"].get("deletionTimestamp")}


async def test_a_stale_project_from_the_grace_period_to_its_deletion(garden: Garden) -> None:
    since = NOW + timedelta(days=6)
    assert (await staleness(garden, 6))["staleSinceTimestamp"] == timestamp(since)
    assert "staleAutoDeleteTimestamp" not in (await later(garden, 9.9) or {})
    stale: Any = await later(garden, 0.1)
    assert stale["staleAutoDeleteTimestamp"] == timestamp(since + timedelta(days=15))
    assert (await later(garden, 4.9) or {})["deleted"] is None
    assert (await later(garden, 0.1) or {"deleted": "x"})["deleted"] is not None


@pytest.mark.parametrize("reason", ["exempt", "active"])
async def test_a_project_that_is_not_stale_any_more(garden: Garden, reason: str) -> None:
    assert "staleSinceTimestamp" in await staleness(garden, 6)
    if reason == "exempt":
        skip = {"project.gardener.cloud/skip-stale-check": "true"}
        await garden.change(NAMESPACE, lambda each: each["metadata"]["annotations"].update(skip))
    else:
        await garden.reconcile(project_activity.LOOP, PROJECT)
    assert "staleSinceTimestamp" not in (await later(garden, 0) or {})


# ---------------------------------------------------------------------------------------------------- activity

LABEL = "reference.gardener.cloud/secretbinding"
ACTIVE: dict[str, tuple[Document, str, Any]] = {
    "Shoot": (a_shoot(), "spec", {"purpose": "testing"}),
    "BackupEntry": (an_object("BackupEntry", "entry", spec={"bucketName": "b"}), "spec", {"seedName": "aws-eu1"}),
    "Secret": (an_object("Secret", "key"), "data", {"a": "Yg=="}),
    "Quota": (an_object("Quota", "limit", spec={"scope": {}}), "spec", {"clusterLifetimeDays": 14}),
}


@pytest.mark.parametrize("label", [None, LABEL, "reference.gardener.cloud/credentialsbinding"])
@pytest.mark.parametrize(("document", "field", "value"), ACTIVE.values(), ids=ACTIVE)
async def test_what_counts_as_activity(
    garden: Garden, document: Document, field: str, value: Document, label: str | None
) -> None:
    await garden.add(a_project())
    changed = project_activity.LOOP.build(garden.context(project_activity.NAME)).changed
    counts = label is not None or document["kind"] in ("Shoot", "BackupEntry")
    labels: Document = {} if label is None else {"metadata": {"labels": {label: "true"}}}

    def is_counted(old: Any, new: Any) -> bool:
        garden.enqueued.clear()
        changed((new or old).key, old, new)
        return bool(garden.enqueued)

    created = await garden.add(merged(document, labels))
    assert is_counted(None, created) is counts
    assert not is_counted(created, created), "nothing has changed"
    updated = await garden.change(created.key, lambda each: each.update({field: {**each.get(field, {}), **value}}))
    assert is_counted(created, updated) is counts
    assert is_counted(updated, None) is counts
    garden.clock.advance(HOUR)
    assert is_counted(None, updated) is counts, "an hour old"
    garden.clock.advance(HOUR)
    assert not is_counted(None, updated), "it was there before"


async def test_a_label_that_this_service_sets_is_no_activity(garden: Garden) -> None:
    """A difference: Gardener counts its own label, by which a project becomes active when a binding is written."""
    await garden.add(a_project())
    plain = await garden.add(an_object("Secret", "key"))
    labelled = await garden.change(plain.key, lambda each: each["metadata"].update(labels={LABEL: "true"}))
    project_activity.LOOP.build(garden.context(project_activity.NAME)).changed(plain.key, plain, labelled)
    assert garden.enqueued == []


async def test_an_object_of_no_project_is_no_activity(garden: Garden) -> None:
    changed = project_activity.LOOP.build(garden.context(project_activity.NAME)).changed
    shoot = await garden.add(a_shoot())
    changed(shoot.key, None, shoot)
    assert garden.enqueued == []


async def test_activity_is_recorded_with_its_time(garden: Garden) -> None:
    await garden.add(a_project(status={"lastActivityTimestamp": "2020-01-01T00:00:00Z"}))
    await garden.reconcile(project_activity.LOOP, PROJECT)
    assert (await the_project(garden) or {})["status"]["lastActivityTimestamp"] == timestamp(NOW)
