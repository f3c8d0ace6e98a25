"""Shapes: what fields a mapping of a manifest has, and of what types.

The notation has a definition in each line (longer ones go on in indented lines): a name, a colon, and fields. A field
is `name` (a string) or `name=type`. A type is a scalar's name (`SCALARS`), a definition's name, `[type]` for a list or
`{type}` for a mapping with free keys.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

SCALARS = frozenset(
    {"open", "string", "integer", "number", "boolean", "time", "duration", "bytes", "quantity", "int-or-string"}
)
"""Types that are no shape; `open` holds anything."""


class ListOf(NamedTuple):
    """A list whose entries have one type."""

    entry: "FieldType"


class MapOf(NamedTuple):
    """A mapping with free keys, whose values have one type."""

    value: "FieldType"


class Shape(NamedTuple):
    """A mapping with these fields and no others."""

    fields: Mapping[str, "FieldType"]


FieldType = str | ListOf | MapOf | Shape


class Notation:
    """Definitions of one text, made into shapes when they are first used."""

    def __init__(self, text: str) -> None:
        self._bodies = dict(_definitions(text))
        self._made: dict[str, Shape] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._bodies

    def names(self) -> tuple[str, ...]:
        """The names of all definitions."""
        return tuple(self._bodies)

    def shape(self, name: str) -> Shape:
        """The shape of a definition; the same object for the same name. Raises KeyError when there is none."""
        if name not in self._made:
            fields = (token.partition("=") for token in self._bodies[name].split())
            self._made[name] = Shape({field: self.type_of(text or "string") for field, _, text in fields})
        return self._made[name]

    def type_of(self, text: str) -> FieldType:
        """The type that a text stands for."""
        if text.startswith("["):
            return ListOf(self.type_of(text[1:-1]))
        if text.startswith("{"):
            return MapOf(self.type_of(text[1:-1]))
        return text if text in SCALARS else self.shape(text)


def _definitions(text: str) -> Iterator[tuple[str, str]]:
    name, body = "", ""
    for line in text.splitlines():
        if line.startswith(" "):
            body += line
        elif line:
            if name:
                yield name, body
            name, _, body = line.partition(":")
    if name:
        yield name, body


def with_fields(shape: Shape, **changed: FieldType) -> Shape:
    """The shape with some fields added, or of another type."""
    return Shape({**shape.fields, **changed})
