"""Watches: a response waits for what changes, and says from where the next one goes on."""

import asyncio
from typing import Any

import msgspec
import pytest

from gardenbus.apiserver.access.audit_log import AuditLog
from gardenbus.apiserver.access.authorizer import Authorizer
from gardenbus.apiserver.domain.query_bodies import read_body
from gardenbus.apiserver.requests.watches import Watches, watch_query
from gardenbus.common.api.budgets import DEFAULT_BUDGET, OverBudget
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.api.watches import MOST_CHANGES, WatchedKind, WatchedUpTo, WatchQuery, WatchResult
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.bus import Message
from tests.support.builders import a_shoot
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus
from tests.support.memory.store import MemoryStore

SUBJECTS = Subjects()
DEV = [{"kind": "shoot", "namespace": "garden-dev"}]


def query_of(body: Any) -> WatchQuery:
    return watch_query(read_body(encode(body), WatchQuery, "the body of watch"))


class Watched:
    def __init__(self) -> None:
        self.bus = MemoryBus(FakeClock())
        store = MemoryStore(FakeClock())
        authorizer = Authorizer(store, AuditLog(FakeClock()), is_enforced=False)
        self.watches = Watches(self.bus, SUBJECTS, authorizer)

    async def announce(self, document: Document, verb: str = "added", **headers: str) -> None:
        metadata = document["metadata"]
        key = ObjectKey(document["kind"].lower(), metadata["namespace"], metadata["name"])
        body = b"" if verb == "deleted" else encode(document)
        await self.bus.publish(
            Message(SUBJECTS.changed(key), body, {Header.VERB: verb, Header.VERSION: "7", **headers})
        )

    async def call_api(self, after: WatchedUpTo | None, scopes: Any = DEV, seconds: int = 5) -> WatchResult:
        body = {"scopes": scopes, "seconds": seconds} | ({"after": msgspec.to_builtins(after)} if after else {})
        return await self.watches.changes(query_of(body), "vera")


async def test_the_first_response_is_where_to_begin_and_the_next_has_what_came_since():
    watched = Watched()
    await watched.announce(a_shoot("before"))
    begin = (await watched.call_api(None)).position
    await watched.announce(a_shoot("apollo"))
    await watched.announce(a_shoot("zeus", "garden-prod"))
    result = await watched.call_api(begin)
    (change,) = result.changes
    assert (change.subject, change.verb, change.version) == ("changed.shoot.garden-dev.apollo", "added", "7")
    assert msgspec.json.decode(change.object)["metadata"]["name"] == "apollo"
    waiting = asyncio.create_task(watched.call_api(result.position))
    await watched.announce(a_shoot("apollo"), "deleted")
    (gone,) = (await waiting).changes
    assert (gone.verb, gone.object) == ("deleted", None)


async def test_what_is_too_large_to_be_announced_is_to_be_asked_for():
    watched = Watched()
    begin = (await watched.call_api(None)).position
    await watched.announce(a_shoot("huge"), **{Header.TOO_LARGE: "true"})
    assert (await watched.call_api(begin)).changes[0].is_too_large


async def test_many_changes_come_in_parts_of_which_none_is_missing():
    watched = Watched()
    position = (await watched.call_api(None)).position
    names = [f"s{number}" for number in range(MOST_CHANGES + 20)]
    for name in names:
        await watched.announce(a_shoot(name))
    found: list[str] = []
    while len(found) < len(names):
        result = await watched.call_api(position)
        position = result.position
        found += [each.subject.rpartition(".")[2] for each in result.changes]
    assert found == names


async def test_a_stream_that_is_another_one_has_to_be_listed_anew():
    watched = Watched()
    begin = (await watched.call_api(None)).position
    for other in (WatchedUpTo("1", begin.sequence), WatchedUpTo(begin.created, begin.sequence + 5)):
        result = await watched.call_api(other)
        assert result.is_restarted
        assert result.position == begin


async def test_one_user_has_so_many_watches_and_others_theirs():
    watched = Watched()
    begin = (await watched.call_api(None)).position
    waiting = [asyncio.create_task(watched.call_api(begin)) for _ in range(DEFAULT_BUDGET.watches)]
    await asyncio.sleep(0)
    try:
        with pytest.raises(OverBudget, match=r"'vera' has used up its budget of watches \(16\)"):
            await watched.call_api(begin)
    finally:
        await watched.announce(a_shoot())
        await asyncio.gather(*waiting)
    assert (await watched.call_api(begin)).changes


async def test_kinds_without_namespaces_are_watched_as_a_whole_and_no_filter_covers_another():
    query = query_of({"scopes": [{"kind": "sd", "namespace": "garden"}, {"kind": "Seed"}, {"kind": "shoots"}, *DEV]})
    assert set(query.scopes) == {WatchedKind("seed", ""), WatchedKind("shoot"), WatchedKind("shoot", "garden-dev")}
    watched = Watched()
    begin = (await watched.call_api(None)).position
    await watched.announce(a_shoot())
    scopes = [{"kind": "sd"}, {"kind": "shoots"}, *DEV]
    assert len((await watched.call_api(begin, scopes)).changes) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"scopes": []},
        {"scopes": [{"kind": "shoot"}] * 101},
        {"scopes": DEV, "seconds": 0},
        {"scopes": DEV, "seconds": 600},
        {"scopes": [*DEV, {"kind": "event", "namespace": "garden-dev"}]},
        {"scopes": [{"kind": "shoot", "namespace": "*"}]},
        {"scopes": "shoot"},
    ],
)
def test_what_no_watch_can_be_is_refused_with_the_field(body: Any):
    with pytest.raises(BadRequest, match=r"scopes|seconds"):
        query_of(body)
