import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

from gardenbus.common.api.conditions import conditions_of
from gardenbus.common.api.document import Document
from gardenbus.common.runtime.clock import SystemClock
from tests.contract.lifecycle.conftest import MONITOR_SECONDS, RENEWAL_SECONDS, SYNC_SECONDS, Scene
from tests.support.builders import a_condition, a_seed, a_shoot
from tests.support.eventually import eventually


async def test_a_living_gardenlet_stays_ready_and_a_dead_one_is_found(scene: Scene) -> None:
    for name in ("living", "dying"):
        await scene.add(a_seed(name))
        scene.start_heartbeats(name)
    await scene.start_lifecycle()
    await scene.stays_ready("dying", seconds=2 * MONITOR_SECONDS)
    await scene.stop_heartbeats("dying")
    await scene.stays_ready("dying", seconds=MONITOR_SECONDS - RENEWAL_SECONDS - 0.3)
    await scene.until_silent("dying")
    ready = await scene.readiness("dying")
    assert ready["reason"] == "StatusUnknown"
    assert ready["message"].endswith(f"Last heartbeat: {ready['lastHeartbeatTime']}.")

    async def recorded() -> None:
        assert [(event["reason"], event["message"]) for event in await scene.events()] == [
            ("GardenletNotReady", ready["message"])
        ]

    await eventually(recorded)
    assert (await scene.readiness("living"))["status"] == "True"


async def test_shoots_follow_their_seed_after_the_shoot_period_and_a_returning_gardenlet_is_left_to_report(
    scene: Scene,
) -> None:
    await scene.add(a_seed("home"))
    status = {"seedName": "home", "conditions": [a_condition("APIServerAvailable")]}
    await scene.add(a_shoot("here", spec={"seedName": "home"}, status=status))
    await scene.start_lifecycle()
    await scene.until_silent("home")
    shoot = await scene.now("shoot", "here", "garden-dev")
    assert conditions_of(shoot)[0]["status"] == "True", "not yet"

    async def unknown() -> None:
        shoot = await scene.now("shoot", "here", "garden-dev")
        assert {each["status"] for each in conditions_of(shoot)} == {"Unknown"}
        assert len(conditions_of(shoot, "constraints")) == 2
        assert [event["reason"] for event in await scene.events()] == ["GardenletNotReady", "SeedNotReady"]

    await eventually(unknown)
    scene.start_heartbeats("home")
    await asyncio.sleep(RENEWAL_SECONDS)
    await scene.write("seed", "home", well_again)
    await scene.stays_ready("home", seconds=2 * MONITOR_SECONDS)


def well_again(seed: Document) -> None:
    seed["status"]["conditions"] = [a_condition("GardenletReady")]


async def test_a_seed_that_never_reported_is_left_alone(scene: Scene) -> None:
    await scene.add(a_seed("new", ready=False))
    await scene.add(a_seed("old"))
    await scene.start_lifecycle()
    await scene.until_silent("old")
    assert conditions_of(await scene.now("seed", "new")) == []


async def test_repeating_an_old_renew_time_renews_nothing(scene: Scene) -> None:
    await scene.add(a_seed("stuck"))
    written = SystemClock().now()
    scene.start_heartbeats("stuck", at=lambda _now: written)
    await scene.start_lifecycle()
    await scene.until_silent("stuck")


async def test_a_clock_that_lags_is_no_death(scene: Scene) -> None:
    await scene.add(a_seed("late"))
    scene.start_heartbeats("late", at=lambda now: now - timedelta(hours=1))
    await scene.start_lifecycle()
    await scene.stays_ready("late", seconds=2 * MONITOR_SECONDS + SYNC_SECONDS)


async def test_a_lease_from_the_future_gives_one_warning_and_outlives_nobody(scene: Scene) -> None:
    await scene.add(a_seed("fast"))
    scene.start_heartbeats("fast", at=lambda now: now + timedelta(hours=1))
    await scene.start_lifecycle()
    await scene.stays_ready("fast", seconds=2 * MONITOR_SECONDS)
    assert [event["reason"] for event in await scene.events()] == ["LeaseFromTheFuture"]
    await scene.stop_heartbeats("fast")
    await scene.until_silent("fast")


async def test_an_unreadable_lease_gives_a_warning_and_renews_nothing(scene: Scene) -> None:
    async def babble(spec: Any) -> None:
        while True:
            await scene.publish_lease("odd", spec)
            await asyncio.sleep(RENEWAL_SECONDS)

    await scene.add(a_seed("odd"))
    scene.tasks["odd"] = asyncio.create_task(babble({"renewTime": "tomorrow"}))
    await scene.start_lifecycle()
    await scene.until_silent("odd")

    async def reported() -> None:
        assert [event["reason"] for event in await scene.events()] == ["LeaseUnreadable", "GardenletNotReady"]

    await eventually(reported)


async def test_an_outage_of_the_bus_kills_nobody(scene: Scene) -> None:
    for number in range(3):
        await scene.add(a_seed(f"seed-{number}"))
        scene.start_heartbeats(f"seed-{number}")
    await scene.start_lifecycle()
    await scene.stays_ready("seed-0", seconds=MONITOR_SECONDS)
    scene.server.kill()
    await asyncio.sleep(2 * MONITOR_SECONDS)
    await asyncio.to_thread(scene.server.start)
    await scene.stays_ready("seed-0", seconds=2 * MONITOR_SECONDS)
    for number in range(3):
        assert (await scene.readiness(f"seed-{number}"))["status"] == "True"
    await scene.stop_heartbeats("seed-1")
    await scene.until_silent("seed-1")


async def test_a_lifecycle_that_was_away_gives_everybody_a_period_and_then_finds_the_dead(scene: Scene) -> None:
    for name in ("living", "dead"):
        await scene.add(a_seed(name))
    scene.start_heartbeats("living")
    await asyncio.sleep(1.5 * MONITOR_SECONDS)
    started = SystemClock().monotonic()
    await scene.start_lifecycle()
    await scene.until_silent("dead")
    assert SystemClock().monotonic() - started > MONITOR_SECONDS - 0.1
    assert (await scene.readiness("living"))["status"] == "True"


async def test_a_restarted_lifecycle_believes_the_canary_of_its_predecessor(scene: Scene) -> None:
    for name in ("living", "dying"):
        await scene.add(a_seed(name))
        scene.start_heartbeats(name)
    await scene.start_lifecycle()
    await scene.stays_ready("dying", seconds=MONITOR_SECONDS + SYNC_SECONDS)
    await scene.stop_heartbeats("dying")
    await asyncio.sleep(MONITOR_SECONDS * 0.6)
    await scene.stop_lifecycles()
    await scene.start_lifecycle()
    await scene.until_silent("dying")
    assert (await scene.readiness("living"))["status"] == "True"


async def test_replicas_agree_and_write_once(scene: Scene) -> None:
    await scene.add(a_seed("gone"))
    await scene.start_lifecycle()
    await scene.start_lifecycle()
    await scene.until_silent("gone")
    version = (await scene.now("seed", "gone"))["metadata"]["resourceVersion"]
    await asyncio.sleep(3 * SYNC_SECONDS)
    assert (await scene.now("seed", "gone"))["metadata"]["resourceVersion"] == version


async def test_most_seeds_silent_together_are_held_for_a_period_and_told_once(scene: Scene) -> None:
    names = [f"seed-{number:02}" for number in range(12)]
    for name in names:
        await scene.add(a_seed(name))
        scene.start_heartbeats(name)
    await scene.start_lifecycle()
    await scene.stays_ready(names[0], seconds=MONITOR_SECONDS + SYNC_SECONDS)
    for name in names[:10]:
        await scene.stop_heartbeats(name)
    for name in names[:10]:
        assert (await scene.readiness(name))["status"] == "True"
    await scene.stays_ready(names[0], seconds=2 * MONITOR_SECONDS - 0.5)
    await scene.until_silent(names[9])
    for name in names[:10]:
        await scene.until_silent(name)
    assert (await scene.readiness(names[11]))["status"] == "True"

    async def reported() -> None:
        reasons = Counter(event["reason"] for event in await scene.events())
        assert reasons == {"SeedsSilentTogether": 1, "GardenletNotReady": 10}

    await eventually(reported)


async def test_an_expired_certificate_marks_the_managed_seed_once(scene: Scene) -> None:
    expired = (SystemClock().now() - timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    await scene.add(a_seed("managed", status={"clientCertificateExpirationTimestamp": expired}))
    managed_seed: Document = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {"name": "managed", "namespace": "garden"},
        "spec": {"shoot": {"name": "managed"}},
    }
    await scene.add(managed_seed)
    await scene.start_lifecycle()

    async def marked() -> None:
        metadata = (await scene.now("managedseed", "managed", "garden"))["metadata"]
        assert metadata.get("annotations") == {"gardener.cloud/operation": "reconcile"}
        assert metadata["generation"] == 2

    await eventually(marked)
    await scene.write("managedseed", "managed", unmark, "garden")
    await asyncio.sleep(3 * SYNC_SECONDS)
    assert "annotations" not in (await scene.now("managedseed", "managed", "garden"))["metadata"]


async def test_an_expired_certificate_marks_a_managed_seed_that_comes_later(scene: Scene) -> None:
    expired = (SystemClock().now() - timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    await scene.add(a_seed("managed", status={"clientCertificateExpirationTimestamp": expired}))
    await scene.start_lifecycle()

    async def unknown() -> None:
        assert (await scene.readiness("managed"))["status"] == "Unknown"

    await eventually(unknown)
    await asyncio.sleep(2 * SYNC_SECONDS)
    await scene.add(
        {
            "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
            "kind": "ManagedSeed",
            "metadata": {"name": "managed", "namespace": "garden"},
            "spec": {"shoot": {"name": "managed"}},
        }
    )

    async def marked() -> None:
        metadata = (await scene.now("managedseed", "managed", "garden"))["metadata"]
        assert metadata.get("annotations") == {"gardener.cloud/operation": "reconcile"}

    await eventually(marked)


def unmark(managed_seed: Document) -> None:
    del managed_seed["metadata"]["annotations"]
