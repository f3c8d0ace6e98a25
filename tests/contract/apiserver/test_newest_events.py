"""A list of Events is as long as it should be, and reads little more of the stream than it lists."""

import json
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest

from gardenbus.apiserver.registry import bus_lists
from gardenbus.apiserver.registry.bus_lists import BusLists
from gardenbus.common.adapters.nats.jetstream import JetStreamBus
from gardenbus.common.api.list_selectors import ObjectPredicate, list_predicate
from gardenbus.common.ports.bus import Message
from tests.contract.apiserver.conftest import Apiserver

STORED = 6_000
MOST_BYTES = 8 * 1024 * 1024

Named = Sequence[tuple[str, int]]


def an_event(number: int) -> Message:
    """Every seventh Event counts on one of the first; the rare ones are all near the start."""
    name, count = (f"again.{number % 5}", number) if number % 7 == 0 else (f"once.{number}", 1)
    kind, namespace = ("seed", "_") if number % 3 == 0 else ("shoot", f"garden-{number % 4}")
    document = {
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "reason": "Rare" if number in (3, 40, 41) else "Common",
        "count": count,
        "message": "x" * 400,
    }
    return Message(f"event.{kind}.{namespace}.o{number % 97}", json.dumps(document).encode())


EVENTS = [an_event(number) for number in range(STORED)]


def naively(beginning: str, reason: str, limit: int) -> Named:
    """What a list has that reads everything."""
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for event in EVENTS:
        if event.subject.startswith(f"event.{beginning}"):
            document = json.loads(event.body)
            identity = (event.subject, document["metadata"]["name"])
            newest.pop(identity, None)
            newest[identity] = document
    selected = [document for document in newest.values() if reason in ("", document["reason"])]
    return [(document["metadata"]["name"], document["count"]) for document in selected][-limit:]


class Reader:
    """Lists Events, and notes behind which sequences it has read."""

    def __init__(self, bus: JetStreamBus, apiserver: Apiserver, monkeypatch: pytest.MonkeyPatch) -> None:
        self._lists = BusLists(bus, apiserver.subjects, most_bytes=MOST_BYTES)
        self.read_after: list[int | None] = []
        follow = bus.follow

        def noted(*arguments: Any, **settings: Any) -> Any:
            self.read_after.append(settings.get("after_sequence"))
            return follow(*arguments, **settings)

        monkeypatch.setattr(bus, "follow", noted)

    async def events(self, limit: int, *, namespace: str | None = None, reason: str = "", kind: str = "") -> Named:
        """Names and counts, oldest first."""
        self.read_after.clear()
        matches: ObjectPredicate | None = list_predicate({"fieldSelector": f"reason={reason}" if reason else ""})
        page = await self._lists.events(namespace, matches, limit, kind=kind)
        self.total = page.total
        documents = [json.loads(item) for item in map(bytes, page.items)]
        return [(document["metadata"]["name"], document["count"]) for document in documents]


@pytest.fixture
async def reader(apiserver: Apiserver, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """A reader of a stream with many Events."""
    monkeypatch.setattr(bus_lists, "NEWEST_MESSAGES", 100)
    bus = await apiserver.start()
    prefix = apiserver.subjects.prefix
    stream = apiserver.subjects.stream("EVENTS")
    for start in range(0, STORED, 1000):
        batch = [Message(f"{prefix}.{event.subject}", event.body) for event in EVENTS[start : start + 1000]]
        await bus.publish_batch(stream, batch, expected_last_sequence=start)
    return Reader(bus, apiserver, monkeypatch)


async def test_a_short_list_reads_the_end_of_the_stream_alone(reader: Reader) -> None:
    assert await reader.events(5) == naively("", "", 5)
    assert reader.read_after == [STORED - 100]
    assert reader.total is None

    assert await reader.events(150) == naively("", "", 150)
    assert reader.read_after == [STORED - 300]


async def test_each_list_is_what_reading_all_of_them_gives(reader: Reader) -> None:
    for namespace, kind, beginning in (
        (None, "", ""),
        (None, "seed", "seed."),
        ("garden-1", "", "shoot.garden-1."),
        ("garden-1", "shoot", "shoot.garden-1."),
        ("garden-9", "", "shoot.garden-9."),
    ):
        for reason in ("", "Rare", "None"):
            for limit in (1, 2, 4, 40, 120, 10_000):
                listed = await reader.events(limit, namespace=namespace, reason=reason, kind=kind)
                assert listed == naively(beginning, reason, limit)


async def test_what_a_list_looks_through_is_not_kept(reader: Reader) -> None:
    await reader.events(2, reason="None")
    tracemalloc.start()
    try:
        assert await reader.events(2, reason="None") == []
        _, highest = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reader.read_after[-1] is None
    assert highest < STORED * 900, "each message has 1,400 bytes, with its headers"


async def test_those_that_are_left_out_are_counted_where_all_were_read(reader: Reader) -> None:
    assert len(await reader.events(2, reason="Rare")) == 2
    assert reader.total == 3
    assert reader.read_after[-1] is None
    assert len(reader.read_after) <= 3


async def test_a_list_that_cannot_tell_how_many_it_leaves_out_warns_without_a_number(
    reader: Reader, apiserver: Apiserver
) -> None:
    del reader
    cut = await apiserver.response("list.event", {"limit": 2})
    assert [event["metadata"]["name"] for event in cut["result"]["items"]] == [name for name, _ in naively("", "", 2)]
    assert cut["warnings"] == ["these are the newest 2 Events: a higher limit gives more"]
