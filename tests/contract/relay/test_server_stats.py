"""What the servers are counted by, against the servers."""

from pathlib import Path

from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.diagnostics.replication import assess_replicas
from gardenbus.relay.adapters.redis_stats import replication_info, store_stats
from tests.support.builders import a_seed, a_shoot
from tests.support.eventually import eventually
from tests.support.joint import SUBJECTS, Joint
from tests.support.servers import start_redis


async def test_the_store_is_counted_with_what_waits_in_the_outbox_and_for_how_long(joint: Joint) -> None:
    joint.start_relay()
    await joint.create(a_seed())
    await joint.stop_relays()
    await joint.store.create(a_shoot())

    async def aged() -> None:
        stats = await store_stats(joint.connection)
        assert stats.outbox_age_seconds > 0.2

    await eventually(aged)
    stats = await store_stats(joint.connection)

    assert stats.outbox_entries >= 2  # the shoot, and the work that it makes
    assert stats.objects == {"seed": 1, "shoot": 1}
    assert (stats.pending, stats.unschedulable_classes) == (1, 0)
    assert stats.memory_bytes > 1_000_000


async def test_an_outbox_that_is_announced_has_no_age(joint: Joint) -> None:
    joint.start_relay()
    seed = await joint.create(a_seed())
    await joint.announced(SUBJECTS.changed(seed.key), seed.version)

    async def empty() -> None:
        stats = await store_stats(joint.connection)
        assert (stats.outbox_entries, stats.outbox_age_seconds) == (0, 0.0)

    await eventually(empty)


async def test_streams_and_the_consumers_of_work_queues_are_counted(joint: Joint) -> None:
    joint.start_relay()
    await joint.bus.work_queue("QUEUES", "scheduling-default-scheduler", SUBJECTS.queue_of("scheduling"))
    shoot = await joint.create(a_shoot())
    await joint.announced(SUBJECTS.changed(shoot.key), shoot.version)

    async def counted() -> None:
        stats = await joint.bus.stats()
        streams = {stream.name: stream for stream in stats.streams}
        assert streams["QUEUES"].messages == streams["OBJECTS"].messages == 1
        assert streams["OBJECTS"].size_bytes > 100
        assert streams["OBJECTS"].oldest_age_seconds > 0
        assert streams["LEASES"].oldest_age_seconds == 0
        [consumer] = stats.consumers
        assert (consumer.stream, consumer.name) == ("QUEUES", "scheduling-default-scheduler")
        assert (consumer.pending, consumer.in_flight, consumer.redelivered) == (1, 0, 0)
        assert stats.storage_bytes > 0

    await eventually(counted)


async def test_what_a_replica_of_redis_lacks_is_read_from_the_primary(tmp_path: Path) -> None:
    primary = start_redis(tmp_path / "primary", more={"repl-diskless-sync-delay": "0"})
    following = {"replicaof": f"127.0.0.1 {primary.port}"}
    replica = start_redis(tmp_path / "replica", more=following)
    connection = RedisConnection(primary.url)
    try:

        async def follows() -> None:
            findings = assess_replicas(await replication_info(connection))
            assert [each.state for each in findings] == ["ok"], findings
            assert f"127.0.0.1:{replica.port} online" in findings[0].found

        await eventually(follows)
    finally:
        await connection.close()
        for server in (replica, primary):
            server.stop()
