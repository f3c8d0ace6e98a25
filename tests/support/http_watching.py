"""A client of the Kubernetes API that lists once and watches from there, through outages of whoever serves it."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp

from gardenbus.agent.kubernetes.kubeconfig import read_kubeconfig
from tests.support.landscape import Landscape

SHOOTS = "/apis/core.gardener.cloud/v1beta1/shoots"
AGAIN_SECONDS = 0.2
OK, GONE = 200, 410
AWAY = (429, 503, 504)
"""Codes after which a client comes again."""


class HttpWatcher:
    """Objects and their versions, as a client knows them; and what it should not have been sent.

    It lists at one replica and watches at the other where there are two URLs.
    """

    def __init__(
        self, session: aiohttp.ClientSession, url: str, options: dict[str, Any], *, watched_at: str = ""
    ) -> None:
        self._session = session
        self._url = url
        self._watched_at = watched_at or url
        self._options = options
        self._version = ""
        self._highest = 0
        self.versions: dict[str, str] = {}
        self.cuts = 0
        """How often the service was away, or went while it was listened to."""
        self.expirations = 0
        """How often a watch, or the version to begin one from, was Expired."""
        self.out_of_order: list[str] = []
        self.received = 0
        """Events, without bookmarks."""
        self.states: dict[tuple[str, str], int] = {}
        """State of each object at each version that was sent, by hash."""

    async def run(self) -> None:
        """Follow for ever."""
        while True:
            try:
                if not self._version:
                    await self._list()
                if self._version:
                    await self._watch()
            except (aiohttp.ClientError, OSError, TimeoutError):
                self.cuts += 1
            await asyncio.sleep(AGAIN_SECONDS)

    async def _list(self) -> None:
        async with self._session.get(self._url, **self._options) as response:
            if response.status != OK:
                await self._note_away(response)
                return
            listed = await response.json()
        self.versions = {_name(each): each["metadata"]["resourceVersion"] for each in listed["items"]}
        self._version = listed["metadata"]["resourceVersion"]
        if int(self._version) < self._highest:
            self.out_of_order.append(f"a list of {self._version} after {self._highest}")
        self._highest = max(self._highest, int(self._version))

    async def _watch(self) -> None:
        query = {"watch": "1", "resourceVersion": self._version, "allowWatchBookmarks": "true", "timeoutSeconds": "5"}
        async with self._session.get(self._watched_at, params=query, **self._options) as response:
            if response.status == GONE:
                self._expire()
            elif response.status != OK:
                await self._note_away(response)
            else:
                async for line in response.content:
                    self._receive(json.loads(line))

    async def _note_away(self, response: aiohttp.ClientResponse) -> None:
        assert response.status in AWAY, f"{response.status}: {await response.text()}"
        assert response.headers.get("Retry-After"), await response.text()
        self.cuts += 1

    def _expire(self) -> None:
        self._version = ""
        self.expirations += 1

    def _receive(self, event: dict[str, Any]) -> None:
        if event["type"] == "ERROR":
            assert event["object"]["code"] == GONE, event
            self._expire()
            return
        version = event["object"]["metadata"]["resourceVersion"]
        if event["type"] == "BOOKMARK":
            if int(version) < int(self._version):
                self.out_of_order.append(f"a bookmark of {version} after {self._version}")
        else:
            name = _name(event["object"])
            if int(version) <= int(self._version):
                self.out_of_order.append(f"{name}: {version} after {self._version}")
            self.received += 1
            self.versions[name] = version
            if event["type"] == "DELETED":
                del self.versions[name]
            else:
                self.states[name, version] = hash(json.dumps(event["object"], sort_keys=True))
        self._version = version
        self._highest = max(self._highest, int(version))


def _name(document: dict[str, Any]) -> str:
    return f"{document['metadata'].get('namespace', '')}/{document['metadata']['name']}"


@contextlib.asynccontextmanager
async def following(watcher: HttpWatcher) -> AsyncGenerator[HttpWatcher]:
    """A client that follows until the end of the block, at which it must not have failed."""
    running = asyncio.create_task(watcher.run(), name="watcher")
    try:
        yield watcher
        assert not running.done(), running.exception()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@contextlib.asynccontextmanager
async def an_http_watcher(landscape: Landscape, file: Path) -> AsyncGenerator[HttpWatcher]:
    """A client of the landscape's operator, until the end of the block."""
    done = await landscape.command("kubeconfig", "--landscape", "--file", str(file))
    assert done.code == 0, done.stderr
    access = read_kubeconfig(file)
    headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}
    async with aiohttp.ClientSession() as session:
        watcher = HttpWatcher(session, f"{access.server}{SHOOTS}", {"ssl": access.tls, "headers": headers})
        async with following(watcher):
            yield watcher
