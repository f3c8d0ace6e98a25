"""Requests for Gardener's kinds: to a real API server with their CustomResourceDefinitions, and to a landscape's."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gardenbus.common.api.document import Document
from gardenbus.common.api.kinds import by_word
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.compared_requests import (
    APPLY,
    JSON_PATCH,
    NAMESPACE,
    STRATEGIC,
    TABLE,
    YAML,
    Compared,
    a_patch,
)
from tests.support.shared_files import required_shared

DIFFERENCES: Mapping[str, str] = {
    "an object of another kind is 400, as for Kubernetes' own kinds": r'POST .*"kind": "Other"',
    "an unknown field is 422 with its path where that is strict": r"fieldValidation=Strict",
    "what is below an object and is none of its subresources is not found as a path": r"GET \S+/one/nothing",
    "an object is put without a version, too": r'PUT \S+/one .*"name": "one", "labels"',
    "strategic patches are taken, as Gardener's API server takes them": r"PATCH .*strategic-merge",
    "a precondition that fails names the resource, not the kind": r"DELETE .*preconditions",
    "Shoots are admitted with warnings, and so is what nothing acts on": r"POST \S+/(shoots|exposureclasses)",
    "the deletion of Shoots and Projects is confirmed first": r"(DELETE|GET) \S+/(shoots|projects)",
    "a namespace belongs to one Project": r"POST \S+/projects",
}
"""Expressions that find the requests with another response than Kubernetes gives, by the reason; none is idle."""

_SCALARS: Mapping[str, Document] = {
    "string": {"type": "string"},
    "bytes": {"type": "string"},
    "duration": {"type": "string"},
    "time": {"type": "string", "format": "date-time"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "quantity": {"x-kubernetes-int-or-string": True},
    "int-or-string": {"x-kubernetes-int-or-string": True},
    "open": {"x-kubernetes-preserve-unknown-fields": True},
}


def needed() -> Sequence[Document]:
    """What objects refer to: only a landscape checks that it is there."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cloud", "namespace": NAMESPACE}}
    return (a_cloudprofile(), secret)


def objects() -> Sequence[Document]:
    """A valid object of each kind that is compared."""
    networks = {"nodes": "10.40.0.0/16", "pods": "10.41.0.0/16", "services": "10.42.0.0/16"}
    secret = {"name": "cloud", "namespace": NAMESPACE}
    scope = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project"}
    return (
        _named(a_shoot("one", NAMESPACE)),
        _named(a_project("one", f"garden-{NAMESPACE}")),
        _named(a_seed("one", spec={"networks": networks})),
        _named({"kind": "ExposureClass", "handler": "h"}),
        _named({"kind": "SecretBinding", "provider": {"type": "aws"}, "secretRef": secret}),
        _named({"kind": "Quota", "spec": {"scope": scope, "metrics": {"cpu": "2"}}}),
    )


def _named(document: Document) -> Document:
    metadata = {"name": "one", "labels": {"team": "orbit"}}
    return {"apiVersion": "core.gardener.cloud/v1beta1", **document, "metadata": metadata}


def has_status(document: Document) -> bool:
    """True for a kind with a status."""
    return "status" in _shape_of(document)


def _shape_of(document: Document) -> Document:
    shapes: Mapping[str, Document] = json.loads(required_shared("spec/fields.json").read_text())
    return shapes[f"{document['apiVersion']} {document['kind']}"]


def definition_of(document: Document) -> Document:
    """A CustomResourceDefinition of a kind, with the shape that Gardener gives its fields."""
    group, _, version = str(document["apiVersion"]).partition("/")
    kind = str(document["kind"])
    shape = _shape_of(document)
    schema = _schema({name: each for name, each in shape.items() if name not in ("apiVersion", "kind", "metadata")})
    spec = by_word(kind)
    assert spec is not None
    served: Document = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if "status" in shape:
        served["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{spec.plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced" if spec.namespaced else "Cluster",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": spec.plural, "singular": kind.lower()},
            "versions": [served],
        },
    }


def _schema(shape: Any) -> Document:
    if isinstance(shape, str):
        return dict(_SCALARS[shape])
    if isinstance(shape, list):
        return {"type": "array", "items": _schema(shape[0])}
    if set(shape) == {"*"}:
        return {"type": "object", "additionalProperties": _schema(shape["*"])}
    return {"type": "object", "properties": {name: _schema(each) for name, each in shape.items()}}


def path_of(document: Document) -> str:
    """Where the objects of its kind are."""
    spec = by_word(str(document["kind"]))
    assert spec is not None
    place = f"namespaces/{NAMESPACE}/" if spec.namespaced else ""
    return f"/apis/{document['apiVersion']}/{place}{spec.plural}"


def requests_for(document: Document) -> Iterator[Compared]:
    """The requests about a kind, one after the other, from its first object to its last."""
    path = path_of(document)
    yield from _creations(path, document)
    yield from _reads(path)
    yield from _updates(path, document)
    yield from _patches(path, document)
    if has_status(document):
        yield Compared("GET", f"{path}/one/status")
        yield a_patch(f"{path}/one/status", {"status": {"observedGeneration": 1}})
        yield a_patch(f"{path}/missing/status", {"status": {}})
    yield Compared("DELETE", f"{path}/missing")
    yield Compared("DELETE", f"{path}/one", {"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}})
    for name in ("one?dryRun=All", "one", "two"):
        yield Compared("DELETE", f"{path}/{name}")
    yield Compared("GET", path)


def _creations(path: str, document: Document) -> Iterator[Compared]:
    two, dry = ({**document, "metadata": {"name": name, "labels": {"team": "dev"}}} for name in ("two", "dry"))
    unknown = {**document, "metadata": {"name": "unknown"}, "unknown": 1}
    yield Compared("GET", path)
    yield Compared("GET", f"{path}/one")
    yield Compared("POST", path, document)
    yield Compared("POST", path, document)
    yield Compared("POST", path, json.dumps(two), YAML)
    yield Compared("POST", path, {**document, "metadata": {}})
    yield Compared("POST", path, {**document, "metadata": {"name": "Upper"}})
    yield Compared("POST", path, {**document, "kind": "Other"})
    yield Compared("POST", path, {**document, "apiVersion": "core.gardener.cloud/v9"})
    yield Compared("POST", f"{path}?dryRun=All", dry)
    yield Compared("POST", f"{path}?dryRun=Some", dry)
    yield Compared("POST", f"{path}?fieldValidation=Strict", unknown)
    yield Compared("POST", f"{path}?dryRun=All&fieldValidation=Warn", unknown)
    yield Compared("POST", f"{path}?dryRun=All&fieldValidation=Ignore", unknown)
    yield Compared("POST", f"{path}?fieldValidation=Maybe", unknown)
    yield Compared("POST", path, "{")


def _reads(path: str) -> Iterator[Compared]:
    for accept in ("", "application/yaml", TABLE):
        yield Compared("GET", f"{path}/one", accept=accept)
        yield Compared("GET", path, accept=accept)
    for query in ("labelSelector=team%3Dorbit", "labelSelector=team+in", "fieldSelector=metadata.name%3Dtwo"):
        yield Compared("GET", f"{path}?{query}")
    yield Compared("GET", f"{path}?limit=1")
    yield Compared("GET", f"{path}/missing")
    yield Compared("GET", f"{path}/one/nothing")


def _updates(path: str, document: Document) -> Iterator[Compared]:
    yield Compared("PUT", f"{path}/one", document)
    for name, version in (("two", ""), ("one", "1")):
        yield Compared("PUT", f"{path}/one", {**document, "metadata": {"name": name, "resourceVersion": version}})
    yield Compared("PUT", f"{path}/missing", {**document, "metadata": {"name": "missing", "resourceVersion": "1"}})


def _patches(path: str, document: Document) -> Iterator[Compared]:
    one, label = f"{path}/one", {"metadata": {"labels": {"tier": "a"}}}
    applied = {name: document[name] for name in ("apiVersion", "kind")}
    applied["metadata"] = {"name": "one", "labels": {"x": "y"}}
    yield a_patch(one, label)
    yield a_patch(one, label, STRATEGIC)
    yield a_patch(one, [{"op": "add", "path": "/metadata/labels/j", "value": "1"}], JSON_PATCH)
    yield a_patch(one, [{"op": "test", "path": "/metadata/labels/j", "value": "2"}], JSON_PATCH)
    yield a_patch(one, {"metadata": {"resourceVersion": "1"}})
    yield a_patch(one, "[")
    yield a_patch(one, label, "text/plain")
    yield a_patch(f"{path}/missing", label)
    yield a_patch(f"{one}?dryRun=All", label)
    yield a_patch(f"{one}?fieldManager=me&force=true", applied, APPLY)
    yield a_patch(one, applied, APPLY)


def reason_of(request: Compared) -> str:
    """The reason why the responses differ; "" where they are the same."""
    text = f"{request.method} {request.path} {request.content_type} {request.sent.decode() if request.sent else ''}"
    return next((reason for reason, pattern in DIFFERENCES.items() if re.search(pattern, text)), "")
