"""The shape of each kind that has one."""

from collections.abc import Mapping, Sequence
from functools import cache

from gardenbus.common.api.fields.gardener import GARDENER
from gardenbus.common.api.fields.own import OWN
from gardenbus.common.api.fields.shapes import FieldType, Notation, Shape, with_fields

_OWN = Notation(OWN)
_NOTATIONS = (Notation(GARDENER), _OWN)


def _below(place: str, fields: Mapping[str, str]) -> Mapping[str, str]:
    return {f"{place}.{field}": kind for field, kind in fields.items()}


_SHOOT = {"controlPlane.zones": "[string]"}
_MANAGED_SEED = {"seed": "open", "seedTemplate": "open"}
_ADDED: Mapping[str, Mapping[str, str]] = {
    "Shoot": _below("spec", _SHOOT),
    "Seed": {"spec.secretRef": "open", "spec.settings.shootDNS": "open"},
    "ManagedSeed": _below("spec", _MANAGED_SEED),
    "ManagedSeedSet": {
        "spec.scaleIn": "ScaleIn",
        **_below("spec.template.spec", _MANAGED_SEED),
        **_below("spec.shootTemplate.spec", _SHOOT),
    },
}
"""Fields that have an effect here beyond those of Gardener's version: our own, and those of other versions."""

UNCHECKED_STATUS = "open"
"""Type of `status` in what is sent: it is not taken from there."""


def kind_shape(api_version: str, kind: str) -> Shape | None:
    """The fields of a kind; None when nobody here knows them."""
    return _shape_of(api_version, kind) if _has_shape(api_version, kind) else None


def _has_shape(api_version: str, kind: str) -> bool:
    name = f"{api_version}/{kind}"
    return any(name in notation for notation in _NOTATIONS)


@cache  # of the known kinds only, which nothing may push out: what is made of a shape stays with it
def _shape_of(api_version: str, kind: str) -> Shape:
    name = f"{api_version}/{kind}"
    shape = next(notation.shape(name) for notation in _NOTATIONS if name in notation)
    for path, text in _ADDED.get(kind, {}).items():
        shape = _with_field(shape, path.split("."), _OWN.type_of(text))
    return shape


def _with_field(shape: Shape, path: Sequence[str], kind: FieldType) -> Shape:
    field, *rest = path
    if not rest:
        return with_fields(shape, **{field: kind})
    below = shape.fields[field]
    if not isinstance(below, Shape):
        raise TypeError(f"{field} has no fields")
    return with_fields(shape, **{field: _with_field(below, rest, kind)})


def sent_shape(api_version: str, kind: str) -> Shape | None:
    """The same for a manifest that is sent, whose status may hold anything."""
    return _sent_shape_of(api_version, kind) if _has_shape(api_version, kind) else None


@cache
def _sent_shape_of(api_version: str, kind: str) -> Shape:
    return with_fields(_shape_of(api_version, kind), status=UNCHECKED_STATUS)


def kinds_with_shape() -> Sequence[tuple[str, str]]:
    """The apiVersion and kind of all of them."""
    names = [name for notation in _NOTATIONS for name in notation.names() if "/" in name]
    return [(version, kind) for version, _, kind in (name.rpartition("/") for name in sorted(names))]
