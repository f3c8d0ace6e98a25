"""JSON Schemas (draft 2020-12) of the kinds and of the bodies on the bus, made of their structs.

They are as lenient as the views: members that nobody here reads are allowed, and null counts as absent. A schema is
complete in itself, with its parts below `$defs`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from gardenbus.common.api.fields.kinds import sent_shape
from gardenbus.common.api.fields.shapes import FieldType, ListOf, MapOf, Shape
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.fleet.overrides import ClusterOverride, NamespacedOverride, OverrideSnapshot
from gardenbus.common.api.fleet.placement_parts import (
    DisruptionBudget,
    Envelope,
    Eviction,
    PolicySnapshot,
    ResourceBinding,
    ResourceSnapshot,
)
from gardenbus.common.api.fleet.placements import Placement
from gardenbus.common.api.fleet.works import Work
from gardenbus.common.api.garden.cloudprofiles import CloudProfile, NamespacedCloudProfile, RegionConfigMap
from gardenbus.common.api.garden.projects import Project
from gardenbus.common.api.garden.seed_autoscalers import SeedAutoscaler
from gardenbus.common.api.garden.seeds import Seed
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.kinds import KINDS
from gardenbus.common.api.views import TypedView
from gardenbus.docs.channels import REFERENCES, RESPONSES, channels
from gardenbus.docs.messages import (
    Event,
    Lease,
    ManagedSeed,
    ManagedSeedSet,
    Manifest,
    ObjectList,
    ShootState,
    WireMetadata,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"
IDENTIFIER = "urn:gardenbus:schema:"

Schema = dict[str, Any]

_ANYTHING: Schema = {"title": "anything"}

FLEET_VIEWS: Mapping[str, type[TypedView]] = {
    "MemberCluster": MemberCluster,
    "ClusterResourcePlacement": Placement,
    "ResourcePlacement": Placement,
    "ClusterSchedulingPolicySnapshot": PolicySnapshot,
    "SchedulingPolicySnapshot": PolicySnapshot,
    "ClusterResourceSnapshot": ResourceSnapshot,
    "ResourceSnapshot": ResourceSnapshot,
    "ClusterResourceBinding": ResourceBinding,
    "ResourceBinding": ResourceBinding,
    "Work": Work,
    "ClusterResourceEnvelope": Envelope,
    "ResourceEnvelope": Envelope,
    "ClusterResourceOverride": ClusterOverride,
    "ResourceOverride": NamespacedOverride,
    "ClusterResourceOverrideSnapshot": OverrideSnapshot,
    "ResourceOverrideSnapshot": OverrideSnapshot,
    "ClusterResourcePlacementEviction": Eviction,
    "ClusterResourcePlacementDisruptionBudget": DisruptionBudget,
}
"""The kinds of batch placement; those of one content share a view."""

KIND_VIEWS: Mapping[str, type] = {
    "Shoot": Shoot,
    "Seed": Seed,
    "CloudProfile": CloudProfile,
    "NamespacedCloudProfile": NamespacedCloudProfile,
    "Project": Project,
    "ConfigMap": RegionConfigMap,
    "ShootState": ShootState,
    "ManagedSeed": ManagedSeed,
    "ManagedSeedSet": ManagedSeedSet,
    "SeedAutoscaler": SeedAutoscaler,
    "Lease": Lease,
    "Event": Event,
    **FLEET_VIEWS,
}
"""The kinds with a schema, and what it is made of."""

OTHER = "Manifest"
"""The schema of all other kinds."""


def schemas() -> Mapping[str, Schema]:
    """Every schema by its name, in the order of names."""
    found = {kind: _of_kind(kind, view) for kind, view in KIND_VIEWS.items()}
    found[OTHER] = _of_others()
    bodies = [
        message.payload
        for channel in channels()
        for message in channel.messages
        if isinstance(message.payload, type) and not isinstance(message.payload, str)
    ]
    for body in (*bodies, *RESPONSES, *REFERENCES, ObjectList):
        found[body.__name__] = _complete(body.__name__, body)
    return dict(sorted(found.items()))


def _of_kind(kind: str, view: type) -> Schema:
    schema = _complete(kind, view)
    spec = KINDS[kind.lower()]
    if shape := sent_shape(spec.api_version, kind):
        _add_fields(schema, shape, schema.get("$defs", {}))
    identity = {"apiVersion": {"const": spec.api_version}, "kind": {"const": kind}}
    return _as_object(schema, identity)


_SCALARS: Mapping[str, Schema] = {
    "open": {},
    "integer": {"type": ["integer", "null"]},
    "number": {"type": ["number", "null"]},
    "boolean": {"type": ["boolean", "null"]},
    "quantity": {"type": ["string", "number", "null"]},
    "int-or-string": {"type": ["integer", "string", "null"]},
}
_TEXT: Schema = {"type": ["string", "null"]}
_IDENTITY = ("apiVersion", "kind", "metadata", "status")


def _add_fields(schema: Schema, shape: Shape, definitions: Schema, besides: Sequence[str] = _IDENTITY) -> None:
    """Add the fields that a kind has and nothing here reads, at all depths."""
    properties = schema.setdefault("properties", {})
    for name, kind in shape.fields.items():
        if name in besides:
            continue
        if name not in properties:
            properties[name] = _of_type(kind)
        elif isinstance(kind, Shape) and (below := _object_in(properties[name], definitions)) is not None:
            _add_fields(below, kind, definitions, ())
        elif isinstance(kind, ListOf) and isinstance(kind.entry, Shape):
            items = properties[name].get("items")
            below = None if items is None else _object_in(items, definitions)
            if below is not None:
                _add_fields(below, kind.entry, definitions, ())


def _object_in(schema: Schema, definitions: Schema) -> Schema | None:
    """The object's schema that a property stands for; None where it is open or none."""
    for option in (schema, *schema.get("anyOf", ())):
        if "$ref" in option:
            return definitions[str(option["$ref"]).rpartition("/")[2]]
    return None


def _of_type(kind: FieldType) -> Schema:
    match kind:
        case str():
            return dict(_SCALARS.get(kind, _TEXT))
        case ListOf(entry):
            return {"type": ["array", "null"], "items": _of_type(entry)}
        case MapOf(value):
            return {"type": ["object", "null"], "additionalProperties": _of_type(value)}
        case Shape(fields):
            return {"type": ["object", "null"], "properties": {name: _of_type(each) for name, each in fields.items()}}


def _of_others() -> Schema:
    identity = {"apiVersion": {"type": "string"}, "kind": {"type": "string", "not": {"enum": [*KIND_VIEWS]}}}
    return _as_object(_complete(OTHER, Manifest), identity)


def _as_object(schema: Schema, identity: Schema) -> Schema:
    properties: Schema = {**identity, **{name: value for name, value in schema["properties"].items() if name != "kind"}}
    properties["metadata"] = {"$ref": "#/$defs/Metadata"}
    return {**schema, "properties": properties, "required": ["apiVersion", "kind", "metadata"]}


def _complete(name: str, view: type) -> Schema:
    """A struct's schema with all its parts, its own members at the top."""
    _, parts = msgspec.json.schema_components(
        [view, WireMetadata], schema_hook=_anything, ref_template="#/$defs/{name}"
    )
    definitions = {part: _lenient(schema) for part, schema in parts.items()}
    metadata = definitions.pop("WireMetadata")
    own = definitions.pop(view.__name__)
    definitions["Metadata"] = {
        **metadata,
        "title": "Metadata",
        "properties": {**metadata["properties"], "name": {"type": "string", "minLength": 1}},
        "required": ["name"],
    }
    used = _reachable(_renamed(own), {part: _renamed(schema) for part, schema in definitions.items()})
    top: Schema = {"$schema": DIALECT, "$id": f"{IDENTIFIER}{name}", **_renamed(own), "title": name}
    return {**top, "$defs": used} if used else top


def _renamed(schema: Any) -> Any:
    """The schema with one word for metadata, whatever view it was made of."""
    if isinstance(schema, dict):
        return {name: _renamed(value) for name, value in cast("Schema", schema).items()}
    if isinstance(schema, list):
        return [_renamed(value) for value in cast("list[Any]", schema)]
    return "#/$defs/Metadata" if schema == "#/$defs/WireMetadata" else schema


def _reachable(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """The definitions that a schema needs, sorted; the metadata's own always."""
    wanted, found = ["Metadata"], dict[str, Schema]()
    if "metadata" not in schema.get("properties", {}):
        wanted = []
    wanted += _references(schema)
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = definitions[name]
            wanted += _references(found[name])
    return dict(sorted(found.items()))


def _references(schema: Any) -> Sequence[str]:
    if isinstance(schema, dict):
        members = cast("Schema", schema)
        own = [str(members["$ref"]).rpartition("/")[2]] if "$ref" in members else []
        return [*own, *(name for value in members.values() for name in _references(value))]
    if isinstance(schema, list):
        return [name for value in cast("list[Any]", schema) for name in _references(value)]
    return []


def _lenient(schema: Schema) -> Schema:
    """A struct's schema in which null counts as absent, and no default is claimed for what is only left out."""
    properties: Mapping[str, Schema] = schema.get("properties", {})
    required: Sequence[str] = schema.get("required", ())
    lenient = {
        name: _values(value) if name in required else _or_null(_values(value)) for name, value in properties.items()
    }
    rest = {name: value for name, value in schema.items() if name not in ("properties", "required")}
    return {**rest, "properties": lenient, **({"required": list(required)} if required else {})}


def _values(schema: Schema) -> Schema:
    """The same for the values of a mapping, and without the defaults that mean nothing."""
    if schema == _ANYTHING:
        return {}
    kept = dict(schema)
    default = kept.pop("default", None)
    if default and isinstance(default, int | float | str) and not str(default).startswith("0001-"):
        kept["default"] = default
    extra = kept.get("additionalProperties")
    if isinstance(extra, dict) and extra:
        kept["additionalProperties"] = _or_null(_values(cast("Schema", extra)))
    return kept


def _or_null(schema: Schema) -> Schema:
    if not schema:
        return schema
    described = {name: schema[name] for name in ("default",) if name in schema}
    bare = {name: value for name, value in schema.items() if name not in described}
    kind = bare.get("type")
    if isinstance(kind, str) and "enum" not in bare:
        return bare | {"type": [kind, "null"]} | described
    options = cast("list[Schema]", bare["anyOf"]) if set(bare) == {"anyOf"} else [bare]
    if {"type": "null"} in options:
        return schema
    return {"anyOf": [*options, {"type": "null"}]} | described


def _anything(_type: type) -> Schema:
    return dict(_ANYTHING)
