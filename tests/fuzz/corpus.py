"""Manifests that inputs are made from: those of the project, full ones, and one of each kind made from its shape."""

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.fields.kinds import kind_shape, kinds_with_shape
from gardenbus.common.api.fields.shapes import FieldType, ListOf, MapOf, Shape
from gardenbus.common.api.kinds import resolve
from gardenbus.common.api.manifests.strict_yaml import read_yaml
from gardenbus.common.errors import GardenbusError
from tests.support.example_files import example_manifests
from tests.support.full_manifests import FULL_MANIFESTS

ROOT = Path(__file__).parents[2]
DEEPEST = 7
_BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)

Path_ = tuple[str | int, ...]

SCALARS: dict[str, Sequence[Any]] = {
    "string": ("a", "aws", "eu-west-1", "10.0.0.0/16", "example.org"),
    "time": ("2026-01-02T03:04:05Z",),
    "duration": ("90s", "1h30m"),
    "bytes": ("YQ==",),
    "integer": (0, 1, 3, 65535),
    "number": (0, 0.5, 1),
    "boolean": (True, False),
    "quantity": ("500m", "2Gi", 1),
    "int-or-string": ("25%", 1),
    "open": ({"a": "b"}, "x", 1, []),
}


class Place(NamedTuple):
    """A value within a manifest: its path, and its type where the kind's fields are known."""

    path: Path_
    type: FieldType | None


class Template(NamedTuple):
    """A manifest, the places that may be changed in it, and its JSON."""

    document: Document
    places: Sequence[Place]
    encoded: bytes


def templates() -> Sequence[Template]:
    """All of them, always the same in the same order."""
    documents = [*FULL_MANIFESTS, *_of_project(), *_of_shapes()]
    return [template_of(document) for document in documents]


def template_of(document: Document) -> Template:
    """The template of one manifest."""
    shape = kind_shape(str(document.get("apiVersion")), str(document.get("kind")))
    return Template(document, [*_places(document, shape, ())][1:], encode(document))


def manifests_of_project() -> Iterator[Document]:
    """The documents of examples and of YAML on the pages of the documentation, configurations included."""
    for file in example_manifests():
        yield from read_yaml(file.read_text())
    for page in sorted((ROOT / "docs").glob("*.md")):
        for block in _BLOCK.findall(page.read_text()):
            try:
                values = read_yaml(block)
            except GardenbusError:  # a snippet with dots in it
                continue
            yield from (cast("Document", value) for value in values if isinstance(value, dict) and "kind" in value)


def _of_project() -> Iterator[Document]:
    """One of each set of fields: ten shoots that differ in their names teach nothing."""
    seen: set[object] = set()
    for document in manifests_of_project():
        outline = _outline(document)
        if outline not in seen:
            seen.add(outline)
            yield document


def _outline(value: Any) -> object:
    if isinstance(value, dict):
        return tuple(sorted((name, _outline(part)) for name, part in cast("Document", value).items()))
    return type(value).__name__


def _places(value: Any, kind: FieldType | None, path: Path_) -> Iterator[Place]:
    yield Place(path, kind)
    if isinstance(value, dict):
        for name, part in cast("Document", value).items():
            below = (
                kind.fields.get(name) if isinstance(kind, Shape) else kind.value if isinstance(kind, MapOf) else None
            )
            yield from _places(part, below, (*path, name))
    elif isinstance(value, list):
        for index, part in enumerate(cast("list[Any]", value)):
            yield from _places(part, kind.entry if isinstance(kind, ListOf) else None, (*path, index))


def _of_shapes() -> Iterator[Document]:
    chance = random.Random(1)
    for api_version, kind in kinds_with_shape():
        shape = kind_shape(api_version, kind)
        assert shape is not None
        made = value_of(shape, chance, DEEPEST)
        spec = resolve(api_version, kind)
        metadata = {"name": "fuzz"} | ({} if spec.namespaced is False else {"namespace": "garden-dev"})
        yield {**made, "apiVersion": api_version, "kind": kind, "metadata": metadata}


def value_of(kind: FieldType, chance: random.Random, deepest: int = 3) -> Any:
    """A value of a type; below the deepest level mappings and lists are empty."""
    match kind:
        case str():
            return chance.choice(SCALARS[kind])
        case ListOf(entry):
            return [value_of(entry, chance, deepest - 1) for _ in range(chance.randrange(1, 3))] if deepest > 0 else []
        case MapOf(value):
            return {chance.choice("abc"): value_of(value, chance, deepest - 1)} if deepest > 0 else {}
        case Shape():
            if deepest <= 0:
                return {}
            chosen = [name for name in kind.fields if chance.random() < 0.5]
            return {name: value_of(kind.fields[name], chance, deepest - 1) for name in chosen}
