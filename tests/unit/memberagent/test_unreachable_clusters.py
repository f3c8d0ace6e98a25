"""The backend `kubernetes` when its cluster is away, slow, strict or forgetful: on an HTTP server that does so."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gardenbus.agent.kubernetes import connection
from gardenbus.agent.kubernetes.kubeconfig import Access
from gardenbus.common.api.configuration.member_agent import MemberBackendSettings
from gardenbus.common.errors import GardenbusError, Unavailable
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.memberagent.backend.kubernetes.cluster import KubernetesBackend, kubernetes_backend
from gardenbus.memberagent.backend.port import BackendContext
from tests.support.eventually import eventually
from tests.support.kube_api import an_api_server
from tests.support.member_agents import a_manifest

Document = dict[str, Any]
WORKS = "/apis/placement.kubernetes-fleet.io/v1beta1/appliedworks"


class ApiServer:
    """Enough of an API server for ConfigMaps and AppliedWorks, which fails as it is told."""

    def __init__(self) -> None:
        self.objects: dict[str, Document] = {}
        self.status: dict[str, tuple[int, str]] = {}
        """By `METHOD path`, or path: a status and message that are returned instead."""
        self.requests: list[str] = []
        self.watches: list[tuple[str, asyncio.Queue[Document | None]]] = []
        self.retry_after = "0.1"
        self._version = 10

    async def reply(self, request: web.Request) -> web.StreamResponse:
        path, method = request.path, request.method
        self.requests.append(f"{method} {path}")
        failure = self.status.get(f"{method} {path}") or self.status.get(path) or self.status.get("*")
        if failure is not None:
            body = {"kind": "Status", "code": failure[0], "message": failure[1]}
            return web.json_response(body, status=failure[0], headers={"Retry-After": self.retry_after})
        if "watch" in request.query:
            return await self.watch(request)
        if method == "PATCH":
            return web.json_response(self.put(path, json.loads(await request.read())))
        if method == "DELETE":
            return web.json_response(self.objects.pop(path, {}))
        return self.read(path)

    def read(self, path: str) -> web.Response:
        served = {
            "/api/v1": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}],
            "/apis/placement.kubernetes-fleet.io/v1beta1": [
                {"name": "appliedworks", "kind": "AppliedWork", "namespaced": False}
            ],
        }
        if path in served:
            return web.json_response({"resources": served[path]})
        if path == "/version":
            return web.json_response({"gitVersion": "v1.34.4"})
        if path in self.objects:
            return web.json_response(self.objects[path])
        if path.rpartition("/")[2] in ("nodes", "pods", "namespaces", "configmaps", "appliedworks"):
            items = [each for key, each in self.objects.items() if key.rpartition("/")[0] == path]
            return web.json_response({"items": items, "metadata": {"resourceVersion": str(self._version)}})
        return web.json_response({"message": "not found"}, status=404)

    def put(self, path: str, manifest: Document) -> Document:
        if path.endswith("/status"):
            path = path.removesuffix("/status")
            manifest = {**self.objects[path], "status": manifest["status"]}
        self._version += 1
        before = self.objects.get(path, {})
        uid = before.get("metadata", {}).get("uid") or f"uid-{self._version}"
        metadata = {**manifest["metadata"], "uid": uid, "resourceVersion": str(self._version)}
        self.objects[path] = {**before, **manifest, "metadata": metadata}
        return self.objects[path]

    async def watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        queue: asyncio.Queue[Document | None] = asyncio.Queue()
        self.watches.append((request.path, queue))
        while (event := await queue.get()) is not None:
            await response.write(json.dumps(event).encode() + b"\n")
        return response

    def end_watches(self) -> None:
        for _, queue in self.watches:
            queue.put_nowait(None)
        self.watches.clear()


class Lisbon:
    """A backend on such a server."""

    def __init__(self, api: ApiServer, backend: KubernetesBackend, changed: list[str]) -> None:
        self.api = api
        self.backend = backend
        self.changed = changed

    async def until_problem(self, words: str | None) -> None:
        async def found() -> None:
            problem = self.backend.facts().problem
            assert (problem is None) if words is None else (problem is not None and words in problem), problem

        await eventually(found, every=0.02)


@pytest.fixture
async def lisbon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Lisbon]:
    api = ApiServer()
    async with an_api_server(api.reply) as url, a_backend(tmp_path, url, monkeypatch, api) as found:
        yield found
        api.end_watches()


@asynccontextmanager
async def a_backend(
    directory: Path, url: str, monkeypatch: pytest.MonkeyPatch, api: ApiServer
) -> AsyncGenerator[Lisbon]:
    """Kubeconfigs only name https: here the server's address comes in their place."""
    access = Access(url, ssl.create_default_context())

    def read(_file: Path) -> Access:
        return access

    monkeypatch.setattr(connection, "read_kubeconfig", read)
    monkeypatch.setattr("gardenbus.memberagent.backend.kubernetes.cluster.REFRESH_SECONDS", 0.1)
    changed: list[str] = []
    settings = MemberBackendSettings(type="kubernetes", timeout_seconds=0.5)
    backend = kubernetes_backend(BackendContext("lisbon", directory, settings, SystemClock(), changed.append))
    await backend.start()
    running = asyncio.create_task(backend.run())
    try:
        yield Lisbon(api, backend, changed)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await backend.stop()


async def test_nothing_is_known_of_a_cluster_that_was_never_reached(tmp_path: Path) -> None:
    context = BackendContext("lisbon", tmp_path, MemberBackendSettings(type="kubernetes"), SystemClock())
    backend = kubernetes_backend(context)
    await backend.start()
    running = asyncio.create_task(backend.run())

    async def named() -> None:
        problem = backend.facts().problem or ""
        assert problem.startswith("KubeconfigInvalid: ")
        assert "kubeconfig cannot be read: No such file" in problem

    await eventually(named, every=0.02)
    for call in (backend.apply("w", [a_manifest()]), backend.compare("w", []), backend.remove("w")):
        with pytest.raises(Unavailable, match="not read yet"):
            await call
    with pytest.raises(Unavailable):
        backend.works()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await backend.stop()


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ((401, "Unauthorized"), "Unauthorized: "),
        ((403, "nodes is forbidden"), "Forbidden: "),
        ((429, "too many"), "TooManyRequests: "),
        ((503, "starting"), "ServiceUnavailable: "),
    ],
)
async def test_a_cluster_that_refuses_says_so_and_is_back_when_it_no_longer_does(
    lisbon: Lisbon, status: tuple[int, str], problem: str
) -> None:
    await lisbon.until_problem(None)
    lisbon.api.status["*"] = status
    await lisbon.until_problem(problem)
    assert status[1] in (lisbon.backend.facts().problem or "")
    lisbon.api.status.clear()
    await lisbon.until_problem(None)


async def test_a_round_that_is_cut_off_lists_what_it_may_have_made(lisbon: Lisbon) -> None:
    await lisbon.until_problem(None)
    manifests = [a_manifest(name=f"motd-{number}") for number in range(4)]
    lisbon.api.status["PATCH /api/v1/namespaces/shop/configmaps/motd-3"] = (429, "later")
    with pytest.raises(GardenbusError, match="later"):
        await lisbon.backend.apply("w", manifests)
    listed = lisbon.api.objects[f"{WORKS}/w"]["status"]["appliedResources"]
    assert [each["name"] for each in listed] == [f"motd-{number}" for number in range(4)]
    lisbon.api.status.clear()
    assert all(each.applied for each in (await lisbon.backend.apply("w", manifests)).outcomes)
    assert await lisbon.backend.remove("w") is None
    assert [path for path in lisbon.api.objects if "configmaps" in path or "appliedworks/" in path] == []


async def test_an_object_that_is_refused_does_not_keep_the_others_back(lisbon: Lisbon) -> None:
    await lisbon.until_problem(None)
    path = "/api/v1/namespaces/shop/configmaps/motd-0"
    for code, reason in ((403, "Forbidden"), (500, "ServiceUnavailable"), (422, "Invalid")):
        lisbon.api.status[f"PATCH {path}"] = (code, "because")
        first, second = (await lisbon.backend.apply("w", [a_manifest(name=f"motd-{n}") for n in range(2)])).outcomes
        assert second.applied
        assert first.message.startswith(f"{reason}: ")
        assert "because" in first.message


async def test_watches_that_end_go_on_and_changes_by_others_reach_their_work(lisbon: Lisbon) -> None:
    await lisbon.until_problem(None)
    await lisbon.backend.apply("w", [a_manifest()])

    async def watched() -> asyncio.Queue[Document | None]:
        queues = [queue for path, queue in lisbon.api.watches if path == "/api/v1/configmaps"]
        assert len(queues) == 1
        return queues[0]

    await eventually(watched, every=0.02)
    lisbon.api.end_watches()
    queue = await eventually(watched, every=0.02)
    lisbon.changed.clear()
    live = lisbon.api.objects["/api/v1/namespaces/shop/configmaps/motd"]
    queue.put_nowait({"type": "MODIFIED", "object": live})
    queue.put_nowait(
        {"type": "MODIFIED", "object": {**live, "metadata": {**live["metadata"], "resourceVersion": "99"}}}
    )

    async def changed() -> None:
        assert lisbon.changed == ["w"]

    await eventually(changed, every=0.02)


async def test_a_slow_cluster_is_one_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(10)
        return web.json_response({})

    async with an_api_server(slow) as url, a_backend(tmp_path, url, monkeypatch, ApiServer()) as found:
        await found.until_problem("ClusterUnreachable: ")
