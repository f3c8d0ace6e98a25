"""Kubernetes versions, operations and the status of a maintenance: each case of Gardener's that applies here.

Source: `maintainKubernetesVersion` in `maintenance/reconciler_test.go`, `maintenance/add_test.go`, and
`maintenance_test.go` of the integration tests. A version has a mark in front: `!` expired, `?` preview, `~` deprecated.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.expirable_versions import is_expired
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Terminal
from gardenbus.controllermanager.controllers import shoot_maintenance
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged
from tests.support.clocks import FakeClock
from tests.support.loops import Garden

SHOOT = ObjectKey("shoot", "garden-dev", "apollo")
PROFILE = ObjectKey("cloudprofile", "", "aws")
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
WINDOW: Document = {"timeWindow": {"begin": "220000+0000", "end": "230000+0000"}}
OPERATION, IN_WINDOW = "gardener.cloud/operation", "maintenance.gardener.cloud/operation"
NEEDS_RETRY = "maintenance.shoot.gardener.cloud/needs-retry-operation"
MARKS: dict[str, Document] = {
    "!": {"expirationDate": "2026-03-09T12:00:00Z"},
    "?": {"classification": "preview"},
    "~": {"classification": "deprecated"},
}
SUCCEEDED: Document = {"lastOperation": {"type": "Reconcile", "state": "Succeeded"}}


def a_version(marked: str) -> Document:
    version: Document = {"version": marked.lstrip("!?~")}
    for mark in marked.removesuffix(version["version"]):
        version |= MARKS[mark]
    return version


@pytest.fixture
async def garden() -> Garden:
    garden = Garden(clock=FakeClock(NOW))
    await garden.serve_apiserver()
    await garden.add(a_project("dev"), a_cloudprofile(), a_seed())
    return garden


async def offer(garden: Garden, versions: str) -> None:
    listed = [a_version(each) for each in versions.split()]
    await garden.change(PROFILE, lambda profile: profile["spec"]["kubernetes"].update(versions=listed))


def a_pool(name: str, version: str | None = None) -> Document:
    image = {"name": "gardenlinux", "version": "1592.3.0"}
    pool: Document = {"name": name, "minimum": 1, "maximum": 2, "machine": {"type": "m5.large", "image": image}}
    return pool if version is None else {**pool, "kubernetes": {"version": version}}


def a_maintained(version: str, *pools: Document, automatic: bool = False, **changes: Any) -> Document:
    updates = {"kubernetesVersion": automatic, "machineImageVersion": False}
    spec: Document = {
        "kubernetes": {"version": version},
        "provider": {"workers": list(pools)},
        "maintenance": {**WINDOW, "autoUpdate": updates},
    }
    return merged(a_shoot(spec=spec, status=SUCCEEDED), changes)


async def annotate(garden: Garden, annotations: Document) -> int:
    """Set annotations as a user does; returns the generation after that."""
    await garden.context("test").api.request("patch", {**SHOOT._asdict(), "patch": {"metadata": annotations}})
    stored = await garden.store.get(SHOOT)
    assert stored is not None
    return stored.generation


async def maintained(garden: Garden) -> Document:
    """The shoot, after the annotation that asks for a maintenance was set, and the loop has run."""
    await annotate(garden, {"annotations": {OPERATION: "maintain"}})
    await garden.reconcile(shoot_maintenance.LOOP, SHOOT)
    shoot = await garden.now("shoot", "apollo", "garden-dev")
    assert shoot is not None
    return shoot


class Case(NamedTuple):
    before: str
    offered: str
    after: str
    """"": no version is found."""

    automatic: bool = False


ALL = "1.1.2 1.1.1 1.1.0 1.0.2 1.0.1 1.0.0 2.0.0"
LOW = "~0.0.1 ~0.0.5 ~0.1.1 ~0.1.5 1.30.0"
VERSIONS = {
    "expired, to the newest patch": Case("1.0.1", ALL.replace("1.0.1", "!1.0.1"), "1.0.2"),
    "expired, past a preview": Case("1.0.0", "1.1.2 1.1.1 1.1.0 ?1.0.2 1.0.1 !1.0.0 2.0.0", "1.0.1"),
    "expired, to the next minor": Case("1.0.2", ALL.replace("1.0.2", "!1.0.2"), "1.1.2"),
    "expired and automatic, to the next minor": Case("1.0.2", ALL.replace("1.0.2", "!1.0.2"), "1.1.2", True),
    "expired, and all of the next minor": Case("1.0.2", "!1.1.2 !1.1.1 !1.1.0 !1.0.2 1.0.1 1.0.0 2.0.0", "1.1.2"),
    "expired, and the next minor has previews": Case("1.0.2", "?1.1.2 ?1.1.1 ?1.1.0 !1.0.2 1.0.1 1.0.0 2.0.0", ""),
    "automatic, to the newest patch": Case("1.0.1", ALL, "1.0.2", True),
    "neither expired nor automatic": Case("1.0.1", ALL, "1.0.1"),
    "not listed, to the newest patch": Case("1.0.0", "1.1.2 1.1.1 1.1.0 1.0.2", "1.0.2", True),
    "not listed, to the next minor": Case("1.0.2", "1.1.2 1.1.1", "1.1.2", True),
    "never to the next major": Case("1.1.2", ALL, "1.1.2"),
    "deprecated: not automatic": Case("0.0.1", LOW, "0.0.1"),
    "deprecated: automatic": Case("0.0.1", LOW, "0.0.5", True),
    "deprecated: expired": Case("0.0.1", LOW.replace("~0.0.1", "~!0.0.1"), "0.0.5"),
    "deprecated: expired, to the next minor": Case("0.0.5", LOW.replace("~0.0.5", "~!0.0.5"), "0.1.5"),
}


@pytest.mark.parametrize("has_workers", [True, False])
@pytest.mark.parametrize("case", VERSIONS.values(), ids=VERSIONS)
async def test_the_version_of_the_control_plane(garden: Garden, case: Case, *, has_workers: bool) -> None:
    await garden.add(a_maintained(case.before, *([a_pool("pool")] if has_workers else []), automatic=case.automatic))
    await offer(garden, case.offered)
    shoot = await maintained(garden)
    last = shoot["status"]["lastMaintenance"]
    assert shoot["spec"]["kubernetes"]["version"] == (case.after or case.before)
    assert last["state"] == ("Succeeded" if case.after else "Failed")
    assert last["triggeredTime"] == "2026-03-10T12:00:00Z"
    is_updated = case.after not in ("", case.before)
    assert (f'from "{case.before}" to "{case.after}"' in last["description"]) is is_updated
    reasons = [case.after == "" and "found no version" in last.get("failureReason", ""), case.after != ""]
    assert any(reasons)


POOLS = {
    "automatic": ("0.0.1", "0.0.1", LOW, True, ("0.0.5", "0.0.5")),
    "expired, to the newest patch": ("0.0.1", "0.0.1", LOW.replace("~0.0.1", "~!0.0.1"), False, ("0.0.5", "0.0.5")),
    "expired, to the next minor": ("0.0.5", "0.0.5", LOW.replace("~0.0.5", "~!0.0.5"), False, ("0.1.5", "0.1.5")),
    "the pool's alone, up to the control plane": (
        "0.1.1",
        "0.0.5",
        LOW.replace("~0.0.5", "~!0.0.5"),
        False,
        ("0.1.1", "0.1.1"),
    ),
    "neither expired nor automatic": ("0.0.1", "0.0.1", LOW, False, ("0.0.1", "0.0.1")),
}


@pytest.mark.parametrize(("control_plane", "pool", "offered", "automatic", "after"), POOLS.values(), ids=POOLS)
async def test_the_version_of_a_pool(
    garden: Garden, control_plane: str, pool: str, offered: str, *, automatic: bool, after: tuple[str, str]
) -> None:
    await garden.add(a_maintained(control_plane, a_pool("own", pool), a_pool("other"), automatic=automatic))
    await offer(garden, offered)
    shoot = await maintained(garden)
    own, other = shoot["spec"]["provider"]["workers"]
    assert (shoot["spec"]["kubernetes"]["version"], own["kubernetes"]["version"]) == after
    assert "version" not in other.get("kubernetes", {})
    last = shoot["status"]["lastMaintenance"]
    assert last["state"] == "Succeeded"
    assert ('Worker pool "own": Updated Kubernetes version' in last["description"]) is (pool != after[1])
    assert ("Control Plane: Updated Kubernetes version" in last["description"]) is (control_plane != after[0])


@pytest.mark.parametrize(
    ("state", "annotations", "raises", "left"),
    [
        ("Failed", {}, 0, {}),
        ("Failed", {NEEDS_RETRY: "true"}, 1, {}),
        ("Succeeded", {}, 1, {}),
        ("Processing", {}, 1, {}),
        ("Succeeded", {IN_WINDOW: "rotate-ssh-keypair"}, 1, {OPERATION: "rotate-ssh-keypair"}),
        (None, {}, 0, {}),
    ],
)
async def test_which_operation_a_maintenance_asks_for(
    garden: Garden, state: str | None, annotations: Document, raises: int, left: Document
) -> None:
    status = {"lastOperation": None if state is None else {"state": state}}
    await garden.add(a_maintained("1.34.1", status=status))
    generation = await annotate(garden, {"annotations": annotations})
    shoot = await maintained(garden)
    assert shoot["metadata"]["generation"] == generation + raises
    assert shoot["metadata"].get("annotations", {}) == left


@pytest.mark.parametrize("annotation", [OPERATION, IN_WINDOW])
async def test_an_operation_that_there_is_not_is_rejected(garden: Garden, annotation: str) -> None:
    await garden.add(a_maintained("1.34.1"))
    generation = await annotate(garden, {"labels": {"touched": "true"}})
    with pytest.raises(Terminal, match="foo-bar-does-not-exist"):
        await annotate(garden, {"annotations": {annotation: "foo-bar-does-not-exist"}})
    assert (await maintained(garden))["metadata"]["generation"] == generation + 1


async def test_an_operation_that_an_older_version_has_stored_stops_no_maintenance(garden: Garden) -> None:
    annotations = {IN_WINDOW: "of-an-older-version"}
    await garden.add(a_maintained("0.0.1", automatic=True, metadata={"annotations": annotations}))
    await offer(garden, "0.0.1 0.0.2")
    shoot = await maintained(garden)
    assert shoot["spec"]["kubernetes"]["version"] == "0.0.2"
    assert shoot["metadata"]["annotations"] == {OPERATION: "of-an-older-version"}


async def test_a_maintenance_without_changes_ends_that_the_last_one_failed(garden: Garden) -> None:
    failed = {"lastMaintenance": {"state": "Failed", "failureReason": "x", "triggeredTime": "2026-03-09T22:01:00Z"}}
    await garden.add(a_maintained("1.34.1", status=failed))
    last = (await maintained(garden))["status"]["lastMaintenance"]
    assert last["state"] == "Succeeded"
    assert "failureReason" not in last
    assert last["triggeredTime"] == "2026-03-10T12:00:00Z", "a difference: Gardener leaves the time"


@pytest.mark.parametrize(
    ("before", "after", "spec", "dropped"),
    [
        ("1.32.0", "1.33.0", {"kubeControllerManager": {"podEvictionTimeout": "1m"}}, ["podEvictionTimeout"]),
        ("1.32.0", "1.33.0", {"clusterAutoscaler": {"maxEmptyBulkDelete": 10}}, ["maxEmptyBulkDelete"]),
        (
            "1.34.0",
            "1.35.0",
            {
                "kubeScheduler": {"kubeMaxPDVols": "20"},
                "kubeAPIServer": {"enableAnonymousAuthentication": True, "watchCacheSizes": {"default": 50}},
            },
            ["kubeMaxPDVols", "enableAnonymousAuthentication", "watchCacheSizes.default"],
        ),
    ],
)
async def test_fields_that_the_new_version_has_not_are_removed(
    garden: Garden, before: str, after: str, spec: Document, dropped: list[str]
) -> None:
    await garden.add(a_maintained(before, a_pool("pool"), spec={"kubernetes": spec}))
    await offer(garden, f"!{before} {after}")
    shoot = await maintained(garden)
    last = shoot["status"]["lastMaintenance"]
    assert (shoot["spec"]["kubernetes"]["version"], last["state"]) == (after, "Succeeded")
    for path in dropped:
        assert f"{path} was removed" in last["description"]
        assert path.partition(".")[0] not in str(shoot["spec"]["kubernetes"]) or path == "watchCacheSizes.default"


@pytest.mark.parametrize(("hours", "expired"), [(-24, True), (1 / 6, False)])
def test_when_a_version_has_expired(hours: float, *, expired: bool) -> None:
    assert is_expired(NOW + timedelta(hours=hours), NOW) is expired


REQUESTED: Document = {"metadata": {"annotations": {OPERATION: "maintain"}}}
OPEN: Document = {"spec": {"maintenance": {"timeWindow": {"begin": "110000+0000", "end": "121501+0000"}}}}


@pytest.mark.parametrize(
    ("old", "new", "is_reconciled"),
    [({}, {}, False), (REQUESTED, {}, False), (REQUESTED, REQUESTED, False), ({}, REQUESTED, True), ({}, OPEN, True)],
)
async def test_which_changes_reconcile_a_shoot(old: Document, new: Document, *, is_reconciled: bool) -> None:
    garden = Garden(clock=FakeClock(NOW))
    changed = shoot_maintenance.LOOP.build(garden.context(shoot_maintenance.NAME)).changed
    metadata = {"creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"number": "1"}}
    before = await garden.add(merged(a_maintained("1.34.1", metadata=metadata), old))
    garden.clock.advance(24 * 3600)
    changed(SHOOT, None, before)
    garden.enqueued.clear()

    def change(shoot: Document) -> None:
        shoot["metadata"] = merged({**shoot["metadata"], "annotations": {}}, new.get("metadata", {}))
        shoot["metadata"]["labels"] = {"number": "2"}
        shoot["spec"] = merged(shoot["spec"], new.get("spec", {}))

    changed(SHOOT, before, await garden.change(SHOOT, change))
    assert bool(garden.enqueued) is is_reconciled
