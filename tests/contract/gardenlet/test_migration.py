"""A control plane moves from seed to seed, by real gardenlets, apiserver and lifecycle: one runs it at any time."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.migration_feasibility import STATE_GENERATION
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.ports.bus import StreamMessage
from gardenbus.gardenlet.domain.shoot_record import ShootRecord
from gardenbus.gardenlet.host import GardenletHost
from tests.support.builders import a_cloudprofile, a_shoot, merged
from tests.support.eventually import eventually
from tests.support.gardenlets import Garden, a_configuration, conditions
from tests.support.lifecycles import lifecycle

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
STATE = ObjectKey("shootstate", "garden-dev", "apollo")
NAME = ("garden-dev", "apollo")
ONE, TWO, THREE = "aws-eu1", "aws-eu2", "aws-eu3"
FAIL = "local.backend.gardenbus.io/fail"


def a_seed_of(name: str, **changes: Any) -> Document:
    """A gardenlet whose seed has a backup, without which no control plane moves."""
    return a_configuration(name, **merged({"seedConfig": {"spec": {"backup": {"provider": "aws"}}}}, changes))


@pytest.fixture
async def grove(garden: Garden) -> AsyncIterator[Garden]:
    """The landscape with a lifecycle, and the profile of its shoots."""
    await garden.store.create(a_cloudprofile())
    async with lifecycle(garden):
        yield garden


async def bind(garden: Garden, seed: str, **more: Any) -> Document:
    body = msgspec.json.encode({"namespace": "garden-dev", "name": "apollo", "seed": seed, **more})
    response: Document = msgspec.json.decode(await garden.bus.request(garden.subjects.api("bind"), body))
    return response


async def move(garden: Garden, seed: str, **more: Any) -> None:
    response = await bind(garden, seed, **more)
    assert response["ok"], response


def kept(host: GardenletHost, seed: str) -> ShootRecord | None:
    return host.gardenlets[seed].backend.load(NAME)


def identities(record: ShootRecord | None) -> dict[str, str]:
    """What must be the same wherever the control plane runs."""
    assert record is not None
    lasting = {"ca", "network", "zone", "volume", "pool"}
    return {
        f"{step}.{field}": value
        for step, made in record.resources.items()
        for field, value in made.items()
        if field in lasting
    }


async def until_on(garden: Garden, seed: str, operation: str = "Restore") -> Document:
    async def there() -> Document:
        shoot = await garden.shoot()
        last = section(shoot, "status", "lastOperation")
        assert (last.get("type"), last.get("state")) == (operation, "Succeeded"), shoot["status"]
        assert shoot["status"]["seedName"] == shoot["spec"]["seedName"] == seed
        return shoot

    return await eventually(there, every=0.02)


async def until_operation(garden: Garden, operation: str, *states: str) -> Document:
    async def reached() -> Document:
        shoot = await garden.shoot()
        last = section(shoot, "status", "lastOperation")
        assert last.get("type") == operation, shoot["status"]
        assert last.get("state") in states, shoot["status"]
        return shoot

    return await eventually(reached, every=0.01)


async def until_gone_from(garden: Garden, host: GardenletHost, seed: str) -> None:
    """Nothing is kept there, and the tombstones have been taken away."""
    stream, own = garden.subjects.stream("BINDINGS"), garden.subjects.view(seed, ObjectKey("seed", "", seed))

    async def gone() -> None:
        assert kept(host, seed) is None
        assert list(await garden.bus.subjects(stream, garden.subjects.bindings_of(seed))) == []
        assert list(await garden.bus.subjects(stream, garden.subjects.views_of(seed))) == [own]

    await eventually(gone)


async def built(garden: Garden, *seeds: str, **changes: Any) -> GardenletHost:
    """Gardenlets for some seeds, and a shoot that the first of them has built."""
    host = await garden.start(*(a_seed_of(seed, **changes) for seed in seeds))
    await garden.place(seeds[0])
    await garden.until_state("Succeeded", operation="Create")
    for seed in seeds:
        await garden.until_ready(seed)
    return host


async def until_saved(garden: Garden) -> Document:
    async def saved() -> Document:
        stored = await garden.store.get(STATE)
        assert stored is not None
        return stored.document()

    return await eventually(saved)


async def announced(garden: Garden, subject: str) -> StreamMessage:
    """What stands on a subject of BINDINGS."""
    last = await garden.bus.last(garden.subjects.stream("BINDINGS"), subject)
    assert last is not None
    return last


async def test_the_state_of_a_built_shoot_is_saved(grove: Garden) -> None:
    host = await built(grove, ONE)
    state = await until_saved(grove)

    saved = {
        f"{entry['name']}.{name}": value for entry in state["spec"]["gardener"] for name, value in entry["data"].items()
    }
    assert saved == identities(kept(host, ONE))
    shoot = await grove.shoot()
    assert state["metadata"]["ownerReferences"][0]["uid"] == shoot["metadata"]["uid"]
    version = state["metadata"]["resourceVersion"]
    await grove.change(APOLLO, spec={"kubernetes": {"version": "1.35.0"}})
    await grove.until_state("Succeeded", operation="Reconcile")
    await asyncio.sleep(0.5)
    assert (await until_saved(grove))["metadata"]["resourceVersion"] == version
    assert host.gardenlets[ONE].queue.in_flight == 0


async def test_the_state_goes_with_its_shoot(grove: Garden) -> None:
    await built(grove, ONE)
    await until_saved(grove)
    await grove.delete(APOLLO)
    await grove.until_gone(APOLLO)

    await grove.until_gone(STATE)


@pytest.mark.parametrize("is_older_one_observed", [False, True])
async def test_a_state_that_is_not_observed_yet_goes_with_its_shoot(
    grove: Garden, monkeypatch: pytest.MonkeyPatch, is_older_one_observed: bool
) -> None:
    host = await built(grove, ONE)
    older = merged(await until_saved(grove), {"metadata": {"annotations": {STATE_GENERATION: "0"}}})

    def observed(_namespace: str, _name: str) -> Document | None:
        return older if is_older_one_observed else None

    monkeypatch.setattr(host.gardenlets[ONE].cache, "shoot_state", observed)
    await grove.delete(APOLLO)
    await grove.until_gone(APOLLO)

    await grove.until_gone(STATE)


async def test_a_control_plane_moves_and_stays_the_same(grove: Garden) -> None:
    host = await built(grove, ONE, TWO)
    before = identities(kept(host, ONE))
    generation = (await grove.shoot())["metadata"]["generation"]
    await move(grove, TWO)
    shoot = await until_on(grove, TWO)

    assert identities(kept(host, TWO)) == before
    assert shoot["metadata"]["generation"] == shoot["status"]["observedGeneration"] == generation + 2
    assert set(conditions(shoot).values()) == {"True"}
    await until_gone_from(grove, host, ONE)
    assert {seed: count for seed, count in (await grove.store.usage()).seeds.items() if count} == {TWO: 1}

    async def no_constraint() -> None:
        assert "ReadyForMigration" not in conditions(await grove.shoot(), "constraints")

    await eventually(no_constraint)
    await grove.change(APOLLO, spec={"kubernetes": {"version": "1.35.0"}})
    await grove.until_state("Succeeded", operation="Reconcile")


async def test_there_and_back_again(grove: Garden) -> None:
    host = await built(grove, ONE, TWO)
    before = identities(kept(host, ONE))
    for seed in (TWO, ONE, TWO, ONE):
        await move(grove, seed)
        await until_on(grove, seed)

    assert identities(kept(host, ONE)) == before
    await until_gone_from(grove, host, TWO)


async def test_the_source_waits_for_a_destination_that_is_away_and_can_be_called_back(grove: Garden) -> None:
    host = await built(grove, ONE)
    other = await grove.start(a_seed_of(TWO))
    await grove.until_ready(TWO)
    await grove.kill(other)
    stored = await grove.store.get(ObjectKey("seed", "", TWO))
    assert stored is not None
    away = stored.document()
    away["status"]["conditions"] = []
    await grove.store.update(stored, away)
    await move(grove, TWO)
    shoot = await until_operation(grove, "Migrate", "Error")
    assert TWO in shoot["status"]["lastOperation"]["description"]
    record = kept(host, ONE)
    assert record is not None
    assert "control-plane" in record.resources

    await move(grove, ONE)
    await until_on(grove, ONE, "Reconcile")
    await move(grove, TWO)
    await until_operation(grove, "Migrate", "Error")
    other = await grove.start(a_seed_of(TWO))
    await until_on(grove, TWO)
    assert identities(kept(other, TWO))


async def test_an_error_on_the_way_is_tried_again(grove: Garden) -> None:
    host = await grove.start(a_seed_of(ONE), a_seed_of(TWO))
    fails = "release-etcd=ERR_INFRA_DEPENDENCIES,times=0;stop-control-plane=ERR_INFRA_RESOURCES_DEPLETED"
    await grove.place(shoot=a_shoot(metadata={"annotations": {FAIL: fails}}))
    await grove.until_state("Succeeded", operation="Create")
    await grove.until_ready(TWO)
    before = identities(kept(host, ONE))
    await move(grove, TWO)
    await until_operation(grove, "Migrate", "Error")

    await grove.change(APOLLO, metadata={"annotations": {FAIL: f"{fails},times=0"}})
    await until_on(grove, TWO)
    assert identities(kept(host, TWO)) == before


@pytest.mark.parametrize("victim", [ONE, TWO])
@pytest.mark.parametrize("lives_ms", [60, 200, 350, 500, 700])
async def test_a_gardenlet_killed_on_the_way_changes_nothing(grove: Garden, victim: str, lives_ms: int) -> None:
    slow = {"backend": {"stepSeconds": 0.05}}
    hosts = {seed: await grove.start(a_seed_of(seed, **slow)) for seed in (ONE, TWO)}
    await grove.place(ONE)
    await grove.until_state("Succeeded", operation="Create")
    await grove.until_ready(TWO)
    before = identities(kept(hosts[ONE], ONE))
    await move(grove, TWO)
    await asyncio.sleep(lives_ms / 1000)
    await grove.kill(hosts[victim])
    hosts[victim] = await grove.start(a_seed_of(victim, **slow))
    await until_on(grove, TWO)

    assert identities(kept(hosts[TWO], TWO)) == before
    await until_gone_from(grove, hosts[ONE], ONE)


async def test_a_standby_ends_what_the_source_began(grove: Garden) -> None:
    slow = {"backend": {"stepSeconds": 0.2}}
    source, other = await grove.start(a_seed_of(ONE, **slow)), await grove.start(a_seed_of(TWO))
    await grove.place(ONE)
    await grove.until_state("Succeeded", operation="Create")
    await grove.until_ready(TWO)
    standby = await grove.start(a_seed_of(ONE, **slow))
    before = identities(kept(source, ONE))
    await move(grove, TWO)
    await until_operation(grove, "Migrate", "Processing")
    await grove.kill(source)
    await until_on(grove, TWO)

    assert identities(kept(other, TWO)) == before
    await until_gone_from(grove, standby, ONE)


async def test_a_shoot_whose_source_is_lost_is_restored_by_force_and_the_source_yields(grove: Garden) -> None:
    source, other = await grove.start(a_seed_of(ONE)), await grove.start(a_seed_of(TWO))
    await grove.place(ONE)
    await grove.until_state("Succeeded", operation="Create")
    await until_saved(grove)
    await grove.until_ready(TWO)
    before = identities(kept(source, ONE))
    fencing_token = source.gardenlets[ONE].reporter.fencing_token
    assert fencing_token is not None
    await grove.kill(source)
    await move(grove, TWO, force=True)
    await until_on(grove, TWO)
    assert identities(kept(other, TWO)) == before

    uid = (await grove.shoot())["metadata"]["uid"]
    late = msgspec.json.encode({"status": {"lastOperation": {"type": "Reconcile", "state": "Processing"}}})
    await grove.publish(
        grove.subjects.report(ONE, APOLLO), late, {Header.UID: uid, Header.FENCING_TOKEN: fencing_token.text}
    )
    source = await grove.start(a_seed_of(ONE))
    await until_gone_from(grove, source, ONE)
    looked = source.gardenlets[ONE].reporter.sent
    await asyncio.sleep(1.5)
    assert source.gardenlets[ONE].reporter.sent - looked < 5
    assert (await grove.shoot())["status"]["lastOperation"]["type"] == "Restore"
    assert identities(kept(other, TWO)) == before


async def test_a_migration_to_a_third_seed_by_force_while_the_second_dies_ends_there(grove: Garden) -> None:
    slow = {"backend": {"stepSeconds": 0.1}}
    host, second = await grove.start(a_seed_of(ONE), a_seed_of(THREE)), await grove.start(a_seed_of(TWO, **slow))
    await grove.place(ONE)
    await grove.until_state("Succeeded", operation="Create")
    for seed in (TWO, THREE):
        await grove.until_ready(seed)
    before = identities(kept(host, ONE))
    await move(grove, TWO)
    await until_operation(grove, "Restore", "Processing")
    await grove.kill(second)
    assert not (await bind(grove, THREE))["ok"]
    await move(grove, THREE, force=True)
    await until_on(grove, THREE)

    assert identities(kept(host, THREE)) == before
    second = await grove.start(a_seed_of(TWO))
    await until_gone_from(grove, second, TWO)
    assert (await grove.shoot())["status"]["seedName"] == THREE


@pytest.mark.parametrize("forced", [False, True])
async def test_a_binding_that_a_killed_bus_brought_back_builds_no_second_control_plane(
    grove: Garden, forced: bool
) -> None:
    """What a tombstone replaced is back after a kill of nats-server, once the tombstone was taken away."""
    source, other = await grove.start(a_seed_of(ONE)), await grove.start(a_seed_of(TWO))
    await grove.place(ONE)
    await grove.until_state("Succeeded", operation="Create")
    await until_saved(grove)
    await grove.until_ready(TWO)
    stream = grove.subjects.stream("BINDINGS")
    subjects = [grove.subjects.binding(ONE, *NAME), grove.subjects.view(ONE, STATE)]
    ghosts = [await eventually(lambda subject=subject: announced(grove, subject)) for subject in subjects]
    await move(grove, TWO, force=forced)
    await until_on(grove, TWO)
    await until_gone_from(grove, source, ONE)
    await grove.kill(source)
    for ghost in ghosts:
        assert ghost.headers.get(Header.VERB) != "deleted"
        own = {name: value for name, value in ghost.headers.items() if name.startswith("Gardenbus-")}
        await grove.publish(ghost.subject, ghost.body, own)
    source = await grove.start(a_seed_of(ONE))
    backend, seen = source.gardenlets[ONE].backend, list[object]()

    async def obeyed() -> None:
        seen.append(backend.load(NAME))
        assert source.gardenlets[ONE].cache.is_complete
        for subject in subjects:
            assert await grove.bus.last(stream, subject) is None

    await eventually(obeyed, every=0.01)
    assert seen == [None] * len(seen)
    assert kept(other, TWO) is not None
    assert await grove.rejected() is None


async def test_nothing_is_reported_to_be_in_error_while_everybody_does_their_part(grove: Garden) -> None:
    await built(grove, ONE, TWO)
    reported = list[str]()
    stream, changes = grove.subjects.stream("OBJECTS"), grove.subjects.changed(APOLLO)

    async def listen() -> None:
        async with grove.bus.follow(stream, [changes]) as follower:
            async for event in follower:
                if isinstance(event, StreamMessage):
                    status: Document = msgspec.json.decode(event.body).get("status") or {}
                    operation = section(status, "lastOperation")
                    reported.append(f"{operation.get('type')} {operation.get('state')}")

    listening = asyncio.create_task(listen())
    for seed in (TWO, ONE, TWO):
        await move(grove, seed)
        await until_on(grove, seed)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    assert "Migrate Processing" in reported
    assert "Restore Processing" in reported
    assert not [each for each in reported if each.endswith("Error")]
