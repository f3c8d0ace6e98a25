"""Requests of several managers of fields, and what is compared of the responses."""

import json
import random
from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from tests.support.kube_apis import KubeApi

MANAGERS = ("flux", "helm", "kubectl")
WORDS = ("a", "b", "c")
NAMESPACE = "managed"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
CONTAINERS = ("f:data", "f:metadata", "f:labels", "f:finalizers")
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"


class Given(NamedTuple):
    """One request."""

    method: str
    path: str
    body: Document
    content_type: str = "application/json"


A_NAMESPACE = Given("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})


def drawn(chance: random.Random, name: str) -> Given:
    """An apply, an update or a merge patch of one of the managers."""
    manager = chance.choice(MANAGERS)
    path = f"{MAPS}/{name}?fieldManager={manager}"

    def some() -> dict[str, str]:
        return {word: chance.choice("12") for word in WORDS if chance.random() < 0.5}

    metadata: Document = {"name": name, "namespace": NAMESPACE}
    if labels := some():
        metadata["labels"] = labels
    if chance.random() < 0.2:
        metadata["finalizers"] = [f"example.org/{word}" for word in WORDS if chance.random() < 0.5] or ["example.org/a"]
    document: Document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    if chance.random() < 0.9:
        document["data"] = some() or {"a": "1"}
    kind = chance.choices(("apply", "force", "update", "patch"), (5, 2, 1, 2))[0]
    if kind == "update":
        return Given("PUT", path, document)
    if kind == "patch":
        patch = {word: value if chance.random() < 0.7 else None for word, value in some().items()}
        return Given("PATCH", path, {"data": patch}, MERGE)
    return Given("PATCH", path + ("&force=true" if kind == "force" else ""), document, APPLY)


def observed(code: int, body: Document) -> Document:
    """What both have to say in the same way."""
    if code >= 400:
        causes = sorted((each["message"], each.get("field", "")) for each in section(body, "details").get("causes", ()))
        return {
            "code": code,
            "reason": body.get("reason"),
            "causes": [[_timeless(text), field] for text, field in causes],
        }
    metadata = section(body, "metadata")
    owners: dict[str, Document] = {
        f"{each['manager']} {each['operation']}": _without_existence(each["fieldsV1"])
        for each in metadata.get("managedFields", ())
    }
    kept: Document = {"labels": metadata.get("labels"), "finalizers": sorted(metadata.get("finalizers", ()))}
    return {
        "code": code,
        "data": body.get("data") or None,
        **kept,
        "owners": {who: of for who, of in owners.items() if of},
    }


def _without_existence(fields: Document) -> Document:
    """Fields without mappings and sets themselves: that one is there at all is nobody's here."""
    kept = {name: _without_existence(below) for name, below in fields.items() if name != "."}
    return {name: left for name, left in kept.items() if left or name not in CONTAINERS}


def _timeless(text: str) -> str:
    return text.partition(" at ")[0]


async def sent_to(api: KubeApi, given: Given) -> tuple[int, Document]:
    """Code and body of the response of the landscape's API."""
    headers = {"Content-Type": given.content_type}
    async with api.request(given.method, given.path, data=json.dumps(given.body), headers=headers) as response:
        return response.status, await response.json()
