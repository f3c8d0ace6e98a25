"""A gardenlet keeps its Seed: registered, reported, well again after silence, and let go in the end."""

import asyncio
import json
from pathlib import Path

import pytest

from gardenbus.common.api.conditions import conditions_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.gardenlets import Garden, a_configuration, conditions

SEED = ObjectKey("seed", "", "aws-eu1")
APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
SECRET = {"apiVersion": "v1", "kind": "Secret", "name": "backup", "namespace": "garden"}
BACKUP = {"provider": "aws", "region": "eu-west-1", "credentialsRef": SECRET}


async def test_a_gardenlet_registers_its_seed_and_reports_it_ready(garden: Garden) -> None:
    await garden.start(
        a_configuration(resources={"capacity": {"shoots": "250", "memory": "10Gi"}, "reserved": {"shoots": 5}})
    )
    seed = await garden.until_ready()

    assert seed["metadata"]["finalizers"] == ["gardener"]
    assert seed["metadata"]["labels"]["gardener.cloud/role"] == "seed"
    assert seed["status"]["capacity"] == {"shoots": "250", "memory": "10Gi"}
    assert seed["status"]["allocatable"] == {"shoots": "245", "memory": "10Gi"}
    assert seed["status"]["observedGeneration"] == seed["metadata"]["generation"]
    assert seed["status"]["lastOperation"]["state"] == "Succeeded"
    assert conditions(seed) == {"GardenletReady": "True", "SeedSystemComponentsHealthy": "True"}


@pytest.mark.parametrize("field", ["credentialsRef", "secretRef"])
async def test_backups_are_not_ready_while_their_secret_is_missing(garden: Garden, field: str) -> None:
    reference = {"name": "later", "namespace": "garden"}
    if field == "credentialsRef":
        reference |= {"apiVersion": "v1", "kind": "Secret"}
    backup = {"provider": "aws", field: reference}
    await garden.start(a_configuration(seedConfig={"spec": {"backup": backup}}))
    seed = await garden.until_ready()
    ready = next(each for each in conditions_of(seed) if each["type"] == "BackupBucketsReady")
    assert (ready["status"], ready["reason"]) == ("False", "BackupBucketsError")
    assert ready["message"] == f"Secret garden/later, which spec.backup.{field} names, is not there."
    assert seed["status"]["lastOperation"]["state"] == "Error"

    await garden.store.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "later", "namespace": "garden"}}
    )

    async def recovered() -> None:
        assert conditions(await garden.seed())["BackupBucketsReady"] == "True"

    await eventually(recovered, every=0.05)


async def test_the_lease_names_its_holder_and_its_seed(garden: Garden) -> None:
    await garden.start(a_configuration())
    seed = await garden.until_ready()

    async def owned() -> dict[str, object]:
        message = await garden.lease()
        assert message is not None
        manifest = json.loads(message.body)
        owners = manifest["metadata"].get("ownerReferences", ())  # the first one was sent before there was a Seed
        assert [owner["uid"] for owner in owners] == [seed["metadata"]["uid"]]
        return manifest

    lease = await eventually(owned)
    assert lease["kind"] == "Lease"
    assert lease["metadata"] == {
        "namespace": "gardener-system-seed-lease",
        "name": "aws-eu1",
        "ownerReferences": [
            {
                "apiVersion": "core.gardener.cloud/v1beta1",
                "kind": "Seed",
                "name": "aws-eu1",
                "uid": seed["metadata"]["uid"],
            }
        ],
    }


async def test_a_gardenlet_has_begun_only_with_its_first_heartbeat(garden: Garden) -> None:
    switch = garden.directory / "aws-eu1" / "healthz-fails"
    switch.parent.mkdir(parents=True, exist_ok=True)
    switch.touch()
    host = await garden.start(a_configuration())
    assert (host.health(), host.readiness()) == ({"aws-eu1": None}, {"aws-eu1": "no heartbeat yet"})
    switch.unlink()

    async def begun() -> None:
        assert host.readiness() == {"aws-eu1": None}

    await eventually(begun)


async def test_a_failing_healthz_stops_the_renewals_until_it_is_well_again(garden: Garden) -> None:
    host = await garden.start(a_configuration())
    await garden.until_ready()
    gardenlet = host.gardenlets["aws-eu1"]
    switch = garden.directory / "aws-eu1" / "healthz-fails"
    switch.touch()

    async def unhealthy() -> None:
        assert host.health() == {"aws-eu1": "its Lease was not renewed for too long"}
        assert not gardenlet.is_active

    await eventually(unhealthy)
    last = await garden.lease()
    switch.unlink()

    async def renewed() -> None:
        now = await garden.lease()
        assert now is not None
        assert last is not None
        assert now.sequence > last.sequence
        assert gardenlet.is_active
        assert host.unhealthy() == []

    await eventually(renewed)


async def test_conditions_that_turned_unknown_are_put_right_with_those_of_the_shoots(garden: Garden) -> None:
    await garden.start(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded")

    await set_conditions(garden, APOLLO, "Unknown")
    await set_conditions(garden, SEED, "Unknown")

    async def well() -> None:
        assert set(conditions(await garden.seed()).values()) == {"True"}
        assert set(conditions(await garden.shoot()).values()) == {"True"}
        assert set(conditions(await garden.shoot(), "constraints").values()) == {"True"}
        shoot = await garden.shoot()
        messages = {each["message"] for each in shoot["status"]["conditions"] + shoot["status"]["constraints"]}
        assert messages == {"Simulated by the local backend: there is nothing to check."}

    await eventually(well)


async def set_conditions(garden: Garden, key: ObjectKey, status: str) -> None:
    document = await garden.get(key)
    changed = {
        field: [{**condition, "status": status} for condition in conditions_of(document, field)]
        for field in ("conditions", "constraints")
    }
    await garden.change(key, status=changed)


async def test_a_new_generation_of_the_seed_is_observed(garden: Garden) -> None:
    await garden.start(a_configuration())
    await garden.until_ready()
    await garden.change(SEED, spec={"taints": [{"key": "seed.gardener.cloud/protected"}]})

    async def observed() -> None:
        seed = await garden.seed()
        assert seed["metadata"]["generation"] == 2
        assert seed["status"]["observedGeneration"] == 2

    await eventually(observed)


async def test_a_seed_with_backup_gets_a_bucket_and_reports_when_it_cannot(garden: Garden) -> None:
    (garden.directory / "aws-eu1").mkdir(parents=True)
    switch = garden.directory / "aws-eu1" / "buckets-fail"
    switch.touch()
    await garden.start(
        a_configuration(seedConfig={"spec": {"backup": BACKUP}}, controllers={"seedCare": {"syncPeriod": "1s"}})
    )
    seed = await garden.until_ready()
    assert conditions(seed)["BackupBucketsReady"] == "False"
    assert seed["status"]["lastOperation"]["state"] == "Error"
    switch.unlink()

    async def available() -> None:
        assert conditions(await garden.seed())["BackupBucketsReady"] == "True"
        assert (garden.directory / "aws-eu1" / "buckets" / seed["metadata"]["uid"]).is_dir()

    await eventually(available)


async def test_a_deleting_seed_goes_when_its_last_shoot_has_gone(garden: Garden) -> None:
    await garden.start(a_configuration(seedConfig={"spec": {"backup": BACKUP}}))
    await garden.place()
    await garden.until_state("Succeeded")
    await garden.delete(SEED)

    async def waiting() -> None:
        operation = (await garden.seed())["status"]["lastOperation"]
        assert (operation["type"], operation["state"]) == ("Delete", "Processing")
        assert "1 shoot" in operation["description"]

    await eventually(waiting)
    await garden.delete(APOLLO)
    await garden.until_gone(APOLLO)
    await garden.until_gone(SEED)

    assert left_behind(garden.directory / "aws-eu1") == []


async def test_a_removed_seed_comes_back_with_its_gardenlet_and_not_before(garden: Garden) -> None:
    host = await garden.start(a_configuration())
    await garden.until_ready()
    await garden.delete(SEED)
    await garden.until_gone(SEED)
    await asyncio.sleep(2.5)
    assert await garden.store.get(SEED) is None
    assert host.unhealthy() == []
    await garden.kill(host)
    await garden.start(a_configuration())

    await garden.until_ready()


async def test_a_standby_does_not_raise_a_seed_that_was_removed(garden: Garden) -> None:
    await garden.start(a_configuration())
    await garden.until_ready()
    standby = await garden.start(a_configuration())

    async def observed() -> None:
        assert standby.gardenlets["aws-eu1"].cache.seed is not None

    await eventually(observed)
    await garden.delete(SEED)
    await garden.until_gone(SEED)
    await asyncio.sleep(6)  # the Lease's patience is 4 s

    assert await garden.store.get(SEED) is None
    assert standby.unhealthy() == []


def left_behind(directory: Path) -> list[str]:
    return sorted(
        str(path.relative_to(directory)) for path in directory.rglob("*") if path.name not in ("fence", "shoots")
    )


async def test_one_process_holds_many_seeds(garden: Garden) -> None:
    names = [f"seed-{number}" for number in range(120)]
    host = await garden.start(*(a_configuration(name) for name in names))

    for name in names:
        await garden.until_ready(name)

    async def active() -> None:
        assert all(gardenlet.is_active for gardenlet in host.gardenlets.values())

    await eventually(active)


async def test_a_seed_that_store_and_bus_have_lost_is_registered_again(garden: Garden) -> None:
    await garden.start(a_configuration())
    before = await garden.until_ready()
    del garden.store.state.rows[SEED]
    await garden.lose_stream("BINDINGS")

    async def registered() -> None:
        assert (await garden.seed())["metadata"]["uid"] != before["metadata"]["uid"]

    await eventually(registered, every=0.1)
    await garden.until_ready()


async def test_the_backends_of_a_process_end_at_the_same_time(garden: Garden, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one of them has to end may take longer than the process is given."""
    host = await garden.start(a_configuration("aws-eu1"), a_configuration("aws-eu2"))
    both = asyncio.Barrier(2)
    stop, ended = SeedBackend.stop, list[SeedBackend]()

    async def stop_together(backend: SeedBackend) -> None:
        await both.wait()
        await stop(backend)
        ended.append(backend)

    monkeypatch.setattr(SeedBackend, "stop", stop_together)
    async with asyncio.timeout(HANG_SECONDS):
        await garden.stop(host)
    assert len(ended) == 2
