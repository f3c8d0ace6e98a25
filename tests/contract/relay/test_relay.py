"""The relay on real servers: in order, through crashes, and when one of the two comes back older."""

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from gardenbus.common.adapters.nats.follower import JetStreamFollower
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.function_library import join_files, texts
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.errors import Conflict, NotFound, Transient, Unavailable
from gardenbus.common.ports.bus import FollowEvent, Message
from gardenbus.common.ports.store import VERSION_LEAP, Creation, SeedBinding
from gardenbus.relay.adapters.redis_outbox import RedisOutbox
from gardenbus.relay.ports.outbox import OutboxPage
from gardenbus.relay.stream_watch import LANDSCAPE
from tests.support.builders import a_managed_seed, a_project, a_seed, a_shoot, a_shoot_state, merged
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.joint import SUBJECTS, Joint


async def test_nothing_is_written_until_a_relay_has_opened_the_store(joint: Joint) -> None:
    with pytest.raises(Unavailable, match="fenced"):
        await joint.store.create(a_seed())
    joint.start_relay()
    assert (await joint.create(a_seed())).version > 0


async def test_a_change_reaches_the_bus_with_its_document_work_and_binding(joint: Joint) -> None:
    joint.start_relay()
    seed = await joint.create(a_seed("s1"))
    shoot = await joint.create(a_shoot("apollo"))
    await joint.announced(SUBJECTS.changed(shoot.key), shoot.version)
    assert await joint.bus.subjects("QUEUES", "garden.queue.>") == {
        SUBJECTS.scheduling("default-scheduler", shoot.key): 1
    }
    reply = await joint.store.bind(
        [SeedBinding("garden-dev", "apollo", shoot.uid, shoot.generation, "s1", seed.scheduling_generation)]
    )
    assert reply.outcomes == ["bound"]
    subject = SUBJECTS.binding("s1", "garden-dev", "apollo")
    await joint.announced(subject, shoot.version + 1)
    last = await joint.bus.last("BINDINGS", subject)
    assert last is not None
    assert json.loads(last.body)["spec"]["seedName"] == "s1"
    assert last.headers[Header.ROLE] == "run"


async def test_a_standby_takes_over_when_the_leading_relay_dies(joint: Joint) -> None:
    leading = joint.start_relay("one")
    first = await joint.create(a_seed("s1"))
    await joint.announced(SUBJECTS.changed(first.key), first.version)
    joint.start_relay("two")
    leading.cancel()
    second = await joint.create(a_seed("s2"))
    await joint.announced(SUBJECTS.changed(second.key), second.version)


async def test_a_relay_that_was_paused_cannot_announce_the_past_after_the_present(joint: Joint) -> None:
    joint.start_relay()
    seed = await joint.create(a_seed("s1"))
    await joint.announced(SUBJECTS.changed(seed.key), seed.version)
    stale = (await joint.bus.position("OBJECTS")).sequence
    newer = await joint.update(seed.key, tier="gold")
    await joint.announced(SUBJECTS.changed(seed.key), newer.version)
    with pytest.raises(Conflict):
        await joint.bus.publish_batch(
            "OBJECTS",
            [Message(SUBJECTS.changed(seed.key), b"{}", {Header.VERSION: str(seed.version)})],
            expected_last_sequence=stale,
        )


def acknowledge_late(
    joint: Joint, monkeypatch: pytest.MonkeyPatch, until: Callable[[str, Sequence[Message]], Awaitable[None]]
) -> None:
    """Have acknowledgements of published batches reach the relay only when `until` returns."""
    publish = joint.bus.publish_batch

    async def late(
        stream: str, messages: Sequence[Message], *, expected_last_sequence: int, whole: bool = False
    ) -> int:
        last = await publish(stream, messages, expected_last_sequence=expected_last_sequence, whole=whole)
        await until(stream, messages)
        return last

    monkeypatch.setattr(joint.bus, "publish_batch", late)


async def test_a_page_whose_acknowledgements_come_when_the_lead_has_expired_is_announced_once(
    joint: Joint, monkeypatch: pytest.MonkeyPatch
) -> None:
    joint.start_relay(ttl=0.3)
    await joint.create(a_seed("s1"))
    await joint.quiet()
    stood_at = (await joint.bus.position("OBJECTS")).sequence
    expired = asyncio.Event()

    async def until_expired(_stream: str, _messages: Sequence[Message]) -> None:
        while not expired.is_set():
            if await joint.connection.command("EXISTS", joint.connection.key("leader")) == 0:
                expired.set()
            await asyncio.sleep(0.02)

    acknowledge_late(joint, monkeypatch, until_expired)
    created = await joint.store.create_many([Creation(a_seed(f"late-{number}")) for number in range(20)])
    await joint.quiet()
    assert expired.is_set()
    assert (await joint.bus.position("OBJECTS")).sequence == stood_at + len(created)


async def test_a_relay_goes_on_where_each_page_takes_longer_than_its_lead_lives(
    joint: Joint, monkeypatch: pytest.MonkeyPatch
) -> None:
    joint.start_relay(ttl=0.3)
    await joint.create(a_seed("s1"))
    await joint.quiet()
    pages: list[int] = []

    async def until_expired(stream: str, messages: Sequence[Message]) -> None:
        if stream == "OBJECTS":
            pages.append(len(messages))
            while await joint.connection.command("EXISTS", joint.connection.key("leader")):
                await asyncio.sleep(0.02)

    acknowledge_late(joint, monkeypatch, until_expired)
    shoots = [await joint.store.create(a_shoot(f"waiting-{number}")) for number in range(3)]
    last = shoots[-1]
    assert isinstance(last, StoredObject)
    await joint.announced(SUBJECTS.changed(last.key), last.version)
    await joint.quiet()
    assert sum(pages) == len(shoots)


async def test_a_page_is_announced_once_where_the_next_one_is_read_when_the_lead_has_expired(
    joint: Joint, monkeypatch: pytest.MonkeyPatch
) -> None:
    joint.start_relay(ttl=60)
    await joint.create(a_seed("s1"))
    await joint.quiet()
    stood_at = (await joint.bus.position("OBJECTS")).sequence
    head, expired = RedisOutbox.head, asyncio.Event()

    async def late(outbox: RedisOutbox, limit: int, after: str | None = None) -> OutboxPage:
        if after is not None and not expired.is_set():
            expired.set()
            await joint.connection.command("DEL", joint.connection.key("leader"))
        return await head(outbox, limit, after)

    monkeypatch.setattr(RedisOutbox, "head", late)
    created = await joint.store.create_many([Creation(a_seed(f"late-{number}")) for number in range(250)])
    await joint.quiet()
    assert expired.is_set()
    assert (await joint.bus.position("OBJECTS")).sequence == stood_at + len(created)


async def test_a_page_is_announced_again_where_another_relay_has_led_before_it_was_trimmed(
    joint: Joint, monkeypatch: pytest.MonkeyPatch
) -> None:
    joint.start_relay(ttl=0.3)
    await joint.create(a_seed("s1"))
    await joint.quiet()
    another, has_led = joint.outbox("another"), asyncio.Event()

    async def until_another_led(_stream: str, _messages: Sequence[Message]) -> None:
        while not has_led.is_set():
            if (await another.lead(0.05)).leading:
                has_led.set()
            await asyncio.sleep(0.02)

    acknowledge_late(joint, monkeypatch, until_another_led)
    stood_at = (await joint.bus.position("OBJECTS")).sequence
    await joint.create(a_seed("late"))
    await joint.quiet()
    assert (await joint.bus.position("OBJECTS")).sequence == stood_at + 2


async def test_one_object_that_the_stream_refuses_goes_without_its_body_and_holds_nobody_up(joint: Joint) -> None:
    joint.start_relay()
    await joint.create(a_seed("first"))
    await joint.quiet()
    found = json.loads(await joint.bus.request("$JS.API.STREAM.INFO.OBJECTS", b""))
    wanted = json.dumps(found["config"] | {"max_msg_size": 16_384}).encode()
    assert "error" not in json.loads(await joint.bus.request("$JS.API.STREAM.UPDATE.OBJECTS", wanted))

    documents = [a_seed(name) for name in ("a", "b", "large", "c", "d")]
    documents[2]["metadata"]["annotations"] = {"example.com/notes": "x" * 20_000}
    created = await joint.store.create_many([Creation(document) for document in documents])
    for stored in created:
        assert isinstance(stored, StoredObject)
        await joint.announced(SUBJECTS.changed(stored.key), stored.version)

    large = await joint.bus.last("OBJECTS", "garden.changed.seed._.large")
    assert large is not None
    assert large.body == b""
    assert int(large.headers[Header.TOO_LARGE]) > 20_000
    await joint.quiet()


async def test_what_was_written_while_nats_was_away_is_announced_when_it_is_back(joint: Joint) -> None:
    joint.start_relay()
    seed = await joint.create(a_seed("s1"))
    await joint.quiet()
    await asyncio.to_thread(joint.nats.kill)
    written = [await joint.update(seed.key, step=str(step)) for step in range(20)]
    await asyncio.to_thread(joint.nats.start)
    await joint.announced(SUBJECTS.changed(seed.key), written[-1].version)
    await joint.quiet()


async def test_a_stream_that_is_another_one_is_filled_again_from_the_store(joint: Joint) -> None:
    joint.start_relay()
    seed = await joint.create(a_seed("s1"))
    shoot = await joint.create(a_shoot("apollo"))
    await joint.create(a_project())
    await joint.store.bind(
        [SeedBinding("garden-dev", "apollo", shoot.uid, shoot.generation, "s1", seed.scheduling_generation)]
    )
    waiting = await joint.create(a_shoot("waiting"))
    await joint.quiet()
    await asyncio.to_thread(joint.nats.stop)
    shutil.rmtree(joint.nats.directory / "jetstream")
    await asyncio.to_thread(joint.nats.start)
    await joint.announced(SUBJECTS.changed(seed.key), seed.version)
    await joint.announced(SUBJECTS.binding("s1", "garden-dev", "apollo"), shoot.version)

    async def queued() -> None:
        subjects = await joint.bus.subjects("QUEUES", "garden.queue.scheduling.>")
        assert SUBJECTS.scheduling("default-scheduler", waiting.key) in subjects

    await eventually(queued)


async def test_a_store_that_came_back_older_is_repaired_from_the_bus_before_anything_is_written(joint: Joint) -> None:
    joint.start_relay()
    seed = await joint.create(a_seed("s1"))
    shoot = await joint.create(a_shoot("apollo"))
    gone = await joint.create(a_shoot("gone"))
    await joint.quiet()
    await asyncio.to_thread(joint.redis.stop)
    shutil.copytree(joint.redis.directory / "appendonlydir", joint.redis.directory / "older")
    await asyncio.to_thread(joint.redis.start)

    async def open_again() -> None:
        await joint.create(a_project())

    await open_again()
    reply = await joint.store.bind(
        [SeedBinding("garden-dev", "apollo", shoot.uid, shoot.generation, "s1", seed.scheduling_generation)]
    )
    assert reply.outcomes == ["bound"]
    bound = await joint.store.get(shoot.key)
    current = await joint.store.get(gone.key)
    assert bound is not None
    assert current is not None
    await joint.store.delete(current)
    await joint.quiet()

    await asyncio.to_thread(joint.redis.kill)
    shutil.rmtree(joint.redis.directory / "appendonlydir")
    (joint.redis.directory / "older").rename(joint.redis.directory / "appendonlydir")
    await asyncio.to_thread(joint.redis.start)
    later = await joint.create(a_shoot("later"))

    restored = await joint.store.get(shoot.key)
    assert restored is not None
    assert (restored.version, restored.parts) == (bound.version, bound.parts)
    assert await joint.store.get(gone.key) is None
    assert (await joint.store.usage()).seeds["s1"] == 1
    assert later.version > bound.version + VERSION_LEAP
    again = await joint.store.bind([SeedBinding("garden-dev", "apollo", shoot.uid, shoot.generation, "s2", None)])
    assert again.outcomes == ["scheduled"]


async def test_a_store_that_went_back_to_before_its_bus_did_is_repaired_from_what_the_bus_stored_since(
    joint: Joint, tmp_path: Path
) -> None:
    joint.start_relay()
    seed = await joint.create(a_seed("s1"))
    shoot, other = await joint.create(a_shoot("apollo")), await joint.create(a_shoot("other"))
    await joint.quiet()
    older_bus = await copied(joint, tmp_path / "older")
    for number in range(8):  # so many sequences, of which the repetition of the last one takes one
        await joint.update(other.key, number=str(number))
        await joint.quiet()
    older_store = joint.redis.directory / "older"
    await asyncio.to_thread(joint.redis.stop)
    shutil.copytree(joint.redis.directory / "appendonlydir", older_store)
    await asyncio.to_thread(joint.redis.start)
    await joint.create(a_project("early"))
    await joint.quiet()
    await back_to(joint, older_bus)
    await joint.create(a_project("late"))
    bindings = [SeedBinding("garden-dev", "apollo", shoot.uid, shoot.generation, "s1", seed.scheduling_generation)]
    assert (await joint.store.bind(bindings)).outcomes == ["bound"]
    bound = await joint.store.get(shoot.key)
    assert bound is not None
    await joint.announced(SUBJECTS.changed(shoot.key), bound.version)
    await joint.quiet()

    await asyncio.to_thread(joint.redis.kill)
    shutil.rmtree(joint.redis.directory / "appendonlydir")
    older_store.rename(joint.redis.directory / "appendonlydir")
    await asyncio.to_thread(joint.redis.start)
    await joint.create(a_shoot("later"))
    restored = await joint.store.get(shoot.key)
    assert restored is not None
    assert (restored.version, restored.parts) == (bound.version, bound.parts)


async def test_a_store_that_lost_everything_is_rebuilt_from_the_bus(joint: Joint) -> None:
    joint.start_relay()
    seed = await joint.create(a_seed("s1"))
    shoot = await joint.create(a_shoot("apollo"))
    await joint.quiet()
    await asyncio.to_thread(joint.redis.kill)
    shutil.rmtree(joint.redis.directory / "appendonlydir")
    await asyncio.to_thread(joint.redis.start)
    await joint.create(a_project())
    restored = await joint.store.get(shoot.key)
    assert restored is not None
    assert restored.uid == shoot.uid
    assert [stored.key for stored in (await joint.store.list_page("seed")).objects] == [seed.key]
    assert (await joint.store.census())["shoots.pending"] == 1


async def test_a_store_that_somebody_emptied_is_rebuilt_from_the_bus_before_anything_is_written(joint: Joint) -> None:
    joint.start_relay()
    seed = await joint.create(a_seed("s1"))
    shoot = await joint.create(a_shoot("apollo"))
    reply = await joint.store.bind(
        [SeedBinding("garden-dev", "apollo", shoot.uid, shoot.generation, "s1", seed.scheduling_generation)]
    )
    assert reply.outcomes == ["bound"]
    bound = await joint.store.get(shoot.key)
    assert bound is not None
    await joint.quiet()
    await joint.connection.command("FLUSHALL")
    later = await joint.create(a_project())
    assert later.version > bound.version + VERSION_LEAP
    restored = await joint.store.get(shoot.key)
    assert restored is not None
    assert (restored.version, restored.parts) == (bound.version, bound.parts)
    assert (await joint.store.usage()).seeds["s1"] == 1
    await joint.announced(SUBJECTS.changed(later.key), later.version)


async def test_a_relay_of_another_version_takes_over_and_the_store_stays_open(joint: Joint) -> None:
    joint.start_relay("old")
    first = await joint.create(a_seed("s1"))
    another = RedisConnection(joint.redis.url, library=join_files({**texts(), "later.lua": "-- another version\n"}))
    try:
        joint.start_relay("new", connection=another)
        second = await joint.create(a_seed("s2"))
        await joint.announced(SUBJECTS.changed(second.key), second.version)
        joint.tasks[0].cancel()
        for step in range(100):
            second = await joint.update(second.key, step=str(step))
            await asyncio.sleep(0.01)
        await joint.announced(SUBJECTS.changed(second.key), second.version)
        assert second.version < first.version + VERSION_LEAP, "nobody opened the store anew"
    finally:
        await joint.stop_relays()
        await another.close()


HOST = ObjectKey("shoot", "garden", "host")
MANAGED = ObjectKey("managedseed", "garden", "host")
STATE = ObjectKey("shootstate", "garden", "host")


async def change(joint: Joint, key: ObjectKey, changes: Document) -> StoredObject:
    base = await joint.store.get(key)
    assert base is not None
    changed = await joint.store.update(base, merged(base.document(), changes))
    assert isinstance(changed, StoredObject)
    return changed


async def shown(joint: Joint, seed: str, key: ObjectKey) -> str:
    """What a seed was last told of an object: the verb, "" for nothing."""
    last = await joint.bus.last("BINDINGS", SUBJECTS.view(seed, key))
    return last.headers[Header.VERB] if last is not None else ""


async def expect_shown(joint: Joint, **verbs: str) -> None:
    async def as_expected() -> None:
        for seed, verb in verbs.items():
            assert [await shown(joint, seed, key) for key in (MANAGED, STATE)] == [verb, verb], seed

    await eventually(as_expected)


async def a_host(joint: Joint) -> StoredObject:
    for seed in ("s1", "s2"):
        await joint.create(a_seed(seed))
    await joint.create(a_managed_seed("host"))
    await joint.create(a_shoot_state("host", "garden"))
    return await joint.create(a_shoot("host", "garden"))


async def test_what_follows_a_shoot_goes_with_it_from_seed_to_seed(joint: Joint) -> None:
    joint.start_relay()
    host = await a_host(joint)
    await joint.quiet()
    await expect_shown(joint, s1="", s2="")
    await joint.store.bind([SeedBinding("garden", "host", host.uid, host.generation, "s1", None)])
    await expect_shown(joint, s1="modified", s2="")
    await change(joint, HOST, {"status": {"seedName": "s1"}})
    await change(joint, HOST, {"spec": {"seedName": "s2"}})
    await expect_shown(joint, s1="modified", s2="modified")
    assert await joint.bus.subjects("QUEUES", "garden.queue.migration.>") == {"garden.queue.migration.garden.host": 1}
    await change(joint, HOST, {"status": {"seedName": "s2"}})
    await expect_shown(joint, s1="deleted", s2="modified")
    for key in (MANAGED, STATE):
        current = await joint.store.get(key)
        assert current is not None
        await joint.store.delete(current)
    await expect_shown(joint, s1="deleted", s2="deleted")


async def test_a_stream_that_is_another_one_shows_again_what_follows_shoots(joint: Joint) -> None:
    joint.start_relay()
    host = await a_host(joint)
    await joint.store.bind([SeedBinding("garden", "host", host.uid, host.generation, "s1", None)])
    await change(joint, HOST, {"status": {"seedName": "s1"}})
    await change(joint, HOST, {"spec": {"seedName": "s2"}, "status": {"seedName": "s2"}})
    migrating = await joint.create(a_shoot("moving", spec={"seedName": "s1"}, status={"seedName": "s1"}))
    await change(joint, migrating.key, {"spec": {"seedName": "s2"}})
    await expect_shown(joint, s1="deleted", s2="modified")
    await joint.quiet()
    await asyncio.to_thread(joint.nats.stop)
    shutil.rmtree(joint.nats.directory / "jetstream")
    await asyncio.to_thread(joint.nats.start)

    async def shown_again() -> None:
        try:
            await expect_shown(joint, s1="deleted", s2="modified")
            assert "garden.queue.migration.garden-dev.moving" in await joint.bus.subjects("QUEUES", "garden.queue.>")
        except (Transient, NotFound) as error:
            raise AssertionError(error.message) from error

    await eventually(shown_again)


async def test_a_move_that_the_store_forgot_is_shown_where_the_bus_says_that_it_went(joint: Joint) -> None:
    joint.start_relay()
    host = await a_host(joint)
    await joint.quiet()
    await asyncio.to_thread(joint.redis.stop)
    shutil.copytree(joint.redis.directory / "appendonlydir", joint.redis.directory / "older")
    await asyncio.to_thread(joint.redis.start)
    await joint.create(a_project())
    reply = await joint.store.bind([SeedBinding("garden", "host", host.uid, host.generation, "s1", None)])
    assert reply.outcomes == ["bound"]
    await expect_shown(joint, s1="modified", s2="")
    await joint.quiet()
    for key in (MANAGED, STATE):
        await joint.bus.purge("BINDINGS", SUBJECTS.view("s1", key))

    await asyncio.to_thread(joint.redis.kill)
    shutil.rmtree(joint.redis.directory / "appendonlydir")
    (joint.redis.directory / "older").rename(joint.redis.directory / "appendonlydir")
    await asyncio.to_thread(joint.redis.start)
    await joint.create(a_project("later"))
    await expect_shown(joint, s1="modified", s2="")
    assert (await joint.store.usage()).seeds["s1"] == 1


@pytest.mark.parametrize("uid", ["*", ">", "two words", "a.b", "line\r\nPUB garden.queue.x 0\r\n\r\n"])
async def test_an_owner_with_an_invalid_uid_stops_no_announcement(joint: Joint, uid: str) -> None:
    joint.start_relay()
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    metadata = {"name": "owned", "namespace": "garden", "ownerReferences": [owner]}
    await joint.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    await joint.quiet()
    seed = await joint.create(a_seed())
    await joint.announced(SUBJECTS.changed(seed.key), seed.version)
    await joint.quiet()


async def back_to(joint: Joint, copy: Path, *streams: str) -> None:
    """Take NATS (or some of its streams alone) back to a copy of its directory."""
    await asyncio.to_thread(joint.nats.stop)
    current = joint.nats.directory / "jetstream"
    for stream in streams:
        (directory,) = current.rglob(f"streams/{stream}")
        shutil.rmtree(directory)
        shutil.copytree(copy / directory.relative_to(current), directory)
    if not streams:
        shutil.rmtree(current)
        shutil.copytree(copy, current)
    await asyncio.to_thread(joint.nats.start)


async def copied(joint: Joint, to: Path) -> Path:
    """A copy of NATS' directory."""
    await asyncio.to_thread(joint.nats.stop)
    shutil.copytree(joint.nats.directory / "jetstream", to)
    await asyncio.to_thread(joint.nats.start)

    async def connected() -> None:
        try:
            await joint.bus.position("REQUESTS")
        except Transient as error:
            raise AssertionError(error.message) from error

    await eventually(connected)
    return to


async def until_losses(joint: Joint, *expected: tuple[str, int, int, int, bool]) -> None:
    """Wait until these losses are known, and the latest one is an Event."""

    async def existing() -> None:
        try:
            losses = await joint.store.stream_losses()
            found = [(each.stream, each.first, each.last, each.waiting, each.of_store) for each in losses]
            assert found == list(expected)
            last = await joint.bus.last("EVENTS", SUBJECTS.event(LANDSCAPE))
        except (Transient, NotFound) as error:
            raise AssertionError(error.message) from error
        assert last is not None
        event = json.loads(last.body)
        assert (event["reason"], event["message"]) == ("MessagesLost", losses[-1].text)

    await eventually(existing)


async def published(joint: Joint, count: int) -> None:
    """Publish orders that nobody takes, and wait until the relay has seen them."""
    last = [await joint.bus.publish(Message(SUBJECTS.apply, b"{}")) for _ in range(count)][-1]
    created = (await joint.bus.position("REQUESTS")).created

    async def seen() -> None:
        assert (await joint.store.observe_stream("REQUESTS", created)).sequence == last

    await eventually(seen)


async def test_orders_that_waited_in_a_stream_that_went_back_are_named(joint: Joint, tmp_path: Path) -> None:
    joint.start_relay()
    await joint.create(a_seed("s1"))
    await joint.quiet()
    await published(joint, 1)
    copy = await copied(joint, tmp_path / "older")
    await published(joint, 3)
    await back_to(joint, copy)
    await until_losses(joint, ("REQUESTS", 2, 4, 3, False))


async def test_orders_that_were_carried_out_in_a_store_that_went_back_are_named(joint: Joint) -> None:
    joint.start_relay()
    await joint.create(a_seed("s1"))
    await joint.quiet()
    await asyncio.to_thread(joint.redis.stop)
    shutil.copytree(joint.redis.directory / "appendonlydir", joint.redis.directory / "older")
    await asyncio.to_thread(joint.redis.start)
    await joint.create(a_seed("s2"))
    await joint.quiet()
    await published(joint, 2)
    queue = await joint.bus.work_queue("REQUESTS", "apiserver", SUBJECTS.apply)
    await queue.ack_many(await queue.fetch(2, HANG_SECONDS))
    await asyncio.to_thread(joint.redis.kill)
    shutil.rmtree(joint.redis.directory / "appendonlydir")
    (joint.redis.directory / "older").rename(joint.redis.directory / "appendonlydir")
    await asyncio.to_thread(joint.redis.start)
    await until_losses(joint, ("REQUESTS", 1, 2, 0, True))
    assert await joint.store.get(ObjectKey("seed", "", "s2")) is not None


async def test_a_shoot_whose_queue_alone_went_back_is_queued_again(joint: Joint, tmp_path: Path) -> None:
    joint.start_relay()
    await joint.create(a_seed("s1"))
    await joint.quiet()
    copy = await copied(joint, tmp_path / "older")
    waiting = await joint.create(a_shoot("waiting"))
    await joint.quiet()
    await joint.stop_relays()
    end = (await joint.bus.position("QUEUES")).sequence
    await back_to(joint, copy, "QUEUES")

    async def grown() -> None:
        try:
            await joint.bus.publish(Message(SUBJECTS.queue("garbage", "garden-dev", "waiting")))
            assert (await joint.bus.position("QUEUES")).sequence > end
        except Transient as error:
            raise AssertionError(error.message) from error

    await eventually(grown)
    joint.start_relay()

    async def queued() -> None:
        subjects = await joint.bus.subjects("QUEUES", "garden.queue.scheduling.>")
        assert SUBJECTS.scheduling("default-scheduler", waiting.key) in subjects

    await eventually(queued)


async def test_an_informer_misses_nothing_of_a_stream_that_alone_went_back_and_grew_past_where_it_was(
    joint: Joint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_late = asyncio.Event()
    heal = JetStreamFollower._heal  # pyright: ignore[reportPrivateUsage]

    async def heal_late(self: JetStreamFollower) -> list[FollowEvent]:
        await is_late.wait()
        return await heal(self)

    joint.start_relay()
    seed = await joint.create(a_seed("s1"))
    await joint.quiet()
    copy = await copied(joint, tmp_path / "older")
    async with joint.informer(["seed"]) as informer:
        for step in range(10):
            seed = await joint.update(seed.key, step=str(step))
            await joint.announced(SUBJECTS.changed(seed.key), seed.version)

        async def current() -> None:
            assert informer.objects("seed")[seed.key].version == seed.version

        await eventually(current)
        end = (await joint.bus.position("OBJECTS")).sequence
        monkeypatch.setattr(JetStreamFollower, "_heal", heal_late)
        await back_to(joint, copy, "OBJECTS")
        missed = await joint.create(a_seed("s2"))
        await joint.announced(SUBJECTS.changed(missed.key), missed.version)
        assert (await joint.bus.position("OBJECTS")).sequence < end
        while (await joint.bus.position("OBJECTS")).sequence <= end:
            seed = await joint.update(seed.key, step=f"later {seed.version}")
            await joint.announced(SUBJECTS.changed(seed.key), seed.version)
        is_late.set()

        async def complete() -> None:
            versions = {key: stored.version for key, stored in informer.objects("seed").items()}
            assert versions == {seed.key: seed.version, missed.key: missed.version}

        await eventually(complete)


async def test_pending_shoots_are_queued_again_though_their_queue_grew_past_its_recorded_end(
    joint: Joint, tmp_path: Path
) -> None:
    joint.start_relay()
    await joint.create(a_seed("s1"))
    await joint.quiet()
    await asyncio.to_thread(joint.nats.stop)
    shutil.copytree(joint.nats.directory / "jetstream", tmp_path / "older")
    await asyncio.to_thread(joint.nats.start)
    waiting = await joint.create(a_shoot("waiting"))
    await joint.announced(SUBJECTS.changed(waiting.key), waiting.version)
    await joint.quiet()
    await joint.stop_relays()
    end = (await joint.bus.position("QUEUES")).sequence

    await asyncio.to_thread(joint.nats.stop)
    shutil.rmtree(joint.nats.directory / "jetstream")
    shutil.copytree(tmp_path / "older", joint.nats.directory / "jetstream")
    await asyncio.to_thread(joint.nats.start)

    async def grown() -> None:
        try:
            await joint.bus.publish(Message(SUBJECTS.queue("garbage", "garden-dev", "waiting")))
            assert (await joint.bus.position("QUEUES")).sequence > end
        except Transient as error:
            raise AssertionError(error.message) from error

    await eventually(grown)
    joint.start_relay()

    async def queued() -> None:
        subjects = await joint.bus.subjects("QUEUES", "garden.queue.scheduling.>")
        assert SUBJECTS.scheduling("default-scheduler", waiting.key) in subjects

    await eventually(queued)
