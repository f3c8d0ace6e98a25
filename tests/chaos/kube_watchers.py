"""Clients of the Kubernetes API under faults: each lists shoots at one replica and watches them at the other."""

import asyncio
import itertools
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp

from gardenbus.embedded.ports import LOOPBACK
from tests.chaos import manifests
from tests.chaos.invariants import Violation
from tests.chaos.landscape import ChaosLandscape
from tests.support.http_watching import HttpWatcher

SHOOTS = f"/apis/core.gardener.cloud/v1beta1/namespaces/{manifests.NAMESPACE}/shoots"
OPERATOR = {"Authorization": 'Bearer {"user":"operator","password":"any"}'}
MOST_STATES = 20_000
"""States that are kept to compare them: those of the last versions."""


class KubeWatchers:
    """Follow the shoots from the start to the end of a landscape's life."""

    def __init__(self, landscape: ChaosLandscape) -> None:
        self._landscape = landscape
        self._watchers: list[HttpWatcher] = []
        self._running: list[asyncio.Task[None]] = []
        self._states: dict[tuple[str, str], int] = {}
        self._session: aiohttp.ClientSession | None = None

    def take_received(self) -> int:
        """Events that have come since the last call."""
        received = sum(each.received for each in self._watchers)
        for watcher in self._watchers:
            watcher.received = 0
        return received

    def start(self) -> None:
        """Begin to follow."""
        self._session = aiohttp.ClientSession()
        options = {"ssl": ssl.create_default_context(cafile=str(self._landscape.kube_ca)), "headers": OPERATOR}
        urls = [f"https://{LOOPBACK}:{port}{SHOOTS}" for port in self._landscape.kube_ports]
        for listed_at, watched_at in itertools.permutations(urls, 2):
            self._watchers.append(HttpWatcher(self._session, listed_at, options, watched_at=watched_at))
            self._running.append(asyncio.create_task(self._watchers[-1].run(), name="watcher"))

    async def stop(self) -> None:
        """Follow no more."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    def breaches(self) -> list[Violation]:
        """What should not have been sent: versions that go back or come twice, and one version with two states."""
        found: list[Violation] = []
        for number, (watcher, task) in enumerate(zip(self._watchers, self._running, strict=True), 1):
            found += [Violation("backwards", f"watcher {number}: {text}") for text in watcher.out_of_order]
            watcher.out_of_order.clear()
            if task.done():
                found.append(Violation("refused", f"watcher {number}: {task.exception()!r}"))
        for watcher in self._watchers:
            for version, state in watcher.states.items():
                if self._states.setdefault(version, state) != state:
                    found.append(Violation("backwards", f"{' '.join(version)} was sent in two states"))
            watcher.states.clear()
        while len(self._states) > MOST_STATES:
            del self._states[next(iter(self._states))]
        return found

    def behind(self, shoots: Mapping[str, Mapping[str, Any]]) -> Sequence[Violation]:
        """Shoots that a watcher has in another version than the store, has not, or has though they are gone."""
        wanted = {name: shoot["metadata"]["resourceVersion"] for name, shoot in shoots.items()}
        return [
            Violation("lost", f"watcher {number} has {name} at {watcher.versions.get(name)}, not {wanted.get(name)}")
            for number, watcher in enumerate(self._watchers, 1)
            for name in sorted({*wanted, *watcher.versions})
            if wanted.get(name) != watcher.versions.get(name)
        ]
