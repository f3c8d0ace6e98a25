"""What only a real Redis can show: crashes, restarts, the function library, many clients at once."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from gardenbus.bench.manifests.shoots import placed
from gardenbus.common.api.document import StoredObject, encode
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Conflict, Unavailable
from gardenbus.common.ports.bus import StreamPosition
from gardenbus.relay.adapters.redis_outbox import RedisOutbox
from tests.support.builders import a_project, a_seed, a_shoot, merged
from tests.support.clocks import FakeClock
from tests.support.eventually import eventually
from tests.support.servers import Server
from tests.support.stores import StoreUnderTest, a_binding, on_redis


@pytest.fixture
async def kit(redis_server: Server) -> AsyncIterator[StoreUnderTest]:
    kit = on_redis(redis_server.url)
    await kit.open()
    yield kit
    await kit.store.close()


async def write_until_away(kit: StoreUnderTest, writer: int, responded: dict[ObjectKey, StoredObject]) -> None:
    """Create projects and change each once, remembering what was answered, until the server is away."""
    for number in range(100_000):
        try:
            project = await kit.created(a_project(f"p{writer}-{number}"))
            responded[project.key] = project
            project = await kit.changed(project, merged(project.document(), {"spec": {"x": number}}))
            responded[project.key] = project
        except Unavailable:
            return


async def pings(kit: StoreUnderTest) -> int:
    """How many PINGs the server has answered."""
    assert kit.connection is not None, "it is on Redis"
    stats = (await kit.connection.command("INFO", "commandstats")).decode()
    line = next((line for line in stats.splitlines() if line.startswith("cmdstat_ping:")), "calls=0,")
    return int(line.partition("calls=")[2].partition(",")[0])


async def test_what_counts_only_with_a_later_write_is_not_confirmed_by_itself(kit: StoreUnderTest) -> None:
    before = await pings(kit)
    await kit.store.observe_stream("REQUESTS", 1, last_sequence=7)
    assert await pings(kit) == before
    await kit.store.create(a_project("confirmed"))
    assert await pings(kit) == before + 1


async def test_a_crash_loses_nothing_that_was_answered_and_comes_back_fenced(
    kit: StoreUnderTest, redis_server: Server
) -> None:
    responded: dict[ObjectKey, StoredObject] = {}
    writers = [asyncio.create_task(write_until_away(kit, writer, responded)) for writer in range(8)]
    await asyncio.sleep(0.3)
    await asyncio.to_thread(redis_server.kill)
    await asyncio.gather(*writers)
    await asyncio.to_thread(redis_server.start)
    keys = sorted(responded)
    assert len(keys) > 20
    with pytest.raises(Unavailable, match="fenced"):
        await kit.store.create(a_project("after"))
    entries = await kit.entries()
    await kit.open()
    found = dict(zip(keys, await kit.store.get_many(keys), strict=True))
    for key, project in responded.items():
        survivor = found[key]
        assert survivor is not None
        assert survivor.version >= project.version
        assert survivor.version > project.version or survivor == project
    announced = {(getattr(entry, "key", None), getattr(entry, "version", 0)) for entry in entries}
    assert {(key, project.version) for key, project in found.items() if project} <= announced, "no write without news"
    assert (await kit.created(a_project("after"))).version > max(project.version for project in responded.values())


async def test_the_lead_survives_a_restart_but_the_store_is_fenced(kit: StoreUnderTest, redis_server: Server) -> None:
    await kit.created(a_seed())
    await asyncio.to_thread(redis_server.restart)
    with contextlib.suppress(Unavailable):  # a pooled connection may learn of the restart by using it
        await kit.outbox.lead(60)
    leadership = await kit.outbox.lead(60)
    assert (leadership.leading, leadership.is_open) == (True, False)
    assert len(await kit.entries()) == 1


async def test_what_a_relay_had_under_way_when_redis_ended_changes_nothing_in_what_came_back(
    kit: StoreUnderTest, redis_server: Server
) -> None:
    """A position that is noted then is that of a history which may be lost: nothing would be put back from the bus."""
    await kit.created(a_seed())
    before = await kit.outbox.positions()
    await asyncio.to_thread(redis_server.restart)

    async def is_rejected() -> None:
        try:
            await kit.outbox.trim(None, {"OBJECTS": StreamPosition(7, 7)})
        except Conflict:
            return
        except Unavailable as error:  # a pooled connection may learn of the restart by using it
            raise AssertionError(error.message) from error

    await eventually(is_rejected)
    with pytest.raises(Conflict):
        await kit.outbox.head(10)  # older news would take the place of newer ones on the bus
    assert await kit.outbox.positions() == before
    assert not (await kit.outbox.lead(60)).is_continued
    assert (await kit.outbox.lead(60)).is_continued
    await kit.outbox.trim(None, {"OBJECTS": StreamPosition(7, 7)})


async def test_a_server_that_lost_the_library_gets_it_again_and_stays_fenced(kit: StoreUnderTest) -> None:
    assert kit.connection is not None
    project = await kit.created(a_project())
    await kit.connection.command("FUNCTION", "FLUSH")
    with pytest.raises(Unavailable, match="fenced"):
        await kit.store.list_page("project")
    with pytest.raises(Unavailable, match="fenced"):
        await kit.store.delete(project)


async def test_landscapes_on_one_server_do_not_see_each_other(kit: StoreUnderTest, redis_server: Server) -> None:
    await kit.created(a_seed())
    other = on_redis(redis_server.url)
    try:
        with pytest.raises(Unavailable, match="fenced"):
            await other.store.create(a_seed())
        await other.open()
        assert await other.store.get(ObjectKey("seed", "", "aws-eu1")) is None
        assert not await other.entries()
        await other.created(a_seed())
        assert len(await kit.entries()) == 1
    finally:
        await other.store.close()


async def test_a_server_that_is_away_is_unavailable_and_found_again(kit: StoreUnderTest, redis_server: Server) -> None:
    shoot = await kit.created(a_shoot())
    await asyncio.to_thread(redis_server.stop)
    for call in (
        kit.store.get(shoot.key),
        kit.store.list_page("shoot"),
        kit.store.delete(shoot),
        kit.store.census(),
        kit.outbox.head(1),
        kit.outbox.wait(0.1),
    ):
        with pytest.raises(Unavailable):
            await call
    await asyncio.to_thread(redis_server.start)
    await kit.open()
    assert await kit.store.get(shoot.key) == shoot


async def test_many_binders_at_once_fill_a_seed_and_never_overfill_it(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed(shoots=50))
    shoots = [await kit.created(a_shoot(f"shoot-{number}")) for number in range(120)]
    items = [a_binding(shoot, seed.key.name, scheduling_generation=seed.scheduling_generation) for shoot in shoots]
    replies = await asyncio.gather(*(kit.store.bind(items[start::6]) for start in (*range(6), *range(6))))
    outcomes = [outcome for reply in replies for outcome in reply.outcomes]
    assert outcomes.count("bound") == 50
    assert set(outcomes) <= {"bound", "full", "scheduled"}
    assert len(await kit.store.shoots_on(seed.key.name)) == 50
    assert (await kit.store.census())["shoots.pending"] == 70


async def test_a_full_server_refuses_writes_but_still_reads_announces_and_deletes(kit: StoreUnderTest) -> None:
    assert kit.connection is not None
    project, other = await kit.created(a_project("one")), await kit.created(a_project("two"))
    await kit.connection.command("CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(Unavailable, match="OOM"):
            await kit.store.create(a_project("three"))
        with pytest.raises(Unavailable, match="OOM"):
            await kit.store.update(other, merged(other.document(), {"spec": {"x": 1}}))
        assert len((await kit.store.list_page("project")).objects) == 2
        assert (await kit.outbox.lead(60)).is_open
        (*_, last) = await kit.entries()
        await kit.outbox.trim(last.entry, {})
        assert await kit.store.delete(project) is None
        assert (await kit.store.census())["outbox"] == 1
        assert await kit.outbox.collect_tombstones("2100-01-01T00:00:00Z", StreamPosition(1, 1)) == 1
        await kit.outbox.resign()
    finally:
        await kit.connection.command("CONFIG", "SET", "maxmemory", "0")
    await kit.created(a_project("three"))


async def test_shoots_of_an_older_version_are_counted_a_page_at_a_time(
    kit: StoreUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gardenbus.relay.adapters.redis_outbox._PAGE", 2)
    connection = kit.connection
    assert connection is not None
    for name in ("a", "b", "c", "d", "e"):
        operation = {"type": "Reconcile", "state": "Failed", "description": "long enough to be compressed; " * 9}
        await kit.created(a_shoot(name, status={"lastOperation": operation}))
    for name in ("a", "b", "c", "d"):  # as a version without the index has left them
        await connection.command("HDEL", connection.key(f"o:shoot:garden-dev:{name}"), "cnt", "op")
    await connection.command("HSET", connection.key("states"), "failed", "1")
    await connection.command("ZREMRANGEBYRANK", connection.key("busy"), "0", "3")
    assert await kit.store.shoot_state_counts(9) == ({"failed": 1}, 1, [ObjectKey("shoot", "garden-dev", "e")], 4)

    assert await kit.outbox.count_older()
    counts = await kit.store.shoot_state_counts(9)
    assert (counts.states, counts.busy, counts.uncounted) == ({"failed": 3}, 3, 2)
    written = await kit.now(ObjectKey("shoot", "garden-dev", "c"))
    await kit.changed(written, merged(written.document(), {"metadata": {"labels": {"a": "b"}}}))
    while await kit.outbox.count_older():
        pass
    counts = await kit.store.shoot_state_counts(9)
    assert (counts.states, counts.busy, counts.uncounted) == ({"failed": 5}, 5, 0)
    assert not await kit.outbox.count_older()


class HurryingClock(FakeClock):
    """A second has passed with each look."""

    def monotonic(self) -> float:
        self.advance(1.0)
        return super().monotonic()


@pytest.mark.parametrize("walk", ["reannounce", "requeue_pending"])
async def test_a_relay_keeps_its_lead_while_it_walks_a_store_for_longer_than_a_lead_lasts(
    kit: StoreUnderTest, walk: str
) -> None:
    assert kit.connection is not None
    outbox = RedisOutbox(kit.connection, HurryingClock(), leader="slow")
    leader = kit.connection.key("leader")
    await kit.outbox.resign()
    await outbox.lead(3.0)
    await kit.connection.command("PEXPIRE", leader, 600_000)  # so that no time has to pass: what is renewed has 3 s
    await (outbox.reannounce(0) if walk == "reannounce" else outbox.requeue_pending())
    assert int(await kit.connection.command("PTTL", leader)) <= 3000, "it was renewed on the way"


async def test_no_number_stops_a_write_in_its_middle(kit: StoreUnderTest) -> None:
    pool = {"name": "pool", "machine": {"type": "large"}, "minimum": 1, "maximum": 3}
    spec = {"credentialsBindingName": "aws", "cloudProfile": {"name": "aws"}, "provider": {"workers": [pool]}}
    wanting = merged(a_shoot("tulip"), {"spec": spec})
    shoot = await kit.created(wanting)
    assert kit.connection is not None
    stored = kit.connection.key(f"o:{shoot.key.stored}")
    (sums,) = await kit.connection.command("KEYS", kit.connection.key("demand:*"))
    demand = (await kit.connection.command("HGET", stored, "demand")).decode()
    machines = demand.partition(" 3 ")[2]
    await kit.connection.command("HSET", stored, "demand", demand.replace(" 3 ", f" {2**67} "))  # of an older version
    pool["maximum"] = 4
    shoot = await kit.changed(shoot, merged(wanting, {"spec": spec}))
    assert await kit.connection.command("HGET", sums, machines) == b"7", "what was too large to count is not taken off"
    await kit.connection.command("HSET", sums, machines, 2**63 - 1)
    other = await kit.created(merged(wanting, {"metadata": {"name": "rose"}}))
    assert int(await kit.connection.command("HGET", sums, machines)) == 2**63 - 1
    await kit.connection.command("HSET", sums, machines, 3)
    for each in (shoot, other):
        assert await kit.store.delete(each) is None
    assert await kit.connection.command("EXISTS", sums) == 0


@pytest.mark.parametrize("name", ["a b", "a\nb", "a 1"])
async def test_a_binding_of_a_name_that_none_has_stops_no_write_in_its_middle(kit: StoreUnderTest, name: str) -> None:
    shoot = await kit.created(merged(a_shoot("tulip"), {"spec": {"credentialsBindingName": name}}))
    assert await kit.store.delete(shoot) is None
    assert kit.connection is not None
    assert await kit.connection.command("KEYS", kit.connection.key("demand:*")) == []


async def test_long_fields_stand_compressed_and_are_read_as_they_came(kit: StoreUnderTest) -> None:
    document = placed("tulip", 3, "aws-eu1", "mixed")
    await kit.created(a_seed("aws-eu1"))
    shoot = await kit.created(document, last_applied=encode(document))
    assert kit.connection is not None
    stored = kit.connection.key(f"o:{shoot.key.stored}")
    lengths = [await kit.connection.command("HSTRLEN", stored, field) for field in ("spec", "status", "last")]
    assert sum(lengths) < 1_000
    read = await kit.store.get(shoot.key)
    assert read is not None
    assert read == shoot
    assert read.last_applied == encode(document)


async def test_fields_that_an_earlier_version_stored_are_read(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot("tulip"))
    assert kit.connection is not None
    stored = kit.connection.key(f"o:{shoot.key.stored}")
    spec = b'"purpose":"production","region":"' + b"far" * 100 + b'"'
    await kit.connection.command("HSET", stored, "spec", spec)
    read = await kit.store.get(shoot.key)
    assert read is not None
    assert read.parts.spec == spec
