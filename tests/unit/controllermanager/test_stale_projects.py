"""Staleness: Gardener's cases of its stale reconciler, as a table; then the loop on the store in memory."""

from datetime import datetime, timedelta
from typing import NamedTuple

import pytest

from gardenbus.common.api.configuration.controller_manager import ProjectControllerConfiguration
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.clock import timestamp
from gardenbus.controllermanager.controllers import project, project_activity, stale_project
from gardenbus.controllermanager.domain.stale_projects import (
    ProjectUse,
    Staleness,
    assess,
    is_exempt,
    staleness_of,
    with_staleness,
)
from tests.support.builders import CORE, a_project, a_shoot
from tests.support.clocks import FakeClock
from tests.support.loops import Garden

NOW = datetime.fromisoformat("2026-06-01T12:00:00+00:00")
CONFIGURATION = ProjectControllerConfiguration()
PROJECT = ObjectKey("project", "", "dev")
NAMESPACE = ObjectKey("namespace", "", "garden-dev")
DAY = timedelta(days=1)


def days_ago(days: float) -> datetime:
    return NOW - days * DAY


class Case(NamedTuple):
    age_days: float
    active_days_ago: float | None
    is_exempt: bool
    is_used: bool
    stale_for_days: float | None
    deleted_in_days: float | None
    expected: tuple[float | None, float | None]
    """Days that it is stale for, days until its deletion."""


CASES = {
    "younger than the minimum lifetime": Case(29, None, False, False, None, None, (None, None)),
    "as old as the minimum lifetime": Case(30, None, False, False, None, None, (0, None)),
    "active lately": Case(100, 29, False, False, None, None, (None, None)),
    "active long ago": Case(100, 30, False, False, None, None, (0, None)),
    "exempt": Case(100, None, True, False, 50, 40, (None, None)),
    "in use again": Case(100, None, False, True, 50, 40, (None, None)),
    "within the grace period": Case(100, None, False, False, 13, None, (13, None)),
    "the grace period ends": Case(100, None, False, False, 14, None, (14, 76)),
    "a stated end within the grace period is taken back": Case(100, None, False, False, 13, 50, (13, None)),
    "the end was stated earlier: it moves": Case(100, None, False, False, 20, 30, (20, 70)),
    "the end was stated later: it stays": Case(100, None, False, False, 20, 200, (20, 200)),
    "over": Case(200, None, False, False, 91, -1, (91, -1)),
}


def instant(days: float | None) -> datetime | None:
    return None if days is None else NOW + days * DAY


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_assessments(case: Case) -> None:
    last = None if case.active_days_ago is None else days_ago(case.active_days_ago)
    use = ProjectUse(days_ago(case.age_days), last, case.is_exempt, case.is_used)
    since = None if case.stale_for_days is None else days_ago(case.stale_for_days)
    before = Staleness(since, instant(case.deleted_in_days))
    stale_for, deleted_in = case.expected
    expected = Staleness(None if stale_for is None else days_ago(stale_for), instant(deleted_in))
    assert assess(use, before, NOW, CONFIGURATION) == expected
    assert expected.is_over(NOW) is (deleted_in is not None and deleted_in <= 0)


@pytest.mark.parametrize(("value", "exempt"), [("true", True), ("1", True), ("false", False), ("yes", False)])
def test_the_annotation_is_read_as_go_reads_it(value: str, exempt: bool) -> None:
    annotations = {"project.gardener.cloud/skip-stale-check": value}
    assert is_exempt({"metadata": {"annotations": annotations}}) is exempt


def test_staleness_is_written_beside_the_rest_of_the_status() -> None:
    stale = Staleness(days_ago(20), NOW + DAY)
    marked = with_staleness(a_project(), stale)
    assert staleness_of(marked) == stale
    assert marked["status"]["phase"] == "Ready"
    assert with_staleness(marked, Staleness()) == a_project()


# ------------------------------------------------------------------------------------------ the loop


@pytest.fixture
async def garden() -> Garden:
    garden = Garden(clock=FakeClock(NOW))
    await garden.add(a_project())
    await garden.reconcile(project.LOOP, PROJECT)
    return garden


async def check_for(garden: Garden, days: float) -> None:
    """Let so many days pass, with a check each 12 hours."""
    for _ in range(int(days * 2)):
        garden.clock.advance(12 * 3600)
        if await garden.store.get(PROJECT) is not None:
            await garden.reconcile(stale_project.LOOP, PROJECT)


async def staleness(garden: Garden) -> Staleness | None:
    found = await garden.now("project", "dev")
    return None if found is None else staleness_of(found)


async def test_a_stale_project_needs_no_second_subject_though_its_shoots_would(garden: Garden) -> None:
    """`dualApprovalForDeletion` is about shoots, of which a stale project has none."""
    rules = [{"resource": "shoots", "includeServiceAccounts": True}]
    await garden.change(PROJECT, lambda dev: dev["spec"].update(dualApprovalForDeletion=rules))
    await check_for(garden, 120.5)
    found = await garden.now("project", "dev")
    assert found is None or "deletionTimestamp" in found["metadata"]


async def test_a_project_that_nobody_uses_is_deleted_after_a_hundred_and_twenty_days(garden: Garden) -> None:
    await check_for(garden, 29.5)
    assert await staleness(garden) == Staleness()
    await check_for(garden, 0.5)
    assert await staleness(garden) == Staleness(NOW + 30 * DAY)
    await check_for(garden, 13.5)
    assert await staleness(garden) == Staleness(NOW + 30 * DAY)
    await check_for(garden, 0.5)
    assert await staleness(garden) == Staleness(NOW + 30 * DAY, NOW + 120 * DAY)
    await check_for(garden, 75.5)
    found = await garden.now("project", "dev")
    assert found is not None
    assert "deletionTimestamp" not in found["metadata"]
    await check_for(garden, 0.5)
    found = await garden.now("project", "dev")
    assert found is not None
    assert found["metadata"]["deletionTimestamp"] == timestamp(NOW + 120 * DAY)
    assert found["metadata"]["annotations"]["confirmation.gardener.cloud/deletion"] == "true"
    await garden.reconcile(project.LOOP, PROJECT)
    assert await garden.now("project", "dev") is None


def a_binding(namespace: str, kind: str, **fields: object) -> Document:
    metadata = {"name": "mine", "namespace": namespace}
    api_version = CORE if kind == "SecretBinding" else "security.gardener.cloud/v1alpha1"
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "provider": {"type": "aws"}, **fields}


QUOTA = {"quotas": [{"name": "limit", "namespace": "garden-dev"}]}
BINDINGS = {
    "a secret": a_binding("garden-x", "SecretBinding", secretRef={"name": "s", "namespace": "garden-dev"}),
    "a secret of a CredentialsBinding": a_binding(
        "garden-x",
        "CredentialsBinding",
        credentialsRef={"apiVersion": "v1", "kind": "Secret", "name": "s", "namespace": "garden-dev"},
    ),
    "a workload identity": a_binding(
        "garden-x",
        "CredentialsBinding",
        credentialsRef={"apiVersion": "x", "kind": "WorkloadIdentity", "name": "w", "namespace": "garden-dev"},
    ),
    "an internal secret": a_binding(
        "garden-x",
        "CredentialsBinding",
        credentialsRef={"apiVersion": CORE, "kind": "InternalSecret", "name": "w", "namespace": "garden-dev"},
    ),
    "a quota": a_binding("garden-x", "SecretBinding", secretRef={"name": "s", "namespace": "garden-x"}, **QUOTA),
    "a quota of a CredentialsBinding": a_binding(
        "garden-x", "CredentialsBinding", credentialsRef={"kind": "Secret", "name": "s"}, **QUOTA
    ),
}


@pytest.mark.parametrize("binding", BINDINGS.values(), ids=BINDINGS)
async def test_what_shoots_elsewhere_use_by_a_binding_keeps_a_project_from_being_stale(
    garden: Garden, binding: Document
) -> None:
    await garden.add(binding)
    await check_for(garden, 40)
    assert await staleness(garden) != Staleness(), "no shoot uses the binding"
    field = "secretBindingName" if binding["kind"] == "SecretBinding" else "credentialsBindingName"
    await garden.add(a_shoot("user", "garden-x", spec={field: "mine"}))
    await check_for(garden, 1)
    assert await staleness(garden) == Staleness()


@pytest.mark.parametrize("kind", ["Shoot", "BackupEntry"])
async def test_shoots_and_backup_entries_keep_a_project_from_being_stale(garden: Garden, kind: str) -> None:
    await garden.add({**a_shoot(), "kind": kind})
    await check_for(garden, 130)
    assert await staleness(garden) == Staleness()


async def test_an_exempt_project_is_not_stale_any_more(garden: Garden) -> None:
    await check_for(garden, 60)
    assert (await staleness(garden) or Staleness()).deleted_at is not None
    annotation = {"project.gardener.cloud/skip-stale-check": "true"}
    before = await garden.store.get(NAMESPACE)
    after = await garden.change(NAMESPACE, lambda namespace: namespace["metadata"]["annotations"].update(annotation))
    stale_project.LOOP.build(garden.context("staleproject")).changed(NAMESPACE, before, after)
    assert garden.enqueued == [("staleproject", PROJECT)]
    await check_for(garden, 100)
    assert await staleness(garden) == Staleness()


async def test_a_shoot_that_comes_at_the_last_moment_saves_its_project(garden: Garden) -> None:
    await check_for(garden, 119.5)
    listed = garden.store.list_page

    async def list_page(kind: str, namespace: str | None = None, **options: object) -> object:
        if kind == "backupentry" and await garden.store.get(ObjectKey("shoot", "garden-dev", "apollo")) is None:
            await garden.add(a_shoot())
        return await listed(kind, namespace, **options)  # pyright: ignore[reportArgumentType]

    garden.store.list_page = list_page  # pyright: ignore[reportAttributeAccessIssue]
    await check_for(garden, 0.5)
    found = await garden.now("project", "dev")
    assert found is not None
    assert "deletionTimestamp" not in found["metadata"]
    assert staleness_of(found) == Staleness()


# ------------------------------------------------------------------------------------------ activity


async def activity(garden: Garden) -> object:
    found = await garden.now("project", "dev")
    assert found is not None
    return found["status"].get("lastActivityTimestamp")


async def test_activity_is_recorded_once_a_minute(garden: Garden) -> None:
    await garden.reconcile(project_activity.LOOP, PROJECT)
    assert await activity(garden) == timestamp(NOW)
    garden.clock.advance(59)
    await garden.reconcile(project_activity.LOOP, PROJECT)
    assert await activity(garden) == timestamp(NOW)
    garden.clock.advance(1)
    await garden.reconcile(project_activity.LOOP, PROJECT)
    assert await activity(garden) == timestamp(NOW + timedelta(minutes=1))


async def test_what_counts_as_activity(garden: Garden) -> None:
    changed = project_activity.LOOP.build(garden.context("projectactivity")).changed

    def is_counted(key: ObjectKey, old: object, new: object) -> bool:
        garden.enqueued.clear()
        changed(key, old, new)  # pyright: ignore[reportArgumentType]
        assert garden.enqueued in ([], [("projectactivity", PROJECT)])
        return bool(garden.enqueued)

    shoot = await garden.add(a_shoot())
    assert is_counted(shoot.key, None, shoot)
    reported = await garden.change(shoot.key, lambda each: each.update(status={"x": 1}))
    assert not is_counted(shoot.key, shoot, reported)
    ordered = await garden.change(shoot.key, lambda each: each["spec"].update(purpose="testing"))
    assert is_counted(shoot.key, reported, ordered)
    assert is_counted(shoot.key, ordered, None)
    garden.clock.advance(3601)
    assert not is_counted(shoot.key, None, ordered), "it was there before this process"

    secret: Document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "garden-dev"},
        "data": {"a": "Yg=="},
    }
    plain = await garden.add(secret)
    assert not is_counted(plain.key, None, plain), "no binding refers to it"
    label = {"reference.gardener.cloud/secretbinding": "true"}
    labelled = await garden.change(plain.key, lambda each: each["metadata"].update(labels=label))
    assert not is_counted(plain.key, plain, labelled), "the label is this service's"
    rotated = await garden.change(plain.key, lambda each: each.update(data={"a": "Yw=="}))
    assert is_counted(plain.key, labelled, rotated)

    elsewhere = await garden.add(a_shoot(namespace="garden-x"))
    assert not is_counted(elsewhere.key, None, elsewhere)


def test_the_project_of_the_landscape_itself_is_exempt() -> None:
    assert is_exempt({"metadata": {"name": "garden"}})
    assert not is_exempt({"metadata": {"name": "garden-dev"}})
