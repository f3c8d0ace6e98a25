"""A Kubernetes API in memory, for what is decided of its objects: collections, versions, watches, finalizers, patches.

It validates nothing but what a test rejects (`rejections`), and runs no controllers. Suites that need a real one are in
`tests/kube`.
"""

import asyncio
import copy
import json
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple, cast

from aiohttp import web

from tests.support.kube_api import an_api_server

Document = dict[str, Any]

_CORE = {
    "Namespace": ("namespaces", False),
    "ConfigMap": ("configmaps", True),
    "Secret": ("secrets", True),
    "Service": ("services", True),
    "ServiceAccount": ("serviceaccounts", True),
    "Pod": ("pods", True),
    "PersistentVolumeClaim": ("persistentvolumeclaims", True),
}
KINDS: dict[str, dict[str, tuple[str, bool]]] = {
    "v1": _CORE,
    "apps/v1": {
        "Deployment": ("deployments", True),
        "StatefulSet": ("statefulsets", True),
        "DaemonSet": ("daemonsets", True),
    },
    "batch/v1": {"Job": ("jobs", True), "CronJob": ("cronjobs", True)},
    "autoscaling/v1": {"HorizontalPodAutoscaler": ("horizontalpodautoscalers", True)},
    "apiextensions.k8s.io/v1": {"CustomResourceDefinition": ("customresourcedefinitions", False)},
    "resources.gardener.cloud/v1alpha1": {"ManagedResource": ("managedresources", True)},
    "extensions.gardener.cloud/v1alpha1": {
        "Cluster": ("clusters", False),
        "Infrastructure": ("infrastructures", True),
        "Network": ("networks", True),
    },
    "rbac.authorization.k8s.io/v1": {"ClusterRole": ("clusterroles", False)},
}

Rejection = Callable[[str, Document], str | None]
"""Why a write (`POST`, `PUT`) of an object is invalid; None when it is not."""


class Request(NamedTuple):
    """A request that was received."""

    method: str
    path: str


class _Place(NamedTuple):
    api_version: str
    plural: str
    namespace: str
    name: str
    subresource: str


_Watch = tuple[_Place, str, "asyncio.Queue[Document | None]"]
"""A watch's place, its label selector, and its events."""


class StubKubernetes:
    """The objects of one API, by kind, namespace and name."""

    def __init__(self) -> None:
        self.url = ""
        self.objects: dict[tuple[str, str, str, str], Document] = {}
        self.requests: list[Request] = []
        self.rejections: list[Rejection] = []
        self.is_away = False
        self.rejects_tokens = False
        self._version = 100
        self._watches: list[_Watch] = []
        self._history: list[tuple[int, str, _Place, Document]] = []
        self._held: list[tuple[str, _Place, Document]] | None = None

    # ------------------------------------------------------------------------------------------ of tests

    def get(self, kind: str, namespace: str, name: str) -> Document | None:
        """An object as it is."""
        found = next(
            (each for key, each in self.objects.items() if key[1:] == (self._plural(kind), namespace, name)), None
        )
        return copy.deepcopy(found)

    def put(self, manifest: Document) -> Document:
        """Create or replace an object, by hand."""
        api_version, kind = str(manifest["apiVersion"]), str(manifest["kind"])
        plural, namespaced = KINDS[api_version][kind]
        metadata = manifest.get("metadata", {})
        namespace = str(metadata.get("namespace", "")) if namespaced else ""
        place = _Place(api_version, plural, namespace, str(metadata["name"]), "")
        return self._store(place, manifest)

    def change(self, kind: str, namespace: str, name: str, patch: Document) -> Document:
        """Patch an object, by hand."""
        key = next(key for key in self.objects if key[1:] == (self._plural(kind), namespace, name))
        return self._store(_Place(*key, ""), cast("Document", _patched(self.objects[key], patch)))

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object, by hand."""
        key = next(key for key in self.objects if key[1:] == (self._plural(kind), namespace, name))
        self._delete(_Place(*key, ""))

    def writes(self, start: int = 0) -> list[Request]:
        """Requests that were no reads, from a position on."""
        return [each for each in self.requests[start:] if each.method != "GET"]

    @contextmanager
    def late_events(self) -> Generator[None]:
        """Hold all events of watches until the end of the context."""
        self._held = []
        try:
            yield
        finally:
            held, self._held = self._held, None
            for kind, place, live in held:
                self._publish(kind, place, live)

    def _plural(self, kind: str) -> str:
        return next(kinds[kind][0] for kinds in KINDS.values() if kind in kinds)

    # ------------------------------------------------------------------------------------------ HTTP

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Respond to one request."""
        if self.is_away:
            return _status(503, "ServiceUnavailable", "away")
        path = request.path
        self.requests.append(Request(request.method, path))
        if "watch" in request.query:
            return await self._watch(request)
        body: Document = await request.json() if request.can_read_body else {}
        if path.endswith("/tokenreviews"):
            return web.json_response({**body, "status": {"authenticated": not self.rejects_tokens}})
        place = self._place(path)
        if place is None:
            return self._discovery(path)
        if place.subresource == "token":
            status = {"token": f"token-{self._next()}", "expirationTimestamp": "2030-01-01T00:00:00Z"}
            return web.json_response({**body, "status": status}, status=201)
        handle = {"GET": self._read, "POST": self._create, "PUT": self._replace, "PATCH": self._patch}.get(
            request.method
        )
        return handle(request, place, body) if handle is not None else self._on_delete(request, place, body)

    def _discovery(self, path: str) -> web.Response:
        kinds = KINDS.get(path.removeprefix("/apis/").removeprefix("/api/"))
        if kinds is None:
            return _status(404, "NotFound", "the server could not find the requested resource")
        resources = [{"kind": kind, "name": plural, "namespaced": spaced} for kind, (plural, spaced) in kinds.items()]
        return web.json_response({"resources": resources})

    def _place(self, path: str) -> _Place | None:
        parts = path.strip("/").split("/")
        api_version = parts[1] if parts[0] == "api" else "/".join(parts[1:3])
        rest = parts[2 if parts[0] == "api" else 3 :]
        if not rest or api_version not in KINDS:
            return None
        plurals = {plural for plural, _ in KINDS[api_version].values()}
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] in plurals:
            namespace, rest = rest[1], rest[2:]
        if rest[0] not in plurals:
            return None
        return _Place(api_version, rest[0], namespace, *([*rest[1:3], "", ""][:2]))

    def _read(self, request: web.Request, place: _Place, _body: Document) -> web.Response:
        if place.name:
            found = self.objects.get(place[:4])
            return _missing(place) if found is None else web.json_response(found)
        listed = [each for key, each in self.objects.items() if _is_in(key, place) and _is_selected(each, request)]
        return web.json_response({"metadata": {"resourceVersion": str(self._version)}, "items": listed})

    def _create(self, _request: web.Request, place: _Place, body: Document) -> web.Response:
        place = place._replace(name=str(body["metadata"]["name"]))
        if place[:4] in self.objects:
            return _status(409, "AlreadyExists", f'{place.plural} "{place.name}" already exists')
        if problem := self._rejection("POST", body):
            return _status(422, "Invalid", problem)
        return web.json_response(self._store(place, body), status=201)

    def _replace(self, _request: web.Request, place: _Place, body: Document) -> web.Response:
        found = self.objects.get(place[:4])
        if found is None:
            return _missing(place)
        version = body.get("metadata", {}).get("resourceVersion")
        if version and version != found["metadata"]["resourceVersion"]:
            return _status(409, "Conflict", "the object has been modified")
        if problem := self._rejection("PUT", body):
            return _status(422, "Invalid", problem)
        return web.json_response(self._store(place, body))

    def _patch(self, request: web.Request, place: _Place, body: Document) -> web.Response:
        found = self.objects.get(place[:4])
        if found is None:
            if "apply-patch" not in request.content_type:
                return _missing(place)
            return web.json_response(self._store(place, body))
        version = body.get("metadata", {}).get("resourceVersion")
        if version and version != found["metadata"]["resourceVersion"]:
            return _status(409, "Conflict", "the object has been modified")
        patch = {"status": body.get("status")} if place.subresource == "status" else body
        return web.json_response(self._store(place, cast("Document", _patched(found, patch))))

    def _on_delete(self, request: web.Request, place: _Place, body: Document) -> web.Response:
        if not place.name:
            for key in [each for each in self.objects if _is_in(each, place)]:
                if _is_selected(self.objects[key], request):
                    self._delete(_Place(*key, ""))
            return web.json_response({})
        found = self.objects.get(place[:4])
        if found is None:
            return _missing(place)
        uid = body.get("preconditions", {}).get("uid")
        if uid and uid != found["metadata"]["uid"]:
            return _status(409, "Conflict", "the UID in the precondition does not match")
        self._delete(place)
        return web.json_response({})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        place = self._place(request.path)
        assert place is not None, request.path
        queue: asyncio.Queue[Document | None] = asyncio.Queue()
        watch = (place, str(request.query.get("labelSelector", "")), queue)
        self._watches.append(watch)
        for version, kind, changed, live in self._history:
            if version > int(request.query.get("resourceVersion", "0")):
                self._send(watch, kind, changed, live)
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while (event := await queue.get()) is not None:
                await response.write(json.dumps(event).encode() + b"\n")
        finally:
            self._watches.remove(watch)
        return response

    def end_watches(self) -> None:
        """End all watches, as a server that restarts."""
        for _, _, queue in self._watches:
            queue.put_nowait(None)

    # ------------------------------------------------------------------------------------------ objects

    def _rejection(self, method: str, body: Document) -> str | None:
        return next((problem for each in self.rejections if (problem := each(method, body))), None)

    def _store(self, place: _Place, body: Document) -> Document:
        before = self.objects.get(place[:4])
        stored = copy.deepcopy(body)
        kind = next(kind for kind, (plural, _) in KINDS[place.api_version].items() if plural == place.plural)
        stored |= {"apiVersion": place.api_version, "kind": kind}
        metadata = stored.setdefault("metadata", {})
        old: Document = before["metadata"] if before is not None else {}
        metadata["name"] = place.name
        if place.namespace:
            metadata["namespace"] = place.namespace
        metadata.setdefault("creationTimestamp", old.get("creationTimestamp", "2026-01-01T00:00:00Z"))
        metadata["uid"] = old.get("uid", f"uid-{self._next()}")
        has_changed = before is None or before.get("spec") != stored.get("spec")
        metadata["generation"] = old.get("generation", 0) + (1 if has_changed else 0)
        metadata["resourceVersion"] = old.get("resourceVersion", "0")
        if before == stored:
            return copy.deepcopy(stored)
        metadata["resourceVersion"] = str(self._next())
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self.objects.pop(place[:4], None)
            self._emit("DELETED", place, stored)
            return stored
        self.objects[place[:4]] = stored
        self._emit("ADDED" if before is None else "MODIFIED", place, stored)
        return copy.deepcopy(stored)

    def _delete(self, place: _Place) -> None:
        found = copy.deepcopy(self.objects[place[:4]])
        if found["metadata"].get("finalizers"):
            found["metadata"].setdefault("deletionTimestamp", "2026-01-01T00:00:00Z")
            self._store(place, found)
            return
        del self.objects[place[:4]]
        found["metadata"]["resourceVersion"] = str(self._next())
        self._emit("DELETED", place, found)

    def _emit(self, kind: str, place: _Place, live: Document) -> None:
        self._history.append((self._version, kind, place, live))
        if self._held is not None:
            self._held.append((kind, place, live))
        else:
            self._publish(kind, place, live)

    def _publish(self, kind: str, place: _Place, live: Document) -> None:
        for watch in self._watches:
            self._send(watch, kind, place, live)

    def _send(self, watch: _Watch, kind: str, place: _Place, live: Document) -> None:
        watched, selector, queue = watch
        if _is_in(place[:4], watched) and _has_labels(live, selector):
            queue.put_nowait({"type": kind, "object": copy.deepcopy(live)})

    def _next(self) -> int:
        self._version += 1
        return self._version


def _patched(value: Any, patch: Any) -> Any:
    """A value after a JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(cast("Document", value)) if isinstance(value, dict) else {}
    for name, change in cast("Document", patch).items():
        if change is None:
            result.pop(name, None)
        else:
            result[name] = _patched(result.get(name), change)
    return result


def _is_in(key: tuple[str, str, str, str], place: _Place) -> bool:
    return key[:2] == place[:2] and place.namespace in ("", key[2])


def _is_selected(live: Document, request: web.Request) -> bool:
    return _has_labels(live, str(request.query.get("labelSelector", "")))


def _has_labels(live: Document, selector: str) -> bool:
    wanted = dict(each.split("=") for each in selector.split(",")) if selector else {}
    return wanted.items() <= live.get("metadata", {}).get("labels", {}).items()


def _status(code: int, reason: str, message: str) -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "reason": reason, "message": message}, status=code)


def _missing(place: _Place) -> web.Response:
    return _status(404, "NotFound", f'{place.plural} "{place.name}" not found')


@asynccontextmanager
async def a_stub_kubernetes() -> AsyncGenerator[StubKubernetes]:
    """A stub that is served on the loopback."""
    stub = StubKubernetes()
    async with an_api_server(stub.handle) as url:
        stub.url = url
        try:
            yield stub
        finally:
            stub.end_watches()
