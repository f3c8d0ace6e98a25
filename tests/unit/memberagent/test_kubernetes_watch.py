"""A collection is followed whatever becomes of its watches."""

import json
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.agent.kubernetes.watch import Changed, Listed, follow
from gardenbus.common.errors import Forbidden
from tests.support.clocks import FakeClock
from tests.support.eventually import HANG_SECONDS
from tests.support.kube_api import a_status, an_api_server

Line = dict[str, Any]


def an_object(name: str, version: int) -> Line:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def an_event(kind: str, name: str, version: int) -> Line:
    return {"type": kind, "object": an_object(name, version)}


GONE: Line = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}
BOOKMARK: Line = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "40"}}}


class Served:
    """Lists and watches, one after the other; a watch is its lines, or the status that refuses it."""

    def __init__(self, watches: Sequence[Sequence[Line] | int | bytes]) -> None:
        self.watches = list(watches)
        self.versions: list[str] = []
        self.lists = 0

    async def response(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            self.lists += 1
            return web.json_response({"items": [an_object("a", 1)], "metadata": {"resourceVersion": f"{self.lists}0"}})
        self.versions.append(request.query["resourceVersion"])
        watch = self.watches.pop(0)
        if isinstance(watch, int):
            return web.json_response({"message": "no"}, status=watch)
        content = watch if isinstance(watch, bytes) else b"".join(json.dumps(each).encode() + b"\n" for each in watch)
        return web.Response(body=content)


async def first(number: int, served: Served) -> list[Listed | Changed]:
    found: list[Listed | Changed] = []
    async with an_api_server(served.response) as url, aiohttp.ClientSession() as session:
        client = KubernetesClient(session, url, ssl.create_default_context(), timeout_seconds=HANG_SECONDS)
        following: AsyncGenerator[Listed | Changed] = follow(client, "/api/v1/things", FakeClock())
        async with aclosing(following):
            async for each in following:
                found.append(each)
                if len(found) == number:
                    break
    return found


async def test_a_watch_goes_on_where_the_last_one_ended_with_bookmarks() -> None:
    served = Served([[an_event("ADDED", "b", 11), BOOKMARK], [an_event("DELETED", "b", 41)]])
    listed, added, deleted = await first(3, served)
    assert listed == Listed([an_object("a", 1)])
    assert added == Changed("ADDED", an_object("b", 11))
    assert deleted == Changed("DELETED", an_object("b", 41))
    assert served.versions == ["10", "40"]
    assert served.lists == 1


@pytest.mark.parametrize("gone", [410, [GONE]])
async def test_a_version_that_is_too_old_leads_to_a_new_list(gone: int | list[Line]) -> None:
    served = Served([gone, [an_event("ADDED", "b", 21)]])
    assert [type(each) for each in await first(3, served)] == [Listed, Listed, Changed]
    assert served.versions == ["10", "20"]


@pytest.mark.parametrize("lost", [500, 503, 429, b'{"type": "ADDED", "object": {}', b"<html>\n"])
async def test_a_watch_that_is_lost_goes_on_from_where_it_was(lost: int | bytes) -> None:
    served = Served([[an_event("ADDED", "b", 11)], lost, [an_event("MODIFIED", "b", 12)]])
    assert [type(each) for each in await first(3, served)] == [Listed, Changed, Changed]
    assert served.versions == ["10", "11", "11"]


async def test_an_object_of_a_megabyte_comes_through() -> None:
    large = {"type": "ADDED", "object": {**an_object("b", 11), "data": "x" * 1_000_000}}
    _, changed = await first(2, Served([[large]]))
    assert isinstance(changed, Changed)
    assert len(changed.object["data"]) == 1_000_000


async def test_what_no_repetition_changes_ends_it() -> None:
    async with an_api_server(a_status(403)) as url, aiohttp.ClientSession() as session:
        client = KubernetesClient(session, url, ssl.create_default_context())
        with pytest.raises(Forbidden):
            await anext(follow(client, "/api/v1/things", FakeClock()))
