"""Retries, lifetimes, bastions and the status label: each case of Gardener's that applies here.

Source: the unit tests of `shoot/retry`, `shoot/quota`, `bastion` and `shoot/statuslabel`, and their integration tests.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardenbus.common.api.document import STATUS_LABEL, Document
from gardenbus.common.api.garden.quotas import EXPIRATION_ANNOTATION
from gardenbus.common.api.garden.shoot_status import shoot_status, with_status_label
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, RequeueAfter
from gardenbus.common.ports.clock import timestamp
from gardenbus.controllermanager.controllers import bastion, shoot_quota, shoot_retry
from gardenbus.controllermanager.domain.bastions import AwaitExpiration, DeleteBastion, decide_bastion
from tests.support.builders import CORE, a_cloudprofile, a_project, a_shoot, merged
from tests.support.clocks import FakeClock
from tests.support.loops import Garden

SHOOT, BASTION = ObjectKey("shoot", "garden-dev", "apollo"), ObjectKey("bastion", "garden-dev", "door")
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
async def garden() -> Garden:
    garden = Garden(clock=FakeClock(NOW))
    await garden.serve_apiserver()
    await garden.add(a_project("dev"), a_cloudprofile())
    return garden


# ---------------------------------------------------------------------------------------------------- retries


def operation(state: str, code: str | None = None) -> Document:
    errors = {} if code is None else {"lastErrors": [{"codes": [code]}]}
    return {"lastOperation": {"type": "Create", "state": state}, "observedGeneration": 1, **errors}


RATE_LIMITS, CONFIGURATION = "ERR_INFRA_RATE_LIMITS_EXCEEDED", "ERR_CONFIGURATION_PROBLEM"


@pytest.mark.parametrize(
    ("before", "after", "is_retried"),
    [
        ({}, operation("Processing"), False),
        (operation("Failed"), operation("Failed", CONFIGURATION), False),
        ({}, operation("Failed", CONFIGURATION), False),
        ({}, operation("Failed", RATE_LIMITS), True),
    ],
)
async def test_a_shoot_that_failed_for_rate_limits_is_retried(
    garden: Garden, before: Document, after: Document, *, is_retried: bool
) -> None:
    old = await garden.add(a_shoot(status=before))
    new = await garden.change(SHOOT, lambda shoot: shoot.update(status=after))
    shoot_retry.LOOP.build(garden.context(shoot_retry.NAME)).changed(SHOOT, old, new)
    assert bool(garden.enqueued) is is_retried
    await garden.reconcile(shoot_retry.LOOP, SHOOT)
    shoot: Any = await garden.now("shoot", "apollo", "garden-dev")
    assert (shoot["metadata"]["generation"] > 1) is is_retried


# ---------------------------------------------------------------------------------------------------- lifetimes

NAMED = {"name": "trial", "namespace": "garden-dev"}
BINDINGS: dict[str, tuple[Document, Document]] = {
    "a SecretBinding": (
        {"apiVersion": CORE, "kind": "SecretBinding", "secretRef": NAMED},
        {"secretBindingName": "trial"},
    ),
    "a CredentialsBinding": (
        {
            "apiVersion": "security.gardener.cloud/v1alpha1",
            "kind": "CredentialsBinding",
            "credentialsRef": {"apiVersion": "v1", "kind": "Secret", **NAMED},
        },
        {"credentialsBindingName": "trial"},
    ),
}


async def a_guest(garden: Garden, binding: Document, spec: Document, expires_at: datetime | None) -> None:
    """A shoot of now, whose Quota lets it live for a day."""
    annotations = {} if expires_at is None else {EXPIRATION_ANNOTATION: timestamp(expires_at)}
    limit = {"scope": {"apiVersion": CORE, "kind": "Project"}, "clusterLifetimeDays": 1, "metrics": {}}
    await garden.add(
        {"apiVersion": CORE, "kind": "Quota", "metadata": NAMED, "spec": limit},
        {"metadata": NAMED, "provider": {"type": "aws"}, "quotas": [NAMED], **binding},
        a_shoot(spec=spec, metadata={"annotations": annotations}),
    )


async def live(garden: Garden, hours: float = 0) -> Document | None:
    """Let time pass, with a reconciliation each hour; returns the shoot."""
    for _ in range(round(hours)):
        garden.clock.advance(3600)
        if await garden.store.get(SHOOT) is not None:
            await garden.reconcile(shoot_quota.LOOP, SHOOT)
    await garden.reconcile(shoot_quota.LOOP, SHOOT)
    return await garden.now("shoot", "apollo", "garden-dev")


@pytest.mark.parametrize(("binding", "spec"), BINDINGS.values(), ids=BINDINGS)
@pytest.mark.parametrize(("days", "is_there"), [(-2, False), (2, True), (None, True)])
async def test_a_shoot_lives_until_its_annotation_says(
    garden: Garden, binding: Document, spec: Document, days: int | None, *, is_there: bool
) -> None:
    await a_guest(garden, binding, spec, None if days is None else NOW + days * DAY)
    shoot = await live(garden)
    assert (shoot is not None) is is_there
    if shoot is not None:
        written = shoot["metadata"]["annotations"][EXPIRATION_ANNOTATION]
        assert written == timestamp(NOW + DAY), "a difference: Gardener keeps what lies beyond the limit"


async def extend(garden: Garden, until: datetime) -> None:
    def change(shoot: Document) -> None:
        shoot["metadata"]["annotations"] = {EXPIRATION_ANNOTATION: timestamp(until)}

    await garden.change(SHOOT, change)


async def test_a_lifetime_from_its_creation_to_its_end(garden: Garden) -> None:
    await a_guest(garden, *BINDINGS["a SecretBinding"], None)
    assert await live(garden, 23) is not None
    assert await live(garden, 25) is None


async def test_a_quota_that_limits_no_more_lets_a_shoot_live(garden: Garden) -> None:
    await a_guest(garden, *BINDINGS["a SecretBinding"], None)
    await live(garden)
    await garden.change(
        ObjectKey("quota", "garden-dev", "trial"), lambda quota: quota["spec"].pop("clusterLifetimeDays")
    )
    shoot = await live(garden, 48)
    assert shoot is not None
    assert EXPIRATION_ANNOTATION not in shoot["metadata"].get("annotations", {})


async def test_a_shorter_life_that_people_wrote(garden: Garden) -> None:
    await a_guest(garden, *BINDINGS["a SecretBinding"], None)
    await live(garden)
    await extend(garden, NOW + HOUR)
    assert await live(garden, 2) is None


async def test_a_longer_life_that_people_wrote_within_the_limit_from_then(garden: Garden) -> None:
    await a_guest(garden, *BINDINGS["a SecretBinding"], None)
    assert await live(garden, 20) is not None
    await extend(garden, NOW + 44 * HOUR)
    assert await live(garden, 20) is not None, "its first life is over"
    assert await live(garden, 6) is None


# ---------------------------------------------------------------------------------------------------- bastions

LONGEST = 12 * HOUR
PLACED: Document = a_shoot(spec={"seedName": "myseed"})


def a_bastion(created_at: datetime, expires_at: datetime) -> Document:
    return {
        "apiVersion": "operations.gardener.cloud/v1alpha1",
        "kind": "Bastion",
        "metadata": {"name": "door", "namespace": "garden-dev", "creationTimestamp": timestamp(created_at)},
        "spec": {"shootRef": {"name": "apollo"}, "seedName": "myseed"},
        "status": {"expirationTimestamp": timestamp(expires_at)},
    }


MINUTE = HOUR / 60
HALF = NOW - LONGEST / 2
FAR = NOW + 100 * DAY
LIVES = {
    "it lives until its longest life": (HALF, FAR, PLACED, HALF + LONGEST),
    "it expires soon": (NOW, NOW + MINUTE / 2, PLACED, NOW + MINUTE / 2),
    "it reaches its longest life before it expires": (
        NOW - LONGEST + 10 * MINUTE,
        NOW + 30 * MINUTE,
        PLACED,
        NOW + 10 * MINUTE,
    ),
    "its shoot is missing": (HALF, FAR, None, None),
    "its shoot is being deleted": (HALF, FAR, merged(PLACED, {"metadata": {"deletionTimestamp": "x"}}), None),
    "it has expired": (HALF, NOW - MINUTE / 12, PLACED, None),
    "it has had its longest life": (NOW - 2 * LONGEST, FAR, PLACED, None),
    "its shoot is on another seed": (HALF, NOW + MINUTE, merged(PLACED, {"spec": {"seedName": "new"}}), None),
    "its shoot is on no seed any more": (HALF, NOW + MINUTE, a_shoot(), None),
    "a second before it expires": (HALF, NOW + MINUTE / 60, PLACED, NOW + MINUTE / 60),
    "a second after its longest life": (NOW - LONGEST - MINUTE / 60, FAR, PLACED, None),
    "a second before the end of its longest life": (
        NOW - LONGEST + MINUTE / 60,
        FAR,
        PLACED,
        NOW + MINUTE / 60,
    ),
}


@pytest.mark.parametrize(("created_at", "expires_at", "shoot", "until"), LIVES.values(), ids=LIVES)
def test_how_long_a_bastion_lives(
    created_at: datetime, expires_at: datetime, shoot: Document | None, until: datetime | None
) -> None:
    found = decide_bastion(a_bastion(created_at, expires_at), shoot, NOW, LONGEST)
    if until is None:
        assert isinstance(found, DeleteBastion)
    else:
        assert found == AwaitExpiration(until)


async def test_a_bastion_that_is_gone_needs_nothing(garden: Garden) -> None:
    assert await garden.reconcile(bastion.LOOP, BASTION) == Done("it is gone")


@pytest.mark.parametrize(("has_shoot", "is_there"), [(True, True), (False, False)])
async def test_a_bastion_is_removed_from_the_store(garden: Garden, *, has_shoot: bool, is_there: bool) -> None:
    if has_shoot:
        await garden.add(a_shoot())
    await garden.add(merged(a_bastion(NOW, NOW + HOUR), {"spec": {"seedName": None}}))
    result = await garden.reconcile(bastion.LOOP, BASTION)
    assert isinstance(result, RequeueAfter) is is_there
    assert (await garden.store.get(BASTION) is not None) is is_there
    if is_there:
        garden.clock.advance(3601)
        await garden.reconcile(bastion.LOOP, BASTION)
        assert await garden.store.get(BASTION) is None


# ---------------------------------------------------------------------------------------------------- status label


def health(kind: str, state: str, *conditions: str, has_errors: bool = False) -> Document:
    return {
        "lastOperation": {"type": kind, "state": state},
        "conditions": [{"type": f"C{index}", "status": status} for index, status in enumerate(conditions)],
        **({"lastErrors": [{"description": "x"}]} if has_errors else {}),
    }


LABELS: dict[str, tuple[Document, str]] = {
    "no operation": ({}, "healthy"),
    "in its creation": (health("Create", "Processing"), "healthy"),
    "in its creation, with errors": (health("Create", "Processing", has_errors=True), "unhealthy"),
    "in its deletion": (health("Delete", "Processing"), "healthy"),
    "in its deletion, with errors": (health("Delete", "Processing", has_errors=True), "unhealthy"),
    "all is well": (health("Reconcile", "Succeeded", "True", "True"), "healthy"),
    "something progresses": (health("Reconcile", "Succeeded", "Progressing", "True"), "progressing"),
    "something is wrong": (health("Reconcile", "Succeeded", "True", "False"), "unhealthy"),
    "something is unknown": (health("Reconcile", "Succeeded", "True", "Unknown"), "unknown"),
    "reconciled, with errors": (health("Reconcile", "Processing", "True", "True", has_errors=True), "unhealthy"),
    "reconciled, and all is wrong": (health("Reconcile", "Processing", "False", "False"), "unhealthy"),
    "reconciled, and all is well": (health("Reconcile", "Processing", "True", "True"), "healthy"),
    "its operation has failed": (health("Reconcile", "Error", has_errors=True), "unhealthy"),
}


@pytest.mark.parametrize(("status", "label"), LABELS.values(), ids=LABELS)
def test_the_label_of_a_status(status: Document, label: str) -> None:
    shoot = a_shoot(status=status)
    assert shoot_status(shoot) == label
    labelled = with_status_label(shoot)
    assert labelled["metadata"]["labels"][STATUS_LABEL] == label
    assert with_status_label(labelled) is labelled, "nothing is to be written"
