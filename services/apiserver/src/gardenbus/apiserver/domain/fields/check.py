"""Checks a manifest's fields against a shape.

Valid manifests pass in one typed conversion (compiled once for each shape); only the fields of others are walked, to
find those that are at fault. `null` counts as absent.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, NamedTuple

import msgspec

from gardenbus.apiserver.domain.fields.suggestions import suggestion
from gardenbus.common.api.durations import DURATION_PATTERN, LONGEST_DURATION
from gardenbus.common.api.fields.shapes import FieldType, ListOf, MapOf, Shape
from gardenbus.common.api.manifests.strict_json import ValuePath
from gardenbus.common.api.quantities import LONGEST_QUANTITY, QUANTITY_PATTERN
from gardenbus.common.api.shown_values import shown, with_article
from gardenbus.common.errors import FieldProblem

MOST_FAULTS = 100


class FieldFault(NamedTuple):
    """A field that its kind does not have, or whose value has the wrong type."""

    path: ValuePath
    message: str
    value: Any

    @property
    def problem(self) -> FieldProblem:
        """The fault as a field error."""
        return FieldProblem(path_text(self.path), self.message)


def field_faults(document: Mapping[str, Any], shape: Shape, *, kind: str) -> Sequence[FieldFault]:
    """The faults of a manifest, at most `MOST_FAULTS`; none for a valid one. Never raises."""
    try:
        msgspec.convert(document, _compiled(shape))
    except (msgspec.ValidationError, RecursionError):
        return tuple(islice(_of_mapping(document, shape, (), _Root(kind, shape)), MOST_FAULTS))
    return ()


def path_text(path: ValuePath) -> str:
    """A path as it is written: `spec.provider.workers[0].name`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.isidentifier() or not text:
            text += f".{step}" if text else step[:_LONGEST_KEY]
        else:
            text += f"[{step[:_LONGEST_KEY]}]"
    return text


_LONGEST_KEY = 80


class _Root(NamedTuple):
    """The kind that is checked, and its whole shape."""

    kind: str
    shape: Shape


# -------------------------------------------------------------------------------------------- fast


def _text_like(pattern: str, longest: int) -> Any:
    return Annotated[str, msgspec.Meta(pattern=rf"^(?:{pattern})\Z", max_length=longest)]


_SCALAR_TYPES: Mapping[str, Any] = {
    "open": Any,
    "string": str | None,
    "time": str | None,
    "duration": _text_like(DURATION_PATTERN, LONGEST_DURATION) | None,
    "bytes": str | None,
    "integer": int | None,
    "number": float | None,
    "boolean": bool | None,
    "quantity": _text_like(QUANTITY_PATTERN, LONGEST_QUANTITY) | int | float | None,
    "int-or-string": int | str | None,
}


class _NoOthers(msgspec.Struct, forbid_unknown_fields=True, gc=False, frozen=True):
    """Base of compiled shapes."""


_by_shape: dict[int, tuple[Shape, type]] = {}


def compiled_shapes() -> int:
    """Number of shapes that were compiled; each stays."""
    return len(_by_shape)


def _compiled(shape: Shape) -> type:
    """A struct that takes what the shape takes, made once (shapes live as long as the process)."""
    cached = _by_shape.get(id(shape))
    if cached is None:
        names = {f"field_{number}": name for number, name in enumerate(shape.fields)}
        fields = [(alias, _typed(shape.fields[name]), None) for alias, name in names.items()]
        made = msgspec.defstruct("Fields", fields, bases=(_NoOthers,), rename=names, frozen=True, gc=False)
        cached = _by_shape[id(shape)] = (shape, made)
    return cached[1]


def _typed(kind: FieldType) -> Any:
    match kind:
        case str():
            return _SCALAR_TYPES[kind]
        case ListOf(entry):
            return list[_typed(entry)] | None
        case MapOf(value):
            return dict[str, _typed(value)] | None
        case Shape():
            return _compiled(kind) | None


# -------------------------------------------------------------------------------------------- faults


def _of_value(value: Any, kind: FieldType, path: ValuePath, root: _Root) -> Iterator[FieldFault]:
    if value is None:
        return
    wrong = _type_problem(value, kind)
    if wrong:
        yield FieldFault(path, wrong, value)
    elif isinstance(kind, ListOf):
        for index, entry in enumerate(value):
            yield from _of_value(entry, kind.entry, (*path, index), root)
    elif isinstance(kind, MapOf):
        for name, entry in value.items():
            yield from _of_value(entry, kind.value, (*path, name), root)
    elif isinstance(kind, Shape):
        yield from _of_mapping(value, kind, path, root)


def _of_mapping(content: Mapping[str, Any], shape: Shape, path: ValuePath, root: _Root) -> Iterator[FieldFault]:
    for name, value in content.items():
        kind = shape.fields.get(name)
        if kind is None:
            hint = suggestion(name, shape, path, root.shape)
            yield FieldFault((*path, name), f"is no field of {with_article(root.kind)}{hint}", value)
        else:
            yield from _of_value(value, kind, (*path, name), root)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _fits(pattern: str, longest: int) -> Callable[[Any], bool]:
    """Return the check that a value is text that matches a pattern, and not longer than so many characters."""
    compiled = re.compile(pattern)
    return lambda value: isinstance(value, str) and len(value) <= longest and compiled.fullmatch(value) is not None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_is_quantity = _fits(QUANTITY_PATTERN, LONGEST_QUANTITY)

_SCALARS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "string": (_is_text, "a string"),
    "time": (_is_text, "a time, as 2026-01-02T03:04:05Z"),
    "duration": (_fits(DURATION_PATTERN, LONGEST_DURATION), "a duration, as 90s or 1h30m"),
    "bytes": (_is_text, "base64 text"),
    "integer": (_is_whole, "a whole number"),
    "number": (_is_number, "a number"),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    "quantity": (lambda value: _is_number(value) or _is_quantity(value), "a quantity, as 500m or 2Gi"),
    "int-or-string": (lambda value: _is_text(value) or _is_whole(value), "a whole number or a string"),
}


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict)


_LIST = (_is_list, "a list")
_MAPPING = (_is_mapping, "a mapping")


def _type_problem(value: Any, kind: FieldType) -> str:
    if kind == "open":
        return ""
    fits, described = _SCALARS[kind] if isinstance(kind, str) else _LIST if isinstance(kind, ListOf) else _MAPPING
    if fits(value):
        return ""
    quotes = ": put it in quotes" if kind == "string" and isinstance(value, bool | int | float) else ""
    return f"must be {described}, not {shown(value)}{quotes}"
