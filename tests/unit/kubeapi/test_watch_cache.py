"""The watch cache: order of events, floor, and what a watcher gets."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import VERSION_LEAP
from gardenbus.kubeapi.domain.list_options import list_options
from gardenbus.kubeapi.domain.negotiation import TABLE
from gardenbus.kubeapi.domain.resources import resource_named
from gardenbus.kubeapi.domain.statuses import ResourceExpired
from gardenbus.kubeapi.watch.cacher import Announcement, CachedObject, Cacher, Restart
from gardenbus.kubeapi.watch.watchers import MOST_LINES, Watcher, WatchForm

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def a_change(name: str, version: int, *, labels: dict[str, str] | None = None, at: datetime = NOW) -> Announcement:
    metadata = {"name": name, "namespace": "dev", "resourceVersion": str(version), "labels": labels or {}}
    body = msgspec.json.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    return Announcement(CachedObject(ObjectKey("configmap", "dev", name), f"uid-{name}", version, body), at)


def a_removal(name: str, version: int, *, at: datetime = NOW) -> Announcement:
    return Announcement(
        CachedObject(ObjectKey("configmap", "dev", name), f"uid-{name}", version, b""), at, is_removed=True
    )


@pytest.fixture
def cache() -> Cacher:
    found = Cacher(lambda: NOW)
    found.begin_replay()
    found.receive(a_change("one", 5), 5)
    found.end_replay()
    return found


def a_watcher(cache: Cacher, *, form: str = "", **query: str) -> Watcher:
    watcher = Watcher(resource_named("configmap"), "", list_options(query, watch=True), WatchForm(form), lambda: NOW)
    watcher.start(cache)
    return watcher


async def events_of(watcher: Watcher) -> list[tuple[str, str, str]]:
    found = [msgspec.json.decode(line) for line in await watcher.lines()]
    return [(each["type"], *_named(each["object"])) for each in found]


def _named(document: dict[str, Any]) -> tuple[str, str]:
    metadata = document["metadata"]
    return metadata.get("name", ""), metadata.get("resourceVersion", "")


async def test_events_leave_in_the_order_of_versions_once_they_are_settled(cache: Cacher) -> None:
    watcher = a_watcher(cache, resourceVersion="5")
    cache.receive(a_change("two", 8), 0)
    cache.receive(a_change("one", 6), 0)
    cache.receive(a_change("four", 11), 0)
    cache.receive(a_change("three", 7), 9)
    assert await events_of(watcher) == [("MODIFIED", "one", "6"), ("ADDED", "three", "7"), ("ADDED", "two", "8")]
    assert cache.mark == 9
    cache.receive(None, 11)
    assert await events_of(watcher) == [("ADDED", "four", "11")]


async def test_a_watch_from_a_version_begins_with_what_has_changed_since(cache: Cacher) -> None:
    cache.receive(a_change("two", 6), 6)
    cache.receive(a_removal("one", 7), 7)
    cache.receive(a_change("two", 8), 8)
    assert await events_of(a_watcher(cache, resourceVersion="6")) == [("DELETED", "one", "7"), ("MODIFIED", "two", "8")]


async def test_initial_events_end_with_a_bookmark_that_says_so(cache: Cacher) -> None:
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "1"}
    watcher = a_watcher(cache, **query)
    lines = [msgspec.json.decode(line) for line in await watcher.lines()]
    assert [each["type"] for each in lines] == ["ADDED", "BOOKMARK"]
    assert lines[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert lines[1]["object"]["metadata"]["resourceVersion"] == "5"


async def test_what_begins_and_ceases_to_match_is_added_and_deleted(cache: Cacher) -> None:
    watcher = a_watcher(cache, resourceVersion="5", labelSelector="a=b")
    for version, labels in ((6, {"a": "b"}), (7, {"a": "b", "c": "d"}), (8, {}), (9, {})):
        cache.receive(a_change("one", version, labels=labels), version)
    assert await events_of(watcher) == [("ADDED", "one", "6"), ("MODIFIED", "one", "7"), ("DELETED", "one", "8")]


async def test_one_object_is_watched_by_its_name(cache: Cacher) -> None:
    watcher = a_watcher(cache, resourceVersion="5", fieldSelector="metadata.name=two")
    cache.receive(a_change("one", 6), 6)
    cache.receive(a_change("two", 7), 7)
    assert await events_of(watcher) == [("ADDED", "two", "7")]


async def test_rows_of_a_watched_table_have_columns_the_first_time_alone(cache: Cacher) -> None:
    watcher = a_watcher(cache, form=TABLE)
    cache.receive(a_change("two", 6), 6)
    first, second = (msgspec.json.decode(line)["object"] for line in await watcher.lines())
    assert first["columnDefinitions"]
    assert second["columnDefinitions"] == []
    assert second["rows"][0]["cells"][0] == "two"


def test_below_the_floor_a_watch_has_expired() -> None:
    now = NOW
    cache = Cacher(lambda: now)
    cache.begin_replay()
    cache.receive(a_change("one", 5, at=NOW - timedelta(hours=2)), 0)
    cache.receive(a_change("two", 9, at=NOW), 9)
    cache.end_replay()
    assert [event.version for event in cache.since("configmap", 5)] == [9]
    with pytest.raises(ResourceExpired):
        cache.since("configmap", 4)


async def test_a_stream_that_began_anew_ends_all_watches_as_expired(cache: Cacher) -> None:
    watcher = a_watcher(cache, resourceVersion="5")
    cache.on_reset(watcher.expire)
    cache.begin_replay()
    cache.receive(a_change("two", 4), 4)
    assert cache.get(ObjectKey("configmap", "dev", "one")) is not None
    cache.end_replay()
    (line,) = [msgspec.json.decode(each) for each in await watcher.lines()]
    assert (line["type"], line["object"]["code"], line["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert cache.get(ObjectKey("configmap", "dev", "one")) is None
    with pytest.raises(ResourceExpired):
        cache.since("configmap", 3)


def test_a_store_that_was_opened_anew_is_read_again(cache: Cacher) -> None:
    with pytest.raises(Restart):
        cache.receive(a_change("two", 5 + VERSION_LEAP), 0)


async def test_a_client_that_does_not_read_has_its_watch_ended(cache: Cacher) -> None:
    watcher = a_watcher(cache, resourceVersion="5")
    for version in range(6, 6 + MOST_LINES + 2):
        cache.receive(a_change("one", version), version)
    assert watcher.is_slow
    (line,) = [msgspec.json.decode(each) for each in await watcher.lines()]
    assert line["type"] == "ERROR"


async def test_an_object_that_was_created_anew_is_deleted_and_added(cache: Cacher) -> None:
    watcher = a_watcher(cache, resourceVersion="5")
    other = a_change("one", 9)
    cache.receive(other._replace(object=msgspec.structs.replace(other.object, uid="another")), 9)
    assert [event[0] for event in await events_of(watcher)] == ["DELETED", "ADDED"]
