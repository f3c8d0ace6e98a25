"""Shoots become seeds: a gardenlet is really started for each ManagedSeed, follows its changes, and goes again."""

import asyncio
from typing import Any

import msgspec

from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.keys import ObjectKey
from gardenbus.gardenlet.backend.deployments import DeploymentStore
from gardenbus.gardenlet.backend.local_files import LocalFiles
from gardenbus.gardenlet.host import GardenletHost
from tests.support.builders import a_managed_seed, a_seed, a_shoot, merged
from tests.support.eventually import eventually
from tests.support.gardenlets import Garden, a_configuration, conditions

PARENT_SEED = "aws-eu1"
FIELD = ObjectKey("shoot", "garden", "field")
GROWN = ObjectKey("managedseed", "garden", "grown")
SEED = ObjectKey("seed", "", "grown")
WELL = {"ShootReconciled": "True", "SeedRegistered": "True"}


def a_parent_seed(name: str = PARENT_SEED, **changes: Any) -> Document:
    """A seed that hosts shoots that become seeds, and looks at what it waits for each second."""
    return a_configuration(name, **merged({"controllers": {"managedSeed": {"waitSyncPeriod": "1s"}}}, changes))


def grown(name: str = "grown", shoot: str = "field", **changes: Any) -> Document:
    """A ManagedSeed with the configuration of a gardenlet."""
    config = {"seedConfig": {"spec": a_seed()["spec"]}}
    return a_managed_seed(name, shoot, **merged({"spec": {"gardenlet": {"config": config}}}, changes))


def deployments(garden: Garden, seed: str = PARENT_SEED) -> DeploymentStore:
    return DeploymentStore(LocalFiles(garden.directory / seed))


async def create(garden: Garden, document: Document) -> StoredObject:
    created = await garden.store.create(document)
    assert isinstance(created, StoredObject)
    return created


async def until_well(garden: Garden, key: ObjectKey = GROWN) -> Document:
    """Within: a shoot that is being reconciled is looked at again after 15 s."""

    async def well() -> Document:
        managed_seed = await garden.get(key)
        assert conditions(managed_seed) == WELL, managed_seed.get("status")
        assert managed_seed["status"]["observedGeneration"] == managed_seed["metadata"]["generation"]
        return managed_seed

    return await eventually(well, every=0.02)


async def grow(garden: Garden, document: Document | None = None) -> None:
    """Place the shoot, and make it a seed that is ready."""
    await garden.place(PARENT_SEED, a_shoot("field", "garden"))
    await create(garden, document or grown())
    await until_well(garden)
    await garden.until_ready("grown")


async def until_reason(garden: Garden, kind: str, reason: str) -> Document:
    async def reported() -> Document:
        condition = get_condition(conditions_of(await garden.get(GROWN)), kind)
        assert condition is not None
        assert condition["reason"] == reason, condition
        return condition

    return await eventually(reported, every=0.02)


async def test_a_gardenlet_of_its_own_is_started_for_a_managed_seed(garden: Garden) -> None:
    host = await garden.start(a_parent_seed())
    await grow(garden)

    managed_seed, seed = await garden.get(GROWN), await garden.seed("grown")
    lease, parents = await garden.lease("grown"), await garden.lease(PARENT_SEED)
    assert managed_seed["metadata"]["finalizers"] == ["gardener"]
    assert seed["status"]["allocatable"] == {"shoots": "250"}
    assert "clientCertificateExpirationTimestamp" not in seed["status"], "nobody has certificates here"
    assert lease is not None
    assert parents is not None
    assert holder(lease.body) != holder(parents.body)
    assert set(host.endpoints()) == {PARENT_SEED, "grown"}
    assert host.unhealthy() == []


def holder(lease: bytes) -> str:
    return str(msgspec.json.decode(lease)["spec"]["holderIdentity"])


async def test_the_new_seed_carries_shoots(garden: Garden) -> None:
    await garden.start(a_parent_seed())
    await grow(garden)
    await garden.place("grown")

    await garden.until_state("Succeeded", operation="Create")


async def test_a_shoot_that_is_not_built_yet_is_waited_for_and_its_end_is_seen_at_once(garden: Garden) -> None:
    slow = {"stepSecondsByName": {"namespace": 1.5}}
    await garden.start(a_parent_seed(backend=slow, controllers={"managedSeed": {"waitSyncPeriod": "1h"}}))
    await garden.until_ready(PARENT_SEED)
    await create(garden, grown())
    await garden.place(PARENT_SEED, a_shoot("field", "garden"))

    await until_reason(garden, "ShootReconciled", "Reconciling")
    assert await garden.store.get(SEED) is None
    await until_well(garden)
    await garden.until_ready("grown")


async def test_a_managed_seed_goes_step_by_step_and_leaves_nothing(garden: Garden) -> None:
    host = await garden.start(a_parent_seed())
    await grow(garden)
    await garden.delete(GROWN)

    await garden.until_gone(SEED)
    await garden.until_gone(GROWN)

    lease = await garden.lease("grown")
    assert lease is None or lease.marker is not None or holder(lease.body) == ""
    assert set(host.endpoints()) == {PARENT_SEED}
    assert deployments(garden).all() == []
    assert await garden.rejected() is None

    async def purged() -> None:
        subject = garden.subjects.view(PARENT_SEED, GROWN)
        assert await garden.bus.last(garden.subjects.stream("BINDINGS"), subject) is None

    await eventually(purged)


async def test_a_seed_with_shoots_stays_until_they_are_gone(garden: Garden) -> None:
    await garden.start(a_parent_seed())
    await grow(garden)
    await garden.place("grown")
    await garden.until_state("Succeeded")
    await garden.delete(GROWN)

    condition = await until_reason(garden, "SeedRegistered", "Deleting")
    assert "1 shoot(s)" in condition["message"]
    assert "deletionTimestamp" not in (await garden.seed("grown"))["metadata"]

    await garden.delete(ObjectKey("shoot", "garden-dev", "apollo"))
    await garden.until_gone(GROWN)
    assert await garden.store.get(SEED) is None


async def test_a_gardenlet_comes_back_with_its_host_and_is_not_deployed_again(garden: Garden) -> None:
    host = await garden.start(a_parent_seed())
    await grow(garden)
    deployed = deployments(garden).all()
    await garden.kill(host)
    host = await garden.start(a_parent_seed())

    assert set(host.gardenlets) == {PARENT_SEED, "grown"}
    await active(host, "grown")
    await active(host, PARENT_SEED)
    await asyncio.sleep(1.5)
    assert deployments(garden).all() == deployed


async def active(host: GardenletHost, seed: str) -> None:
    async def is_active() -> None:
        assert seed in host.gardenlets
        assert host.gardenlets[seed].is_active

    await eventually(is_active)


async def test_a_standby_runs_the_deployed_gardenlets_too(garden: Garden) -> None:
    first = await garden.start(a_parent_seed())
    standby = await garden.start(a_parent_seed())
    await grow(garden)

    async def hosted() -> None:
        assert set(standby.gardenlets) == {PARENT_SEED, "grown"}

    await eventually(hosted)
    await garden.kill(first)
    await active(standby, "grown")
    await active(standby, PARENT_SEED)
    await garden.delete(GROWN)

    await garden.until_gone(GROWN)
    assert await garden.store.get(SEED) is None
    assert set(standby.gardenlets) == {PARENT_SEED}


async def test_the_parents_changes_reach_its_gardenlets(garden: Garden) -> None:
    host = await garden.start(a_parent_seed())
    await grow(garden)
    await garden.stop(host)
    host = await garden.start(a_parent_seed(controllers={"shoot": {"concurrentSyncs": 3}}))

    async def rolled() -> None:
        assert host.gardenlets["grown"].configuration.shoot.concurrent_syncs == 3
        assert host.gardenlets["grown"].is_active

    await eventually(rolled)


async def test_the_parents_changes_are_spread_over_time_where_configured(garden: Garden) -> None:
    jittered = a_parent_seed(controllers={"managedSeed": {"jitterUpdates": True, "syncJitterPeriod": "24h"}})
    host = await garden.start(jittered)
    await grow(garden)
    deployed = deployments(garden).all()
    await garden.stop(host)
    host = await garden.start(merged(jittered, {"controllers": {"shoot": {"concurrentSyncs": 3}}}))

    await active(host, PARENT_SEED)
    await active(host, "grown")
    await asyncio.sleep(2)
    assert deployments(garden).all() == deployed


async def test_a_change_of_the_managed_seed_reaches_its_gardenlet(garden: Garden) -> None:
    await garden.start(a_parent_seed())
    await grow(garden)
    config = {"config": {"resources": {"capacity": {"shoots": "7"}}}}
    await garden.change(GROWN, bump_generation=True, spec={"gardenlet": config})

    async def changed() -> None:
        assert (await garden.seed("grown"))["status"]["capacity"] == {"shoots": "7"}

    await eventually(changed)
    await until_well(garden)


async def test_a_seed_that_somebody_deletes_is_registered_again_while_its_managed_seed_is_wanted(
    garden: Garden,
) -> None:
    host = await garden.start(a_parent_seed())
    await grow(garden)
    uid = (await garden.seed("grown"))["metadata"]["uid"]
    await asyncio.sleep(1)
    await garden.delete(SEED)

    async def anew() -> None:
        assert (await garden.until_ready("grown"))["metadata"]["uid"] != uid

    await eventually(anew)
    await until_well(garden)
    assert set(host.endpoints()) == {PARENT_SEED, "grown"}


async def test_a_reconcile_request_deploys_the_gardenlet_anew_and_goes_once_it_is_observed(garden: Garden) -> None:
    await garden.start(a_parent_seed())
    await grow(garden)
    before = deployments(garden).all()[0]

    await garden.change(
        GROWN, bump_generation=True, metadata={"annotations": {"gardener.cloud/operation": "reconcile"}}
    )

    async def anew() -> None:
        deployed = deployments(garden).all()[0]
        assert deployed.bootstrapped_at
        assert before.bootstrapped_at
        assert deployed.bootstrapped_at > before.bootstrapped_at
        assert "annotations" not in (await garden.get(GROWN))["metadata"]

    await eventually(anew)


async def test_a_seed_grows_on_a_seed_that_grew(garden: Garden) -> None:
    host = await garden.start(a_parent_seed())
    await grow(garden)
    await garden.place("grown", a_shoot("inner", "garden"))
    await create(garden, grown("nested", "inner"))

    await until_well(garden, ObjectKey("managedseed", "garden", "nested"))
    await garden.until_ready("nested")
    assert set(host.gardenlets) == {PARENT_SEED, "grown", "nested"}

    await garden.kill(host)
    host = await garden.start(a_parent_seed())
    assert set(host.gardenlets) == {PARENT_SEED, "grown", "nested"}
    await active(host, "nested")


async def test_a_gardenlet_goes_with_its_shoot_to_another_seed(garden: Garden) -> None:
    first = await garden.start(a_parent_seed())
    second = await garden.start(a_parent_seed("aws-eu2"), directory=garden.directory / "elsewhere")
    await grow(garden)
    await garden.until_ready("aws-eu2")
    await garden.change(FIELD, spec={"seedName": "aws-eu2"}, status={"seedName": "aws-eu2"})

    await active(second, "grown")

    async def left() -> None:
        assert set(first.gardenlets) == {PARENT_SEED}
        assert deployments(garden).all() == []

    await eventually(left)
    await until_well(garden)
    assert (await garden.seed("grown"))["metadata"].get("deletionTimestamp") is None


async def test_the_seed_of_a_template_is_registered_without_a_gardenlet_and_goes_again(garden: Garden) -> None:
    host = await garden.start(a_parent_seed())
    template: Document = {"gardenlet": None, "seedTemplate": {"spec": a_seed()["spec"]}}
    await garden.place(PARENT_SEED, a_shoot("field", "garden"))
    await create(garden, a_managed_seed("grown", "field", spec=template))
    await until_well(garden)

    seed = await garden.seed("grown")
    assert seed["metadata"]["labels"]["gardener.cloud/role"] == "seed"
    assert set(host.gardenlets) == {PARENT_SEED}

    await garden.delete(GROWN)
    await garden.until_gone(GROWN)
    assert await garden.store.get(SEED) is None


async def test_what_cannot_be_deployed_is_reported_and_tried_again(garden: Garden) -> None:
    await garden.start(a_parent_seed())
    wrong = {"config": {"backend": {"type": "aws"}}}
    await garden.place(PARENT_SEED, a_shoot("field", "garden"))
    await create(garden, grown(spec={"gardenlet": wrong}))

    condition = await until_reason(garden, "SeedRegistered", "ReconcileError")
    assert "backend.type" in condition["message"]

    async def event() -> None:
        last = await garden.bus.last(garden.subjects.stream("EVENTS"), garden.subjects.event(GROWN))
        assert last is not None
        assert section(msgspec.json.decode(last.body)).get("reason") == "ReconcileError"

    await eventually(event)
    right = {"config": {"backend": {"type": "local"}}}
    await garden.change(GROWN, bump_generation=True, spec={"gardenlet": right})
    await until_well(garden)


async def test_a_managed_seed_that_a_killed_bus_brought_back_starts_no_gardenlet(garden: Garden) -> None:
    """What a tombstone replaced is back after a kill of nats-server, once the tombstone was taken away."""
    host = await garden.start(a_parent_seed())
    await grow(garden)
    stream, subject = garden.subjects.stream("BINDINGS"), garden.subjects.view(PARENT_SEED, GROWN)
    ghost = await garden.bus.last(stream, subject)
    assert ghost is not None
    await garden.delete(GROWN)
    await garden.until_gone(GROWN)

    async def removed() -> None:
        assert await garden.bus.last(stream, subject) is None

    await eventually(removed)
    await garden.kill(host)
    own = {name: value for name, value in ghost.headers.items() if name.startswith("Gardenbus-")}
    await garden.publish(subject, ghost.body, own)
    host = await garden.start(a_parent_seed())
    deployed = list[object]()

    async def obeyed() -> None:
        deployed.extend(deployments(garden).all())
        assert host.gardenlets[PARENT_SEED].cache.is_complete
        await removed()

    await eventually(obeyed, every=0.01)
    assert deployed == []
    assert set(host.endpoints()) == {PARENT_SEED}
    assert await garden.rejected() is None
