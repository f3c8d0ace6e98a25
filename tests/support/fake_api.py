"""A landscape that answers the command line: `garden.api.>` as a bus in memory, with gardenlets that migrate."""

import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from gardenbus.cli.client.api import ApiClient
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import Header, Subjects
from gardenbus.common.api.list_selectors import list_predicate
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Bus
from tests.support.builders import merged

Key = tuple[str, str, str]


class FakeApi:
    """Only `request`. A shoot that was bound is restored on its target after `reads_until_restored` reads.

    `stuck` are shoots whose migrations never end, `failing` those whose restoration fails; `outages` requests find no
    responders. `requests` are those received, `most_moving` is the highest number of shoots that moved at a time.
    """

    def __init__(self, *documents: Document, reads_until_restored: int = 2) -> None:
        self.objects: dict[Key, Document] = {}
        self.reads_until_restored = reads_until_restored
        self.stuck: set[str] = set()
        self.failing: set[str] = set()
        self.outages = 0
        self.most_requests = 1_000_000
        """Requests after which nobody answers any more."""
        self.forbidden: set[str] = set()
        """Tails of requests that are refused."""
        self.rejections: dict[str, tuple[int, str]] = {}
        self.on_bind: Callable[[Document], None] = lambda _: None
        self.requests: list[tuple[str, Any]] = []
        self.warnings: list[str] = []
        self.admission: list[Document] = []
        """What an explained apply of one manifest tells of the plug-ins."""
        self.validations: dict[str, str] = {}
        """By verb: how the last request of it was to be validated."""
        self.most_moving = 0
        self._reads: Counter[str] = Counter()
        for document in documents:
            self.put(document)

    @property
    def api(self) -> ApiClient:
        return ApiClient(cast("Bus", self), Subjects())

    @asynccontextmanager
    async def connected(self, *_: object) -> AsyncGenerator[ApiClient]:
        """In the place of `gardenbus.cli.client.api.connected`."""
        yield self.api

    def put(self, document: Document) -> None:
        metadata = document["metadata"]
        key = (document["kind"].lower(), metadata.get("namespace") or "_", metadata["name"])
        before = self.objects.get(key)
        version = str(int(before["metadata"]["resourceVersion"]) + 1 if before else 1)
        self.objects[key] = merged(document, {"metadata": {"resourceVersion": version}})

    def seed_of(self, name: str, namespace: str = "garden-dev") -> tuple[str, str]:
        shoot = self.objects["shoot", namespace, name]
        return shoot["spec"].get("seedName", ""), section(shoot, "status").get("seedName", "")

    def questions(self, verb: str) -> list[Any]:
        return [body for tail, body in self.requests if tail.split(".")[0] == verb]

    async def request(
        self, subject: str, body: bytes, *, timeout_seconds: float, headers: Mapping[str, str] | None = None
    ) -> bytes:
        if self.outages or len(self.requests) >= self.most_requests:
            self.outages = max(self.outages - 1, 0)
            raise Unavailable("nobody answers")
        tail = subject.removeprefix("garden.api.")
        value: Any = json.loads(body) if body else None
        self.requests.append((tail, value))
        verb, _, rest = tail.partition(".")
        given = headers or {}
        self.validations[verb] = given.get(Header.VALIDATE, "strict")
        if given.get(Header.CONDITION) and not self._holds(given[Header.CONDITION]):
            return json.dumps(error_response(409, "Conflict", "the condition does not hold")).encode()
        if tail in self.forbidden:
            return json.dumps(error_response(403, "Forbidden", "it is not for this user")).encode()
        before = dict(self.objects)
        response: Mapping[str, Any] = getattr(self, f"_{verb}")(rest, value)
        if given.get(Header.DRY_RUN) in ("true", "explain"):
            self.objects = before
        if given.get(Header.DRY_RUN) == "explain":
            response = {**response, "admission": self.admission}
        return json.dumps(response).encode()

    def _holds(self, condition: str) -> bool:
        tail, _, version = condition.rpartition("=")
        kind, namespace, name = tail.split(".", 2)
        document = self.objects.get((kind, namespace, name))
        return version == (document["metadata"]["resourceVersion"] if document else "0")

    def _apply(self, _tail: str, manifests: Any) -> Mapping[str, Any]:
        """Merges; a name that is no name is refused."""
        return _collected([self._applied(each) for each in manifests.get("items", [manifests])])

    def _applied(self, document: Document) -> Mapping[str, Any]:
        metadata = document["metadata"]
        key = (document["kind"].lower(), metadata.get("namespace") or "_", metadata["name"])
        if not metadata["name"].isalnum():
            return error_response(422, "Invalid", "metadata.name: is no name")
        before = self.objects.get(key)
        self.put(merged(before or {}, document))
        outcome = "configured" if before else "created"
        return {"ok": True, "result": self.objects[key], "outcome": outcome, "warnings": self.warnings}

    def _delete(self, _tail: str, references: Any) -> Mapping[str, Any]:
        """Deletes at once what no finalizer keeps; Shoots need a confirmation."""
        return _collected([self._deleted(each) for each in references.get("items", [references])])

    def _deleted(self, reference: Any) -> Mapping[str, Any]:
        metadata = reference.get("metadata", reference)
        key = (reference["kind"].lower(), metadata.get("namespace") or "_", metadata["name"])
        if key not in self.objects:
            return error_response(404, "NotFound", f"{key[0]} {key[2]} not found")
        if key[0] == "shoot" and not reference.get("confirm"):
            return error_response(403, "Forbidden", "confirmation.gardener.cloud/deletion is not set")
        if not self.objects[key]["metadata"].get("finalizers"):
            del self.objects[key]
        return {"ok": True, "result": {"deleted": True}, "outcome": "deleted"}

    def _get(self, tail: str, _: Any) -> Mapping[str, Any]:
        kind, namespace, name = tail.split(".", 2)
        document = self.objects.get((kind, namespace, name))
        if document is None:
            return error_response(404, "NotFound", f"{kind} {name} not found")
        if kind == "shoot" and document["spec"].get("seedName") != section(document, "status").get("seedName"):
            self._migrate(document)
        return {"ok": True, "result": self.objects[kind, namespace, name]}

    def _list(self, tail: str, query: Any) -> Mapping[str, Any]:
        kind, _, namespace = tail.partition(".")
        chooses = list_predicate(query or {})
        found = [
            document
            for key, document in sorted(self.objects.items())
            if key[0] == kind and namespace in ("", key[1]) and (chooses is None or chooses(document))
        ]
        requested: dict[str, Any] = query or {}
        begin, limit = int(requested.get("continue") or 0), int(requested.get("limit") or len(found))
        rest = {"continue": str(begin + limit)} if begin + limit < len(found) else {}
        return {"ok": True, "result": {"items": found[begin : begin + limit], "resourceVersion": "1", **rest}}

    def _names(self, tail: str, query: Any) -> Mapping[str, Any]:
        kind, _, namespace = tail.partition(".")
        keys = [key for key in self.objects if key[0] == kind and namespace in ("", key[1])]
        return {"ok": True, "result": {"names": sorted({key[2] for key in keys if key[2].startswith(query["prefix"])})}}

    def _usage(self, _tail: str, _: Any) -> Mapping[str, Any]:
        used: Counter[str] = Counter()
        for kind, namespace, name in self.objects:
            if kind == "shoot":
                used.update(set(self.seed_of(name, namespace)) - {""})
        return {"ok": True, "result": {"seeds": used}}

    def _explain(self, _tail: str, _: Any) -> Mapping[str, Any]:
        return {"ok": True, "result": {"considered": {"strategy": "SameRegion"}}}

    def _patch(self, tail: str, patch: Any) -> Mapping[str, Any]:
        kind, namespace, name = tail.split(".", 2)
        document = self.objects[kind, namespace, name]
        version = section(patch, "metadata").get("resourceVersion")
        if version not in (None, document["metadata"]["resourceVersion"]):
            return error_response(409, "Conflict", "it has changed")
        self.put(merged(document, patch))
        return {"ok": True, "result": self.objects[kind, namespace, name], "outcome": "configured"}

    def _scale(self, _tail: str, requests: Any) -> Mapping[str, Any]:
        found = self.objects["managedseedset", requests["namespace"], requests["name"]]
        if requests.get("resourceVersion") not in (None, found["metadata"]["resourceVersion"]):
            return error_response(409, "Conflict", "it has changed")
        self.put(merged(found, {"spec": {"replicas": requests["replicas"]}}))
        return {"ok": True, "result": {"replicas": requests["replicas"], "statusReplicas": 1, "selector": "a=b"}}

    def _bind(self, _tail: str, requests: Any) -> Mapping[str, Any]:
        shoot = self.objects["shoot", requests["namespace"], requests["name"]]
        self.on_bind(shoot)
        shoot = self.objects["shoot", requests["namespace"], requests["name"]]
        if requests.get("resourceVersion") not in (None, shoot["metadata"]["resourceVersion"]):
            return error_response(409, "Conflict", "it has changed")
        if requests["name"] in self.rejections:
            times, message = self.rejections[requests["name"]]
            if times:
                self.rejections[requests["name"]] = (times - 1, message)
                return error_response(403, "Forbidden", message)
        generation = shoot["metadata"].get("generation", 1) + 1
        self.put(merged(shoot, {"metadata": {"generation": generation}, "spec": {"seedName": requests["seed"]}}))
        self.most_moving = max(self.most_moving, self._moving())
        return {"ok": True, "result": self.objects["shoot", requests["namespace"], requests["name"]]}

    def _moving(self) -> int:
        seeds = (
            (document["spec"].get("seedName"), section(document, "status").get("seedName"))
            for key, document in self.objects.items()
            if key[0] == "shoot"
        )
        return sum(wanted != actual for wanted, actual in seeds)

    def _migrate(self, shoot: Document) -> None:
        name = shoot["metadata"]["name"]
        self._reads[name] += 1
        operation = {"type": "Migrate", "state": "Processing", "progress": 50}
        status: Document = {"lastOperation": operation}
        if name in self.failing:
            status = {"lastOperation": {"type": "Restore", "state": "Failed", "description": "no backup"}}
        elif name not in self.stuck and self._reads[name] > self.reads_until_restored:
            status = {
                "seedName": shoot["spec"]["seedName"],
                "observedGeneration": shoot["metadata"]["generation"],
                "lastOperation": {"type": "Restore", "state": "Succeeded", "progress": 100},
            }
            self._reads[name] = 0
        self.put(merged(shoot, {"status": status}))


def error_response(code: int, reason: str, message: str) -> Mapping[str, Any]:
    return {"ok": False, "error": {"code": code, "reason": reason, "message": message}}


def _collected(responses: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The response to one manifest, or to several."""
    if len(responses) == 1:
        return responses[0]
    if all(response["ok"] for response in responses):
        return {"ok": True, "result": [a["result"] for a in responses], "outcome": [a["outcome"] for a in responses]}
    return {"ok": False, "result": responses, "error": {"code": 422, "message": "not all"}}
