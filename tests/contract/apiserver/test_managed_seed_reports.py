"""What the gardenlet that hosts a ManagedSeed's shoot says of it, and of the Seed that it is to become."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_cloudprofile, a_condition, a_project, a_seed, a_shoot

CHILD = ObjectKey("managedseed", "garden", "child")
SHOOT = ObjectKey("shoot", "garden", "child")
SEED = ObjectKey("seed", "", "child")
MARK = "seedmanagement.gardener.cloud/marked-for-removal"


def a_managed_seed(**spec: Any) -> Document:
    return {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {"name": "child", "namespace": "garden"},
        "spec": {"shoot": {"name": "child"}, **(spec or {"gardenlet": {}})},
    }


@pytest.fixture
async def hosted(apiserver: Apiserver) -> Apiserver:
    """A ManagedSeed whose shoot stands on the seed `host`."""
    for document in (a_project("garden", "garden"), a_cloudprofile()):
        await apiserver.request("apply", document)
    for name in ("host", "other"):
        await apiserver.request("apply", a_seed(name, ready=False, spec={"backup": {"provider": "aws"}}))
    shoot = a_shoot("child", "garden", spec={"seedName": "host", "dns": {"domain": "child.example"}})
    await apiserver.request("apply", shoot)
    await apiserver.report("host", SHOOT, {"status": {"seedName": "host"}})
    await apiserver.until_handled()
    await apiserver.request("apply", a_managed_seed())
    return apiserver


async def reported(apiserver: Apiserver, reason: str, seed: str = "host") -> None:
    condition = a_condition("SeedRegistered", "False", reason=reason)
    uid = (await apiserver.now(CHILD)).uid
    await apiserver.report(seed, CHILD, {"status": {"conditions": [condition]}}, uid=uid)
    await apiserver.until_handled()


async def exists(apiserver: Apiserver, key: ObjectKey) -> bool:
    return await apiserver.kit.store.get(key) is not None


async def test_its_host_reports_on_it_and_nobody_else(hosted: Apiserver) -> None:
    await reported(hosted, "Reconciling")
    await reported(hosted, "Stolen", seed="other")

    assert "not of seed other" in await hosted.reason()
    (condition,) = (await hosted.now(CHILD)).document()["status"]["conditions"]
    assert condition["reason"] == "Reconciling"


async def test_the_first_report_holds_it(hosted: Apiserver) -> None:
    assert not (await hosted.now(CHILD)).parts.finalizers
    await reported(hosted, "Reconciling")
    version = (await hosted.now(CHILD)).version
    assert (await hosted.now(CHILD)).parts.finalizers == ("gardener",)
    await reported(hosted, "Reconciling")
    assert (await hosted.now(CHILD)).version == version


async def test_it_goes_when_its_host_says_that_nothing_is_left(hosted: Apiserver) -> None:
    await reported(hosted, "Reconciled")
    await reported(hosted, "Deleted")
    assert (await hosted.now(CHILD)).parts.finalizers == ("gardener",)
    await hosted.report("host", SEED, a_seed("child", ready=False), verb="apply")
    await hosted.request("delete.managedseed.garden.child")
    await reported(hosted, "Deleting")
    assert (await hosted.now(CHILD)).is_deleting

    await reported(hosted, "Deleted")
    assert "seed child is still there" in await hosted.reason()
    await hosted.report("host", SEED, b"", verb="delete")
    await hosted.until_handled()
    await reported(hosted, "Deleted")
    assert not await exists(hosted, CHILD)


async def test_its_seed_is_deleted_by_its_host_alone_and_only_when_it_is_deleted_itself(hosted: Apiserver) -> None:
    await reported(hosted, "Reconciled")
    await hosted.request("apply", a_seed("child", ready=False))
    await hosted.report("host", SEED, b"", verb="delete")
    assert "being deleted" in await hosted.reason()
    await hosted.request("delete.managedseed.garden.child")
    await hosted.report("other", SEED, b"", verb="delete")
    await hosted.until_handled()
    assert await exists(hosted, SEED)
    await hosted.report("host", SEED, b"", verb="delete")
    await hosted.until_handled()

    assert not await exists(hosted, SEED)
    assert (await hosted.now(CHILD)).is_deleting


async def test_a_seed_that_is_still_in_use_stays_and_an_event_says_so(hosted: Apiserver) -> None:
    await reported(hosted, "Reconciled")
    await hosted.request("apply", a_seed("child"))
    await hosted.request("delete.managedseed.garden.child")
    await hosted.request(
        "patch.seed._.child", {"metadata": {"annotations": {MARK: None}}}
    )  # by somebody who knows better
    await hosted.request("apply", a_project())
    await hosted.request("apply", a_shoot(spec={"seedName": "child"}))
    await hosted.warnings()
    await hosted.report("host", SEED, b"", verb="delete")
    await hosted.until_handled()

    assert not (await hosted.now(SEED)).is_deleting
    (warning,) = await hosted.warnings()
    assert (warning.event.about, warning.event.reason) == (CHILD, "SeedInUse")
    assert "gardenbus drain child" in warning.event.message
    assert await hosted.rejected() == []


async def test_nobody_takes_hold_of_one_that_is_deleted(hosted: Apiserver) -> None:
    await hosted.request("patch.managedseed.garden.child", {"metadata": {"finalizers": ["mine"]}})
    await hosted.request("delete.managedseed.garden.child")
    await reported(hosted, "Deleting")

    assert (await hosted.now(CHILD)).parts.finalizers == ("mine",)


async def test_its_seed_is_registered_by_its_host_while_it_is_wanted(hosted: Apiserver) -> None:
    template = {"spec": {"provider": {"type": "aws", "region": "eu-west-1"}}}
    await hosted.request("delete.managedseed.garden.child")
    await hosted.request("apply", a_managed_seed(seedTemplate=template))
    await hosted.report("other", SEED, a_seed("child", ready=False), verb="apply")
    assert "the shoot of managedseed garden/child is not here" in await hosted.reason()
    await hosted.report("host", SEED, a_seed("child", ready=False), verb="apply")
    await hosted.until_handled()

    assert "ownerReferences" not in (await hosted.now(SEED)).document()["metadata"]
    await hosted.report("host", ObjectKey("seed", "", "other"), a_seed("other", ready=False), verb="apply")
    await reported(hosted, "Reconciled")
    await hosted.request("delete.managedseed.garden.child")
    await hosted.report("host", SEED, a_seed("child", ready=False, metadata={"labels": {"a": "b"}}), verb="apply")
    await hosted.until_handled()
    reasons = [message.headers["Gardenbus-Reason"] for message in await hosted.rejected()]
    assert ["only its own Seed" in reasons[1], "is being deleted" in reasons[2]] == [True, True], reasons


async def test_a_child_does_not_come_back_while_it_is_taken_down(hosted: Apiserver) -> None:
    await hosted.report("child", SEED, a_seed("child", ready=False), verb="apply")
    await reported(hosted, "Reconciled")
    await hosted.request("delete.managedseed.garden.child")
    await hosted.report("child", SEED, a_seed("child", ready=False, metadata={"labels": {"a": "b"}}), verb="apply")
    await hosted.report("host", SEED, b"", verb="delete")
    await hosted.until_handled()
    assert await hosted.rejected() == []
    await hosted.report("child", SEED, a_seed("child", ready=False), verb="apply")

    assert "not registered again" in await hosted.reason()
    assert not await exists(hosted, SEED)


async def test_its_host_raises_events_on_it(hosted: Apiserver) -> None:
    await hosted.kit.fresh_entries()
    await hosted.report("host", CHILD, {"type": "Normal", "reason": "Reconciled", "message": "is there"}, verb="event")
    await hosted.until_handled()
    (event,) = await hosted.kit.events()
    assert (event.event.about, event.event.reporter) == (CHILD, "gardenlet-host")

    await hosted.report("other", CHILD, {"type": "Normal", "reason": "Stolen"}, verb="event")
    assert "not of seed other" in await hosted.reason()


async def test_the_host_is_where_the_shoot_stands_not_where_it_shall(hosted: Apiserver) -> None:
    await hosted.request("bind", {"namespace": "garden", "name": "child", "seed": "other"})
    await reported(hosted, "Reconciling")
    await reported(hosted, "Early", seed="other")
    handover = {"seedName": "other", "lastOperation": {"type": "Migrate", "state": "Succeeded", "progress": 100}}
    await hosted.report("host", SHOOT, {"status": handover})
    await hosted.until_handled()
    await reported(hosted, "Late")
    await reported(hosted, "Restored", seed="other")

    reasons = [message.headers["Gardenbus-Reason"] for message in await hosted.rejected()]
    assert ["not of seed other" in reasons[0], "not of seed host" in reasons[1], len(reasons)] == [True, True, 2]
    assert (await hosted.now(CHILD)).document()["status"]["conditions"][0]["reason"] == "Restored"


async def test_a_gardenlet_does_not_touch_the_mark_for_removal(hosted: Apiserver) -> None:
    own = ObjectKey("seed", "", "other")
    await hosted.request("patch.seed._.other", {"metadata": {"annotations": {MARK: "garden/set"}}})
    for annotations in ({"mine": "1"}, {}, {MARK: "garden/another"}):
        seed = a_seed("other", ready=False, metadata={"annotations": annotations}, spec={"backup": {"provider": "aws"}})
        await hosted.report("other", own, seed, verb="apply")
        await hosted.until_handled()
        assert (await hosted.now(own)).document()["metadata"]["annotations"][MARK] == "garden/set"

    await hosted.request("patch.seed._.other", {"metadata": {"annotations": {MARK: None}}})
    seed = a_seed("other", metadata={"annotations": {MARK: "garden/set"}}, spec={"backup": {"provider": "aws"}})
    await hosted.report("other", own, seed, verb="apply")
    await hosted.until_handled()
    assert MARK not in (await hosted.now(own)).document()["metadata"].get("annotations", {})
    assert await hosted.rejected() == []


async def test_a_stale_manifest_of_a_gardenlet_is_refused_and_holds_nothing_up(hosted: Apiserver) -> None:
    own = ObjectKey("seed", "", "other")
    await hosted.report("other", own, a_seed("other", metadata={"resourceVersion": "1"}), verb="apply")
    stale = a_seed("child", ready=False, metadata={"uid": "00000000-0000-0000-0000-000000000000"})
    await hosted.request("apply", a_seed("child", ready=False))
    await hosted.report("host", SEED, stale, verb="apply")
    await hosted.until_handled()

    reasons = [message.headers["Gardenbus-Reason"] for message in await hosted.rejected()]
    assert ["metadata.resourceVersion" in reasons[0], "metadata.uid" in reasons[1]] == [True, True]
