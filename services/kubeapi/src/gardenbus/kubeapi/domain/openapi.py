"""OpenAPI v3 documents of groups, made of the fields of their kinds."""

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.api.fields.kinds import kind_shape
from gardenbus.common.api.fields.shapes import FieldType, ListOf, MapOf, Shape
from gardenbus.kubeapi.domain.field_descriptions import METADATA, descriptions_of
from gardenbus.kubeapi.domain.resources import ApiResource, groups

_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
_STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"

_SCALARS: Mapping[str, Document] = {
    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "string": {"type": "string"},
    "integer": {"type": "integer", "format": "int64"},
    "number": {"type": "number", "format": "double"},
    "boolean": {"type": "boolean"},
    "time": {"type": "string", "format": "date-time"},
    "duration": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "int-or-string": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
}

PATCH_TYPES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")

_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_ACTIONS: Mapping[str, tuple[str, str]] = {
    "list": ("get", "list"),
    "create": ("post", "post"),
    "deletecollection": ("delete", "deletecollection"),
    "get": ("get", "get"),
    "update": ("put", "put"),
    "patch": ("patch", "patch"),
    "delete": ("delete", "delete"),
}
"""Method and `x-kubernetes-action` of each verb."""


@cache
def index() -> Document:
    """`/openapi/v3`: the documents, each under an address that changes with it."""
    paths = {
        name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={hashlib.sha256(document(name)).hexdigest().upper()}"}
        for name in names()
    }
    return {"paths": paths}


SECOND = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""Media type of OpenAPI v2 as clients request it; the response has it with `.v2.v1.0+`."""


@cache
def second() -> bytes:
    """`/openapi/v2`, which has no schemas: kubectl reads it for a manifest of `kind: List`, and leaves the rest to us.

    It is the message Document of gnostic's OpenAPIv2.proto, with `swagger` and `info`.
    """
    info = b"".join(_text_field(number, text) for number, text in enumerate(("Gardenbus", "v1", _SECOND_IS_EMPTY), 1))
    return _text_field(1, "2.0") + _bytes_field(2, info)


_SECOND_IS_EMPTY = "Schemas are in OpenAPI v3 alone: /openapi/v3"


def _text_field(number: int, text: str) -> bytes:
    return _bytes_field(number, text.encode())


def _bytes_field(number: int, content: bytes) -> bytes:
    """A field of protobuf with at most 127 bytes."""
    return bytes((number << 3 | 2, len(content))) + content


def names() -> Iterator[str]:
    """Names of the documents: `api/v1`, `apis/<group>/<version>`."""
    for group, versions in groups().items():
        for version in versions:
            yield f"apis/{group}/{version}" if group else f"api/{version}"


@cache
def document(name: str) -> bytes:
    """One document, as JSON. Raises KeyError where there is none."""
    *_, group, version = ("", *name.split("/")) if name.startswith("apis/") else ("", "", name.removeprefix("api/"))
    resources = groups()[group][version]
    schemas: dict[str, Document] = {_META: _object_meta(), _LIST_META: _LIST, _STATUS: _ANY, _OPTIONS: _ANY}
    paths: dict[str, Document] = {}
    for resource in resources:
        schemas |= _schemas(resource)
        paths |= _paths(resource, f"/{name}")
    found = {
        "openapi": "3.0.0",
        "info": {"title": "Gardenbus", "version": "v1"},
        "paths": paths,
        "components": {"schemas": schemas},
    }
    return msgspec.json.encode(found)


def _reference(name: str) -> Document:
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}], "default": {}}


_ANY: Document = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_LIST: Document = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("continue", "resourceVersion", "selfLink")},
}


def _object_meta() -> Document:
    shape = kind_shape("core.gardener.cloud/v1beta1", "Shoot")
    assert shape is not None
    metadata = shape.fields["metadata"]
    assert isinstance(metadata, Shape)
    found = _of_shape(metadata, METADATA, "")
    found["properties"]["managedFields"] = {"type": "array", "items": _ANY}
    return found


def _schema_name(resource: ApiResource) -> str:
    if not resource.group:
        return f"io.k8s.api.core.{resource.version}.{resource.kind}"
    reversed_group = ".".join(reversed(resource.group.split(".")))
    return f"{reversed_group}.{resource.version}.{resource.kind}"


def _schemas(resource: ApiResource) -> Mapping[str, Document]:
    """The schemas of a kind and of its list."""
    shape = kind_shape(resource.api_version, resource.kind)
    described = descriptions_of(resource.kind)
    own = dict(_ANY) if shape is None else _of_shape(shape, described, "")
    own["properties"] = {
        **own.get("properties", {}),
        "apiVersion": {"type": "string", "description": "Group and version of the object."},
        "kind": {"type": "string", "description": "Kind of the object."},
        "metadata": {**_reference(_META), "description": "Standard metadata of the object."},
    }
    if described.get(""):
        own["description"] = described[""]
    kinds = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    own["x-kubernetes-group-version-kind"] = [kinds]
    name = _schema_name(resource)
    listed: Document = {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": _reference(_LIST_META),
            "items": {"type": "array", "items": _reference(name)},
        },
        "x-kubernetes-group-version-kind": [{**kinds, "kind": f"{resource.kind}List"}],
    }
    return {name: own, f"{name}List": listed}


def _of_shape(shape: Shape, described: Mapping[str, str], prefix: str) -> Document:
    properties = {name: _of_type(kind, described, f"{prefix}{name}") for name, kind in shape.fields.items()}
    return {"type": "object", "properties": properties}


def _of_type(kind: FieldType, described: Mapping[str, str], path: str) -> Document:
    match kind:
        case Shape():
            found = _of_shape(kind, described, f"{path}.")
        case ListOf():
            found = {"type": "array", "items": _of_type(kind.entry, described, path)}
        case MapOf():
            found = {"type": "object", "additionalProperties": _of_type(kind.value, described, path)}
        case _:
            found = dict(_SCALARS[kind])
    return {**found, "description": described[path]} if path in described else found


def _paths(resource: ApiResource, prefix: str) -> Mapping[str, Document]:
    """The paths of a resource: its collection, one object, subresources."""
    place = f"{prefix}/namespaces/{{namespace}}" if resource.namespaced else prefix
    collection, one = f"{place}/{resource.plural}", f"{place}/{resource.plural}/{{name}}"
    found: dict[str, Document] = {collection: {}, one: {}}
    for verb in resource.verbs:
        if verb in _ACTIONS:
            path = collection if verb in ("list", "create", "deletecollection") else one
            method, action = _ACTIONS[verb]
            found[path][method] = _operation(resource, action)
    for part in resource.subresources:
        found[f"{one}/{part.name}"] = {
            _ACTIONS[verb][0]: _operation(resource, _ACTIONS[verb][1]) for verb in part.verbs
        }
    return {path: operations for path, operations in found.items() if operations}


def _operation(resource: ApiResource, action: str) -> Document:
    body = {"schema": {"$ref": f"#/components/schemas/{_schema_name(resource)}"}}
    found: dict[str, Any] = {
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {
            "group": resource.group,
            "version": resource.version,
            "kind": resource.kind,
        },
        "responses": {"200": {"description": "OK", "content": {"application/json": body}}},
    }
    if action in ("post", "put", "patch"):
        types = PATCH_TYPES if action == "patch" else ("application/json", "application/yaml")
        found["requestBody"] = {"content": dict.fromkeys(types, body), "required": True}
        wanted = (*_PARAMETERS, "force") if action == "patch" else _PARAMETERS
        found["parameters"] = [
            {"name": name, "in": "query", "schema": {"type": "boolean" if name == "force" else "string"}}
            for name in wanted
        ]
    return found
