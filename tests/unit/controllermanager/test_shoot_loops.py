"""The loops of shoots on the store in memory, with a real apiserver's handlers, in virtual time."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import REFERENCE_FINALIZER as FINALIZER
from gardenbus.common.api.garden.quotas import EXPIRATION_ANNOTATION
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, RequeueAfter
from gardenbus.controllermanager.controllers import (
    bastion,
    reference,
    shoot_hibernation,
    shoot_maintenance,
    shoot_quota,
    shoot_retry,
)
from gardenbus.controllermanager.watch.loop import Loop
from tests.support.builders import CORE, a_cloudprofile, a_project, a_seed, a_shoot, merged
from tests.support.clocks import FakeClock
from tests.support.loops import Garden

SHOOT = ObjectKey("shoot", "garden-dev", "apollo")
START = datetime(2026, 3, 10, 12, tzinfo=UTC)
HOUR = 3600.0


@pytest.fixture
async def garden() -> Garden:
    garden = Garden(clock=FakeClock(START))
    await garden.serve_apiserver()
    await garden.add(a_project("dev"), a_cloudprofile())
    return garden


async def the_shoot(garden: Garden) -> Document:
    shoot = await garden.now("shoot", "apollo", "garden-dev")
    assert shoot is not None
    return shoot


async def wait(garden: Garden, loop: Loop, key: ObjectKey = SHOOT) -> float:
    """Reconcile, let the time pass that the loop waits for, and reconcile again; return the hours."""
    result = await garden.reconcile(loop, key)
    assert isinstance(result, RequeueAfter), result
    garden.clock.advance(result.seconds)
    await garden.reconcile(loop, key)
    return result.seconds / HOUR


def a_complete_shoot(**changes: Any) -> Document:
    worker: Document = {
        "name": "pool",
        "minimum": 1,
        "maximum": 2,
        "machine": {"type": "m5.large", "image": {"name": "gardenlinux", "version": "1592.3.0"}},
    }
    spec: Document = {"kubernetes": {"version": "1.34.1"}, "provider": {"type": "aws", "workers": [worker]}}
    return merged(a_shoot(spec=spec, status={"lastOperation": {"type": "Reconcile", "state": "Succeeded"}}), changes)


# ---------------------------------------------------------------------------------------------------- hibernation


async def test_a_shoot_sleeps_by_night_and_what_people_switch_stays_until_the_next_edge(garden: Garden) -> None:
    schedule = {"start": "0 20 * * *", "end": "0 6 * * *", "location": "Europe/Berlin"}
    await garden.add(a_complete_shoot(spec={"hibernation": {"schedules": [schedule]}}))
    assert round(await wait(garden, shoot_hibernation.LOOP), 2) == 7
    shoot = await the_shoot(garden)
    assert shoot["spec"]["hibernation"]["enabled"] is True
    assert shoot["spec"]["hibernation"]["schedules"] == [schedule]
    assert shoot["status"]["lastHibernationTriggerTime"] == "2026-03-10T19:00:00Z"
    assert garden.events("Hibernated") == ["Hibernating cluster due to schedule"]

    await garden.change(SHOOT, lambda shoot: shoot["spec"]["hibernation"].update(enabled=False))
    assert isinstance(await garden.reconcile(shoot_hibernation.LOOP, SHOOT), RequeueAfter)
    assert (await the_shoot(garden))["spec"]["hibernation"]["enabled"] is False
    await wait(garden, shoot_hibernation.LOOP)
    assert (await the_shoot(garden))["spec"]["hibernation"]["enabled"] is False
    assert garden.events("WokenUp") == ["Waking up cluster due to schedule"]


async def test_a_switch_that_died_before_its_status_is_made_again_without_effect(garden: Garden) -> None:
    await garden.add(a_complete_shoot(spec={"hibernation": {"schedules": [{"start": "0 11 * * *"}]}}))
    await garden.change(SHOOT, lambda shoot: shoot["metadata"].update(annotations={"touched": "true"}))
    garden.clock.advance(24 * HOUR)
    await garden.reconcile(shoot_hibernation.LOOP, SHOOT)
    generation = (await the_shoot(garden))["metadata"]["generation"]
    await garden.change(SHOOT, lambda shoot: shoot["status"].pop("lastHibernationTriggerTime"))
    await garden.reconcile(shoot_hibernation.LOOP, SHOOT)
    shoot = await the_shoot(garden)
    assert shoot["status"]["lastHibernationTriggerTime"] == "2026-03-11T12:00:00Z"
    assert shoot["metadata"]["generation"] == generation == 2


async def test_a_shoot_without_schedules_is_not_looked_at_again(garden: Garden) -> None:
    await garden.add(a_complete_shoot())
    assert await garden.reconcile(shoot_hibernation.LOOP, SHOOT) == Done("it has no schedules")
    assert await garden.reconcile(shoot_hibernation.LOOP, SHOOT._replace(name="none")) == Done("it is gone")


# ---------------------------------------------------------------------------------------------------- maintenance

WINDOW: Document = {"timeWindow": {"begin": "220000+0000", "end": "230000+0000"}}
NEWER: Document = {
    "kubernetes": {"versions": [{"version": "1.34.1"}, {"version": "1.34.2"}]},
    "machineImages": [{"name": "gardenlinux", "versions": [{"version": "1592.3.0"}, {"version": "1592.4.0"}]}],
}


async def offer(garden: Garden, spec: Document) -> None:
    await garden.change(ObjectKey("cloudprofile", "", "aws"), lambda profile: profile["spec"].update(spec))


async def wait_for_the_window(garden: Garden) -> float:
    """Let the loop enqueue the shoot in virtual time, and reconcile it; return the hours until then."""
    began, garden.enqueued[:] = garden.clock.monotonic(), []
    built = shoot_maintenance.LOOP.build(garden.context(shoot_maintenance.NAME))
    built.changed(SHOOT, None, await garden.store.get(SHOOT))
    assert built.run is not None
    running = asyncio.create_task(built.run())
    while not garden.enqueued:
        await asyncio.sleep(0)
    running.cancel()
    assert garden.enqueued[0] == (shoot_maintenance.NAME, SHOOT)
    assert isinstance(await garden.reconcile(shoot_maintenance.LOOP, SHOOT), Done)
    return (garden.clock.monotonic() - began) / HOUR


async def test_a_shoot_is_updated_in_its_window(garden: Garden) -> None:
    await garden.add(a_complete_shoot(spec={"maintenance": WINDOW}))
    await offer(garden, NEWER)
    assert 10 <= await wait_for_the_window(garden) < 10.75
    shoot = await the_shoot(garden)
    assert shoot["spec"]["kubernetes"]["version"] == "1.34.2"
    (worker,) = shoot["spec"]["provider"]["workers"]
    assert worker["machine"] == {"type": "m5.large", "image": {"name": "gardenlinux", "version": "1592.4.0"}}
    assert worker["maximum"] == 2
    last = shoot["status"]["lastMaintenance"]
    assert last["state"] == "Succeeded"
    assert "Control Plane: Updated Kubernetes version" in last["description"]
    assert (
        len(garden.events("KubernetesVersionMaintenance")) == len(garden.events("MachineImageVersionMaintenance")) == 1
    )
    assert "gardener.cloud/operation" not in shoot["metadata"].get("annotations", {})

    generation = shoot["metadata"]["generation"]
    assert isinstance(await garden.reconcile(shoot_maintenance.LOOP, SHOOT), Done)
    assert (await the_shoot(garden))["metadata"]["generation"] == generation


async def test_a_shoot_is_reconciled_once_a_day(garden: Garden) -> None:
    await garden.add(a_complete_shoot(spec={"maintenance": WINDOW}))
    for day in range(1, 4):
        await wait_for_the_window(garden)
        assert (await the_shoot(garden))["metadata"]["generation"] == 1 + day
    assert garden.events() == []


async def test_changes_that_are_confined_to_the_window_are_rolled_out_there(garden: Garden) -> None:
    confined = {**WINDOW, "confineSpecUpdateRollout": True}
    placed = {"maintenance": confined, "seedName": "aws-eu1"}
    await garden.add(a_seed(), a_complete_shoot(spec=placed, status={"seedName": "aws-eu1"}))
    api = garden.context("test").api
    for purpose in ("testing", "development"):
        body = {**SHOOT._asdict(), "patch": {"spec": {"purpose": purpose}}}
        await api.request("patch", body)
    shoot = await the_shoot(garden)
    assert (shoot["spec"]["purpose"], shoot["metadata"]["generation"]) == ("development", 1)
    await offer(garden, NEWER)
    await wait_for_the_window(garden)
    shoot = await the_shoot(garden)
    assert (shoot["spec"]["kubernetes"]["version"], shoot["metadata"]["generation"]) == ("1.34.2", 2)


async def test_a_forced_update_takes_out_what_the_new_version_has_not(garden: Garden) -> None:
    requested, old = (
        {"gardener.cloud/operation": "maintain"},
        {"version": "1.34.1", "kubeScheduler": {"kubeMaxPDVols": "20"}},
    )
    await garden.add(a_complete_shoot(spec={"kubernetes": old}, metadata={"annotations": requested}))
    expired = {"version": "1.34.1", "expirationDate": "2026-03-01T00:00:00Z"}
    await offer(garden, {"kubernetes": {"versions": [expired, {"version": "1.35.2"}]}})
    await garden.reconcile(shoot_maintenance.LOOP, SHOOT)
    shoot = await the_shoot(garden)
    assert shoot["spec"]["kubernetes"] == {"version": "1.35.2", "kubeScheduler": {}}
    assert (
        ".spec.kubernetes.kubeScheduler.kubeMaxPDVols was removed" in shoot["status"]["lastMaintenance"]["description"]
    )


async def test_the_annotation_maintains_a_shoot_at_once(garden: Garden) -> None:
    requested = {"gardener.cloud/operation": "maintain"}
    await garden.add(a_complete_shoot(spec={"maintenance": WINDOW}, metadata={"annotations": requested}))
    await offer(garden, NEWER)
    await garden.reconcile(shoot_maintenance.LOOP, SHOOT)
    shoot = await the_shoot(garden)
    assert shoot["spec"]["kubernetes"]["version"] == "1.34.2"
    assert "gardener.cloud/operation" not in shoot["metadata"].get("annotations", {})


async def test_what_admission_refuses_is_said_and_tried_in_the_next_window(garden: Garden) -> None:
    requested = {"gardener.cloud/operation": "maintain"}
    await garden.add(a_complete_shoot(spec={"maintenance": WINDOW}, metadata={"annotations": requested}))
    await offer(garden, {**NEWER, "machineTypes": [{"name": "m5.large", "usable": True}]})
    large = {**requested, "large": "x" * 1024 * 1024}
    await garden.change(SHOOT, lambda shoot: shoot["metadata"].update(annotations=large))
    await garden.reconcile(shoot_maintenance.LOOP, SHOOT)
    shoot = await the_shoot(garden)
    assert shoot["spec"]["kubernetes"]["version"] == "1.34.1"
    last = shoot["status"]["lastMaintenance"]
    assert (last["state"], last["description"]) == ("Failed", "Maintenance failed")
    assert "262144 are allowed" in last["failureReason"]
    assert len(garden.events("MaintenanceFailed")) == 1
    assert set(shoot["metadata"]["annotations"]) == {"large"}, "what was requested is not requested again"


# ---------------------------------------------------------------------------------------------------- retry


async def test_a_shoot_that_failed_for_rate_limits_is_tried_again(garden: Garden) -> None:
    failed: Document = {
        "observedGeneration": 1,
        "lastOperation": {"type": "Create", "state": "Failed", "lastUpdateTime": "2026-03-10T12:00:00Z"},
        "lastErrors": [{"description": "slow down", "codes": ["ERR_INFRA_RATE_LIMITS_EXCEEDED"]}],
    }
    await garden.add(a_complete_shoot(status=failed))
    assert 10 / 60 <= await wait(garden, shoot_retry.LOOP) <= 15.1 / 60
    shoot = await the_shoot(garden)
    assert shoot["metadata"]["generation"] == 2
    assert await garden.reconcile(shoot_retry.LOOP, SHOOT) == Done("it has not failed for rate limits")


# ---------------------------------------------------------------------------------------------------- expiry


async def a_limited_shoot(garden: Garden, days: int) -> None:
    named = {"name": "trial", "namespace": "garden-dev"}
    await garden.add(
        {
            "apiVersion": CORE,
            "kind": "Quota",
            "metadata": named,
            "spec": {"scope": {"apiVersion": CORE, "kind": "Project"}, "clusterLifetimeDays": days, "metrics": {}},
        },
        {
            "apiVersion": "security.gardener.cloud/v1alpha1",
            "kind": "CredentialsBinding",
            "metadata": {"name": "trial", "namespace": "garden-dev"},
            "credentialsRef": {"apiVersion": "v1", "kind": "Secret", **named},
            "provider": {"type": "aws"},
            "quotas": [named],
        },
        a_complete_shoot(spec={"credentialsBindingName": "trial"}, metadata={"finalizers": ["gardener"]}),
    )


async def test_a_shoot_is_deleted_when_its_lifetime_ends(garden: Garden) -> None:
    await a_limited_shoot(garden, days=2)
    result = await garden.reconcile(shoot_quota.LOOP, SHOOT)
    assert isinstance(result, RequeueAfter)
    assert result.seconds == HOUR
    annotations = (await the_shoot(garden))["metadata"]["annotations"]
    assert annotations[EXPIRATION_ANNOTATION] == "2026-03-12T12:00:00Z"
    garden.clock.advance(48 * HOUR - 60)
    assert 0 < await wait(garden, shoot_quota.LOOP) < 0.1
    shoot = await the_shoot(garden)
    assert shoot["metadata"]["deletionTimestamp"]
    assert shoot["metadata"]["annotations"]["confirmation.gardener.cloud/deletion"] == "true"
    assert garden.events("ClusterLifetimeExpired") == ["The cluster lifetime ended at 2026-03-12T12:00:00Z"]


async def test_a_shoot_expires_also_where_its_project_demands_two_for_a_deletion(garden: Garden) -> None:
    await a_limited_shoot(garden, days=2)
    rules: list[Document] = [{"resource": "shoots", "selector": {}, "includeServiceAccounts": True}]
    await garden.change(ObjectKey("project", "", "dev"), lambda dev: dev["spec"].update(dualApprovalForDeletion=rules))
    await garden.reconcile(shoot_quota.LOOP, SHOOT)
    garden.clock.advance(49 * HOUR)
    await garden.reconcile(shoot_quota.LOOP, SHOOT)
    shoot = await the_shoot(garden)
    assert shoot["metadata"].get("deletionTimestamp"), shoot["metadata"]["annotations"]


async def test_without_a_limit_the_annotation_goes(garden: Garden) -> None:
    await garden.add(a_complete_shoot(metadata={"annotations": {EXPIRATION_ANNOTATION: "2026-03-09T00:00:00Z"}}))
    await garden.reconcile(shoot_quota.LOOP, SHOOT)
    assert EXPIRATION_ANNOTATION not in (await the_shoot(garden))["metadata"].get("annotations", {})


async def test_while_a_quota_is_missing_nothing_is_decided(garden: Garden) -> None:
    await a_limited_shoot(garden, days=2)
    await garden.reconcile(shoot_quota.LOOP, SHOOT)
    await garden.delete(ObjectKey("quota", "garden-dev", "trial"))
    garden.clock.advance(timedelta(days=9).total_seconds())
    assert isinstance(await garden.reconcile(shoot_quota.LOOP, SHOOT), RequeueAfter)
    assert "deletionTimestamp" not in (await the_shoot(garden))["metadata"]


async def test_only_shoots_whose_bindings_name_quotas_are_looked_at(garden: Garden) -> None:
    await a_limited_shoot(garden, days=2)
    built, trial = (
        shoot_quota.LOOP.build(garden.context(shoot_quota.NAME)),
        ObjectKey("credentialsbinding", "garden-dev", "trial"),
    )
    limited = await garden.store.get(SHOOT)
    free = await garden.change(trial, lambda binding: binding.update(quotas=[]))
    built.changed(SHOOT, None, limited)
    assert garden.enqueued == []
    bound = await garden.change(trial, lambda binding: binding.update(quotas=[{"name": "trial"}]))
    built.changed(trial, free, bound)
    built.changed(SHOOT, None, limited)
    built.changed(SHOOT, limited, await garden.change(SHOOT, lambda shoot: shoot["status"].update(seedName="")))
    assert garden.enqueued == [(shoot_quota.NAME, SHOOT)] * 2


# ---------------------------------------------------------------------------------------------------- references

SECRET = ObjectKey("secret", "garden-dev", "dns")
OF_SHOOTS, OF_SEEDS, OF_SECRETS, *_ = reference.LOOPS


def a_secret(name: str = "dns", **metadata: Any) -> Document:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "garden-dev", **metadata}}


def using(*names: str) -> Document:
    return {"dns": {"providers": [{"type": "aws-route53", "secretName": name} for name in names]}}


async def finalizers(garden: Garden, key: ObjectKey) -> list[str]:
    document = await garden.now(*key._replace(namespace=key.name, name=key.namespace))
    return [] if document is None else document["metadata"].get("finalizers", [])


async def test_what_a_shoot_uses_stays_until_no_shoot_uses_it(garden: Garden) -> None:
    await garden.add(a_secret(), a_complete_shoot(spec=using("dns")))
    assert await garden.reconcile(OF_SHOOTS, SHOOT) == Done()
    assert await finalizers(garden, SECRET) == await finalizers(garden, SHOOT) == [FINALIZER]
    assert await garden.delete(SECRET)

    released = OF_SECRETS.build(garden.context(OF_SECRETS.name))
    first = await garden.store.get(SHOOT)
    released.changed(SHOOT, None, first)
    released.changed(SECRET, None, await garden.store.get(SECRET))
    assert garden.enqueued == []
    second = await garden.change(SHOOT, lambda shoot: shoot["spec"].pop("dns"))
    released.changed(SHOOT, first, second)
    assert garden.enqueued == [(OF_SECRETS.name, SECRET)]
    assert await garden.reconcile(OF_SECRETS, SECRET) == Done("nothing uses it")
    assert await garden.now("secret", "dns", "garden-dev") is None
    assert await garden.reconcile(OF_SHOOTS, SHOOT) == Done()
    assert await finalizers(garden, SHOOT) == []


async def test_a_secret_that_is_missing_is_protected_when_it_comes(garden: Garden) -> None:
    await garden.add(a_complete_shoot(spec=using("dns")))
    result = await garden.reconcile(OF_SHOOTS, SHOOT)
    assert isinstance(result, RequeueAfter)
    assert "secret garden-dev/dns" in result.reason
    await garden.add(a_secret())
    assert await garden.reconcile(OF_SHOOTS, SHOOT) == Done()
    assert await finalizers(garden, SECRET) == [FINALIZER]


async def test_gardeners_own_secrets_need_no_protection(garden: Garden) -> None:
    await garden.add(a_secret(labels={"gardener.cloud/role": "internal-domain"}), a_complete_shoot(spec=using("dns")))
    assert await garden.reconcile(OF_SHOOTS, SHOOT) == Done()
    assert await finalizers(garden, SECRET) == await finalizers(garden, SHOOT) == []


async def test_a_shoot_that_is_deleted_lets_go_when_its_gardenlet_has(garden: Garden) -> None:
    await garden.add(a_secret(), a_complete_shoot(spec=using("dns"), metadata={"finalizers": ["gardener"]}))
    await garden.reconcile(OF_SHOOTS, SHOOT)
    await garden.delete(SHOOT)
    await garden.reconcile(OF_SHOOTS, SHOOT)
    assert await finalizers(garden, SHOOT) == ["gardener", FINALIZER]
    await garden.change(SHOOT, lambda shoot: shoot["metadata"].update(finalizers=[FINALIZER]))
    await garden.reconcile(OF_SHOOTS, SHOOT)
    assert await garden.now("shoot", "apollo", "garden-dev") is None


async def test_what_a_seed_uses_stays_until_neither_seed_nor_shoot_uses_it(garden: Garden) -> None:
    seed, used = ObjectKey("seed", "", "aws-eu1"), ObjectKey("secret", "garden", "dns")
    named = {"name": "a", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "dns"}}
    shoot = a_shoot(metadata={"namespace": "garden"}, spec={"resources": [named]})
    await garden.add(merged(a_secret(), {"metadata": {"namespace": "garden"}}))
    stored_shoot = await garden.add(shoot)
    stored_seed = await garden.add(a_seed(spec={"resources": [named]}, metadata={"finalizers": ["gardener"]}))
    assert await garden.reconcile(OF_SEEDS, seed) == Done()
    assert await finalizers(garden, used) == [FINALIZER]
    assert await finalizers(garden, seed) == ["gardener", FINALIZER]
    assert await garden.delete(used)

    released = OF_SECRETS.build(garden.context(OF_SECRETS.name))
    for each in (stored_shoot, stored_seed):
        released.changed(each.key, None, each)
    released.changed(stored_shoot.key, stored_shoot, None)
    released.changed(used, None, await garden.store.get(used))
    assert garden.enqueued == []
    await garden.delete(seed)
    assert await garden.reconcile(OF_SEEDS, seed) == Done()
    assert await finalizers(garden, seed) == ["gardener", FINALIZER], "until its gardenlet has let go"
    left = await garden.change(seed, lambda each: each["metadata"].update(finalizers=[FINALIZER]))
    released.changed(seed, stored_seed, left)
    assert garden.enqueued == [(OF_SECRETS.name, used)]
    assert await garden.reconcile(OF_SECRETS, used) == Done("nothing uses it")
    assert await garden.now("secret", "dns", "garden") is None
    await garden.reconcile(OF_SEEDS, seed)
    assert await garden.now("seed", "aws-eu1") is None


# ---------------------------------------------------------------------------------------------------- bastions

BASTION = ObjectKey("bastion", "garden-dev", "door")


def a_bastion() -> Document:
    return {
        "apiVersion": "operations.gardener.cloud/v1alpha1",
        "kind": "Bastion",
        "metadata": {"name": "door", "namespace": "garden-dev"},
        "spec": {"shootRef": {"name": "apollo"}},
    }


def beat(door: Document) -> None:
    door["metadata"]["annotations"] = {"gardener.cloud/operation": "keepalive"}


async def test_a_bastion_lives_on_heartbeats_for_a_day(garden: Garden) -> None:
    await garden.add(a_complete_shoot(), a_bastion())
    lived = 0.0
    while True:
        result = await garden.reconcile(bastion.LOOP, BASTION)
        if isinstance(result, Done):
            break
        assert isinstance(result, RequeueAfter)
        garden.clock.advance(result.seconds - 60)
        lived += result.seconds - 60
        stored = await garden.store.get(BASTION)
        if stored is not None and result.seconds > 120:
            await garden.change(BASTION, beat)
        else:
            garden.clock.advance(120)
    assert 23.9 <= lived / HOUR <= 24.1
    assert await garden.now("bastion", "door", "garden-dev") is None


async def test_a_bastion_goes_with_its_shoot(garden: Garden) -> None:
    await garden.add(a_complete_shoot(metadata={"finalizers": ["gardener"]}), a_bastion())
    built = bastion.LOOP.build(garden.context(bastion.LOOP.name))
    before = await garden.store.get(SHOOT)
    assert await garden.delete(SHOOT)
    built.changed(SHOOT, before, await garden.store.get(SHOOT))
    assert garden.enqueued == [("bastion", BASTION)]
    assert await garden.reconcile(bastion.LOOP, BASTION) == Done("its shoot is being deleted")
    assert await garden.now("bastion", "door", "garden-dev") is None
