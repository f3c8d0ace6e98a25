"""Bounds of what agents send beside the fields of a kind, in a status or in a manifest. Pure.

A field that nobody here knows is kept, so that a newer gardenlet may report to an older apiserver. What one object has
of them, and of entries in its lists of conditions, is bounded; a report that adds none is never rejected for them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from gardenbus.apiserver.domain.fields.check import path_text
from gardenbus.common.api.document import encode
from gardenbus.common.api.fields.kinds import kind_shape, sent_shape
from gardenbus.common.api.fields.shapes import FieldType, ListOf, MapOf, Shape
from gardenbus.common.api.fleet.member_clusters import MemberClusterStatus
from gardenbus.common.api.fleet.works import WorkStatus
from gardenbus.common.api.manifests.strict_json import ValuePath
from gardenbus.common.errors import FieldProblem, InvalidResource

UNKNOWN_FIELDS, UNKNOWN_BYTES = "unknownStatusFields", "unknownStatusBytes"
UNKNOWN_MANIFEST_FIELDS, UNKNOWN_MANIFEST_BYTES = "unknownFields", "unknownBytes"
CONDITIONS = "statusConditions"
"""Names of the limits."""

MOST_UNKNOWN_FIELDS = 64
MOST_UNKNOWN_BYTES = 16 * 1024
MOST_CONDITIONS = 128

_OF_AGENTS: Mapping[str, Shape] = {
    kind: Shape({field.encode_name: "open" for field in msgspec.structs.fields(view)})
    for kind, view in (("MemberCluster", MemberClusterStatus), ("Work", WorkStatus))
}
"""Statuses that member agents report, by the views of them: no notation has their fields."""

_METADATA = cast("Shape", sent_shape("core.gardener.cloud/v1beta1", "Seed")).fields["metadata"]
_IDENTITY = Shape(dict.fromkeys(("kind", "apiGroup", "name", "namespace"), "open"))
_DELETE_OPTIONS = Shape({"validationMode": "open"})
_MEMBER_CLUSTER = Shape(
    {
        **dict.fromkeys(("apiVersion", "kind", "status"), "open"),
        "metadata": _METADATA,
        "spec": Shape(
            {
                **dict.fromkeys(("heartbeatPeriodSeconds", "taints"), "open"),
                "identity": _IDENTITY,
                "deleteOptions": _DELETE_OPTIONS,
            }
        ),
    }
)
"""A MemberCluster, which no notation has. Source: KubeFleet's `apis/cluster/v1beta1/membercluster_types.go`."""

_LISTS = ("conditions", "constraints")
_SHOWN = 3


class UnknownPart(NamedTuple):
    """A field that its kind does not have, and the bytes of its name and value."""

    path: ValuePath
    size: int


def check_unknown_status(kind: Mapping[str, Any], reported: Mapping[str, Any], merged: Mapping[str, Any]) -> None:
    """Raise InvalidResource where a reported status adds to more than a status may hold beside its fields.

    `kind` has the object's apiVersion and kind, `merged` is its status with what was reported.
    """
    for name in _LISTS:
        given: Any = reported.get(name)
        entries: Any = merged.get(name) if isinstance(given, list) and given else None
        if isinstance(entries, list) and len(cast("list[Any]", entries)) > MOST_CONDITIONS:
            count = len(cast("list[Any]", entries))
            text = f"has {count} entries, {MOST_CONDITIONS} are allowed ({CONDITIONS}): report fewer"
            raise _invalid(("status", name), text)
    if not unknown_parts(kind, reported):
        return
    _check_number_and_size(unknown_parts(kind, merged), ("status",), (UNKNOWN_FIELDS, UNKNOWN_BYTES))


def check_unknown_fields(manifest: Mapping[str, Any]) -> None:
    """Raise InvalidResource where a manifest, whose status does not count, has more than it may beside its fields."""
    kind = str(manifest.get("kind"))
    shape = _MEMBER_CLUSTER if kind == "MemberCluster" else sent_shape(str(manifest.get("apiVersion")), kind)
    if shape is not None:
        found = list(_unknown(manifest, shape, ()))
        _check_number_and_size(found, (), (UNKNOWN_MANIFEST_FIELDS, UNKNOWN_MANIFEST_BYTES))


def _check_number_and_size(found: Sequence[UnknownPart], within: ValuePath, limits: tuple[str, str]) -> None:
    size = sum(part.size for part in found)
    if len(found) > MOST_UNKNOWN_FIELDS:
        text = f"{len(found)} fields that the kind does not have, {MOST_UNKNOWN_FIELDS} are allowed ({limits[0]})"
    elif size > MOST_UNKNOWN_BYTES:
        text = f"{size:,} bytes in fields that the kind does not have, 16Ki are allowed ({limits[1]})"
    else:
        return
    largest = sorted(found, key=lambda part: -part.size)[:_SHOWN]
    raise _invalid(within, f"{text}: leave out {', '.join(path_text((*within, *part.path)) for part in largest)}")


def unknown_parts(kind: Mapping[str, Any], status: Mapping[str, Any]) -> list[UnknownPart]:
    """The fields of a status that its kind does not have; those in them are a part of them. None of unknown kinds."""
    name = str(kind.get("kind"))
    shape = kind_shape(str(kind.get("apiVersion")), name)
    own = _OF_AGENTS.get(name) or (shape.fields.get("status") if shape is not None else None)
    return list(_unknown(status, own, ())) if isinstance(own, Shape) else []


def _unknown(value: Any, kind: FieldType, path: ValuePath) -> Iterator[UnknownPart]:
    if isinstance(value, dict) and isinstance(kind, Shape):
        for name, inner in cast("dict[str, Any]", value).items():
            below = kind.fields.get(name)
            if below is None:
                yield UnknownPart((*path, name), len(encode([name, inner])))
            elif not isinstance(below, str):
                yield from _unknown(inner, below, (*path, name))
    elif isinstance(value, dict) and isinstance(kind, MapOf) and not isinstance(kind.value, str):
        for name, inner in cast("dict[str, Any]", value).items():
            yield from _unknown(inner, kind.value, (*path, name))
    elif isinstance(value, list) and isinstance(kind, ListOf) and not isinstance(kind.entry, str):
        for number, inner in enumerate(cast("list[Any]", value)):
            yield from _unknown(inner, kind.entry, (*path, number))


def _invalid(path: ValuePath, text: str) -> InvalidResource:
    field = path_text(path)
    return InvalidResource(f"{field}: {text}" if field else text, (FieldProblem(field, text),))
