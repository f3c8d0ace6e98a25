"""Servers that did not respond in time are not told to know of no master."""

from typing import Any

import pytest
from redis.asyncio.connection import Connection, ConnectionPool

from gardenbus.common.adapters.redis import master
from gardenbus.common.adapters.redis.addresses import ServerAddress
from gardenbus.common.errors import Unavailable

ONE, TWO, THREE = (ServerAddress("127.0.0.1", port) for port in (26379, 26380, 26381))


def silent_but(monkeypatch: pytest.MonkeyPatch, responses: dict[ServerAddress, Any]) -> None:
    async def query(_pool: object, address: ServerAddress, *_: object, **_options: object) -> Any:
        return responses.get(address)

    monkeypatch.setattr(master, "query", query)


def sentinels() -> Any:
    finder: Any = object.__new__(master.Sentinels)
    finder._sentinels, finder._service, finder._pool = (ONE, TWO, THREE), "garden", None
    return finder


@pytest.mark.parametrize(
    ("responses", "message"),
    [
        ({}, "no response within 0.7 s of the Sentinels 127.0.0.1:26379, 127.0.0.1:26380, 127.0.0.1:26381"),
        ({ONE: [None, None]}, "of the Sentinels 127.0.0.1:26380, 127.0.0.1:26381; the other 1 name no master"),
        ({ONE: [None], TWO: [None], THREE: [None]}, "no Sentinel of .* knows of a master 'garden'"),
    ],
)
async def test_sentinels_that_are_silent_are_named_as_silent(
    monkeypatch: pytest.MonkeyPatch, responses: dict[ServerAddress, Any], message: str
):
    silent_but(monkeypatch, responses)

    with pytest.raises(Unavailable, match=message):
        await sentinels().find()


async def test_listed_servers_that_are_silent_are_named_as_silent(monkeypatch: pytest.MonkeyPatch):
    servers = master.ListedServers((ONE, TWO), ConnectionPool(Connection), "garden:opening")
    silent_but(monkeypatch, {ONE: [[b"slave"], None]})
    with pytest.raises(Unavailable, match=r"no response within 0.7 s of the servers 127.0.0.1:26380; the other 1 name"):
        await servers.find()
    silent_but(monkeypatch, {ONE: [[b"slave"], None], TWO: [[b"slave"], None]})
    with pytest.raises(Unavailable, match=r"none of .* is a master"):
        await servers.find()
