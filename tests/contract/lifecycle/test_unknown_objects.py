"""Seeds that run what nobody remembers say so in a condition until somebody has decided."""

from collections.abc import AsyncIterator

import pytest

from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import Store, UnknownObject
from gardenbus.lifecycle.controllers.unknown_objects import UnknownObjectsReconciler
from gardenbus.lifecycle.domain.assessment import WatchedSeed, watched_seed
from tests.contract.lifecycle.conftest import Scene
from tests.support.builders import NOW, a_seed, a_shoot, merged
from tests.support.eventually import eventually
from tests.support.servers import Server
from tests.support.stores import StoreUnderTest, in_memory, on_redis_as_services

APOLLO, SEED = ObjectKey("shoot", "garden-dev", "apollo"), "aws-eu1"
UID = "00000000-0000-4000-8000-000000000007"
RUNNING = UnknownObject(
    key=APOLLO,
    uid=UID,
    seed=SEED,
    manifest=merged(
        a_shoot(spec={"seedName": SEED}, status={"seedName": SEED, "observedGeneration": 3}),
        {"metadata": {"uid": UID, "generation": 3, "creationTimestamp": NOW}},
    ),
)
ELSEWHERE = UnknownObject(key=ObjectKey("work", "fleet-member-eu", "nginx"), uid="", seed="member:eu")


@pytest.fixture(params=["memory", "redis"])
async def kit(request: pytest.FixtureRequest) -> AsyncIterator[StoreUnderTest]:
    """An open store, on Redis as lifecycle's user."""
    if request.param == "memory":
        yield in_memory()
        return
    server: Server = request.getfixturevalue("redis_server")
    async with on_redis_as_services(server.url, "lifecycle") as kit:
        await kit.open()
        yield kit


async def state(store: Store, seed: str = SEED) -> tuple[str, str]:
    """Status and reason of the condition; empty without it."""
    stored = await store.get(ObjectKey("seed", "", seed))
    assert stored is not None
    found = get_condition(conditions_of(stored.document()), "ObjectsKnown") or {}
    return found.get("status", ""), found.get("reason", "")


async def reconciled(kit: StoreUnderTest) -> None:
    seeds: dict[str, WatchedSeed] = {}
    for name in (SEED, "aws-eu2"):
        stored = await kit.store.get(ObjectKey("seed", "", name))
        if stored is not None:
            seeds[name] = watched_seed(stored)
    await UnknownObjectsReconciler(kit.store, seeds, kit.clock).reconcile()


async def test_what_nobody_remembers_is_a_condition_of_its_seed_until_it_is_decided(kit: StoreUnderTest) -> None:
    for name in (SEED, "aws-eu2"):
        await kit.created(a_seed(name))
    for unknown in (RUNNING, ELSEWHERE):
        await kit.store.reannounce_object(unknown.key, unknown.seed, unknown.uid, unknown)
    await reconciled(kit)
    assert await state(kit.store) == ("False", "ObjectsUnknown")
    assert await state(kit.store, "aws-eu2") == ("", "")

    version = (await kit.now(ObjectKey("seed", "", SEED))).version
    await reconciled(kit)
    assert (await kit.now(ObjectKey("seed", "", SEED))).version == version, "a replica has nothing to write"

    await kit.store.forget(APOLLO, SEED, UID)
    await reconciled(kit)
    assert await state(kit.store) == ("True", "AllObjectsKnown")


async def test_what_is_unknown_on_a_seed_that_is_not_stored_is_told_once_it_is(kit: StoreUnderTest) -> None:
    await kit.store.reannounce_object(APOLLO, SEED, UID, RUNNING)
    await reconciled(kit)
    await kit.created(a_seed(SEED))
    await reconciled(kit)
    assert await state(kit.store) == ("False", "ObjectsUnknown")


async def test_running_replicas_tell_of_it_and_of_its_adoption(scene: Scene) -> None:
    await scene.add(a_seed(SEED))
    scene.start_heartbeats(SEED)
    await scene.start_lifecycle()
    await scene.start_lifecycle()
    await scene.store.reannounce_object(APOLLO, SEED, UID, RUNNING)

    async def announced() -> None:
        assert await state(scene.store) == ("False", "ObjectsUnknown")

    async def decided() -> None:
        assert await state(scene.store) == ("True", "AllObjectsKnown")

    await eventually(announced)
    await scene.store.adopt(RUNNING)
    await eventually(decided)
    assert (await scene.readiness(SEED))["status"] == "True"
