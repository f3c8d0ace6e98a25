"""Sets of seeds with all that they rely on: NATS, Redis, relay, apiserver, scheduler, and gardenlets that report."""

import asyncio
import json

from gardenbus.common.api.document import section
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.bus import ReplayDone, StreamMessage
from tests.contract.managedseedset.conftest import HOST_SEED, Landscape
from tests.support.builders import a_shoot
from tests.support.eventually import eventually
from tests.support.seed_sets import SET, a_managed_seed_set


async def reasons(landscape: Landscape) -> list[str]:
    """The reasons of all Events about the set."""
    found: list[str] = []
    stream = landscape.subjects.stream("EVENTS")
    async with landscape.bus.follow(stream, [landscape.subjects.event(SET)]) as follower:
        async for event in follower:
            if isinstance(event, ReplayDone):
                return found
            if isinstance(event, StreamMessage):
                found.append(json.loads(event.body)["reason"])
    return found


async def test_a_set_grows_on_the_host_seed_and_its_seeds_take_shoots(landscape: Landscape) -> None:
    async with landscape.sets():
        await landscape.query("apply", a_managed_seed_set(replicas=2))
        await landscape.until_status(readyReplicas=2, pendingReplica=None)

        assert await landscape.names("seed") == ["crowd-0", "crowd-1", HOST_SEED]
        for name in ("crowd-0", "crowd-1"):
            assert (await landscape.get(ObjectKey("shoot", "garden", name)))["spec"]["seedName"] == HOST_SEED
        await landscape.query("apply", a_shoot())

        async def placed() -> None:
            assert (await landscape.get(ObjectKey("shoot", "garden-dev", "apollo")))["spec"].get(
                "seedName"
            ) == "crowd-0"

        await eventually(placed)

        async def reported() -> None:
            assert {"CreatingShoot", "CreatingManagedSeed"} <= set(await reasons(landscape))

        await eventually(reported)


async def test_it_shrinks_again_without_touching_a_seed_in_use(landscape: Landscape) -> None:
    async with landscape.sets(blocked_poll_seconds=1.0):
        await landscape.query("apply", a_managed_seed_set(replicas=3))
        await landscape.until_status(readyReplicas=3, pendingReplica=None)
        await landscape.query(
            "apply", a_shoot(metadata={"annotations": {"confirmation.gardener.cloud/deletion": "true"}})
        )

        async def placed() -> None:
            assert (await landscape.get(ObjectKey("shoot", "garden-dev", "apollo")))["spec"].get(
                "seedName"
            ) == "crowd-0"

        await eventually(placed)
        await landscape.scale(0)
        await landscape.until_status(replicas=1)
        assert await landscape.names("shoot", "garden") == ["crowd-0"]

        async def blocked() -> None:
            conditions = section(await landscape.get(SET), "status")["conditions"]
            assert [each["status"] for each in conditions if each["type"] == "ScaleInBlocked"] == ["True"]

        await eventually(blocked)
        await landscape.query("delete.shoot.garden-dev.apollo", {})
        await landscape.until_status(replicas=0, pendingReplica=None)
        assert await landscape.names("seed") == [HOST_SEED]


async def test_a_seed_is_drained_and_its_shoots_live_on(landscape: Landscape) -> None:
    async with landscape.sets(drain_poll_seconds=1.0):
        await landscape.query("apply", a_managed_seed_set(replicas=2, spec={"scaleIn": {"drain": True}}))
        await landscape.until_status(readyReplicas=2, pendingReplica=None)
        for number in range(4):
            await landscape.query("apply", a_shoot(f"tenant-{number}"))

        async def placed() -> None:
            tenants = (await landscape.store.list_page("shoot", "garden-dev")).objects
            assert sorted(each.parts.status_seed_name for each in tenants) == ["crowd-0"] * 2 + ["crowd-1"] * 2

        await eventually(placed)
        await landscape.scale(1)
        await landscape.until_status(replicas=1, pendingReplica=None)

        tenants = (await landscape.store.list_page("shoot", "garden-dev")).objects
        assert [each.parts.status_seed_name for each in tenants] == ["crowd-1"] * 4
        assert await landscape.names("seed") == ["crowd-1", HOST_SEED]


async def test_changed_templates_roll_through(landscape: Landscape) -> None:
    async with landscape.sets():
        await landscape.query("apply", a_managed_seed_set(replicas=2))
        await landscape.until_status(readyReplicas=2, pendingReplica=None)
        await landscape.patch(SET, {"spec": {"shootTemplate": {"spec": {"purpose": "infrastructure"}}}})

        async def updated() -> None:
            shoots = [each.document() for each in (await landscape.store.list_page("shoot", "garden")).objects]
            assert [each["spec"]["purpose"] for each in shoots] == ["infrastructure"] * 2

        await eventually(updated)
        status = await landscape.until_status(updatedReplicas=2, pendingReplica=None)
        assert status["currentRevision"] == status["updateRevision"]
        assert len(await landscape.names("controllerrevision")) == 2


async def test_a_failing_shoot_is_retried_three_times_and_no_more(landscape: Landscape) -> None:
    landscape.gardenlets.broken.add("crowd-0")
    async with landscape.sets():
        await landscape.query("apply", a_managed_seed_set())

        async def given_up() -> None:
            pending = section(await landscape.get(SET), "status", "pendingReplica")
            assert (pending.get("reason"), pending.get("retries")) == ("ShootReconcileFailed", 3), pending

        await eventually(given_up)
        generation = (await landscape.get(ObjectKey("shoot", "garden", "crowd-0")))["metadata"]["generation"]
        await asyncio.sleep(1.0)  # nothing happens any more
        assert (await landscape.get(ObjectKey("shoot", "garden", "crowd-0")))["metadata"]["generation"] == generation
        landscape.gardenlets.broken.clear()
        await landscape.patch(
            ObjectKey("shoot", "garden", "crowd-0"),
            {"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}},
        )
        await landscape.until_status(readyReplicas=1, pendingReplica=None)


async def test_two_replicas_of_the_service_share_the_sets_and_one_of_them_may_die(landscape: Landscape) -> None:
    async with landscape.sets(), landscape.sets() as other:
        await landscape.query("apply", a_managed_seed_set(replicas=4))
        await landscape.until_status(replicas=2)
        await other.close()
        await landscape.until_status(readyReplicas=4, pendingReplica=None)

        assert await landscape.names("shoot", "garden") == [f"crowd-{number}" for number in range(4)]
        assert section(await landscape.get(SET), "status")["nextReplicaNumber"] == 4


async def test_a_deleted_set_takes_its_replicas_along(landscape: Landscape) -> None:
    async with landscape.sets():
        await landscape.query("apply", a_managed_seed_set(replicas=2))
        await landscape.until_status(readyReplicas=2, pendingReplica=None)
        await landscape.query(f"delete.{SET.tail}", {})

        async def gone() -> None:
            assert await landscape.store.get(SET) is None

        await eventually(gone)
        assert await landscape.names("shoot", "garden") == []
        assert await landscape.names("seed") == [HOST_SEED]

        async def forgotten() -> None:
            assert await landscape.names("controllerrevision") == []

        await eventually(forgotten)


async def test_what_happened_while_nobody_looked_is_made_up_for(landscape: Landscape) -> None:
    await landscape.query("apply", a_managed_seed_set(replicas=1))
    async with landscape.sets():
        await landscape.until_status(readyReplicas=1, pendingReplica=None)
    await landscape.scale(2)
    async with landscape.sets():
        await landscape.until_status(readyReplicas=2, pendingReplica=None)
