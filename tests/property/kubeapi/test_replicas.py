"""A client that lists at one replica and watches at others ends with the store's state: nothing lost, nothing twice."""

import random
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.common.api.keys import ObjectKey
from gardenbus.kubeapi.watch.cacher import Announcement, CachedObject, CacheEvent, Cacher

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = "abcd"

Write = tuple[str, bool]
"""Name of an object, and whether it is removed."""


class Announced(NamedTuple):
    change: Announcement
    settled: int


def a_key(name: str) -> ObjectKey:
    return ObjectKey("configmap", "dev", name)


def state_after(writes: list[Write], count: int) -> dict[str, tuple[int, str]]:
    """Version and uid of each object after some writes; the first has version 1."""
    found: dict[str, tuple[int, str]] = {}
    for version, (name, is_removed) in enumerate(writes[:count], 1):
        if is_removed:
            found.pop(name, None)
        else:
            found[name] = version, found.get(name, (0, f"{name}-{version}"))[1]
    return found


def announced(writes: list[Write], chance: random.Random) -> list[Announced]:
    """What a relay publishes: pages of the outbox, each with the state by the time at which it was read."""
    found: list[Announced] = []
    at = 0
    while at < len(writes):
        size = chance.randint(1, 5)
        page = list(enumerate(writes[at : at + size], at + 1))
        now = state_after(writes, min(len(writes), at + size + chance.randint(0, 3)))
        last_removals = {
            name: version for version, (name, gone) in enumerate(writes, 1) if gone and version <= at + size
        }
        newest = {name: (version, gone) for version, (name, gone) in page}
        messages: list[Announcement] = []
        for name, (version, gone) in newest.items():
            if name in now:
                current, uid = now[name]
                metadata = {"name": name, "namespace": "dev", "resourceVersion": str(current), "uid": uid}
                body = msgspec.json.encode({"kind": "ConfigMap", "metadata": metadata})
                messages.append(
                    Announcement(CachedObject(a_key(name), uid, current, body), NOW, is_added=chance.random() < 0.5)
                )
            elif gone and version >= last_removals.get(name, 0):
                messages.append(Announcement(CachedObject(a_key(name), "", version, b""), NOW, is_removed=True))
        chance.shuffle(messages)
        settled = page[-1][0]
        found += [Announced(each, settled if each is messages[-1] else 0) for each in messages]
        at += size
    return found  # fmt: skip


class Client:
    """Somebody who lists once, and then goes on from the last version seen."""

    def __init__(self) -> None:
        self.version: int | None = None
        self.objects: dict[str, int] = {}

    def list(self, cache: Cacher) -> None:
        self.objects = {each.key.name: each.version for each in cache.objects("configmap", "")}
        self.version = cache.mark

    def see(self, event: CacheEvent) -> None:
        assert self.version is not None
        if event.version <= self.version and event.new is not None:
            raise AssertionError((event.version, self.version))
        self.version = max(self.version, event.version)
        if event.new is None:
            self.objects.pop(event.key.name, None)
        else:
            self.objects[event.key.name] = event.new.version


writes = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from((False, False, True))), min_size=1, max_size=40)


@given(writes, st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_a_client_that_changes_replicas_misses_nothing_and_sees_nothing_twice(history: list[Write], seed: int) -> None:
    chance = random.Random(seed)
    messages = announced(history, chance)
    replicas = [Cacher(lambda: NOW) for _ in range(2)]
    places = [0, 0]
    for replica in replicas:
        replica.begin_replay()
        replica.end_replay()
    client = Client()
    while True:
        at = chance.randrange(2)
        replica = replicas[at]
        is_last = all(place == len(messages) for place in places)
        if client.version is None:
            client.list(replica)
        if client.version is not None and client.version <= replica.mark:
            for event in replica.since("configmap", client.version):
                client.see(event)
        end = replica.subscribe("configmap", _above(client, client.version or 0))
        steps = len(messages) - places[at] if is_last else chance.randint(0, 4)
        for message in messages[places[at] : places[at] + steps]:
            replica.receive(message.change, message.settled)
        places[at] = min(len(messages), places[at] + steps)
        end()
        if is_last:
            break
    assert client.objects == {name: version for name, (version, _) in state_after(history, len(history)).items()}


def _above(client: Client, version: int):  # noqa: ANN202 - a sink
    def sink(event: CacheEvent) -> None:
        if event.version > version:
            client.see(event)

    return sink
